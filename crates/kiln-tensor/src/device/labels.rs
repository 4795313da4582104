//! `Labels`: what a tensor's dtype says beyond how its elements are stored.

use crate::{BoolStore, DType};

/// What a tensor's dtype says beyond how its elements are stored: programs compute flexible floats as `F32`, and all booleans are one type to them.
/// Zero is nothing. Results take over the labels of their operands as far as they fit their own type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(u8);

/// The floats are flexible.
const FLEXIBLE: u8 = 1;
/// The store of booleans, counted from one: zero is the device's own.
const STORE: u8 = 0b110;

impl Labels {
    /// Those of a dtype.
    pub fn of(dtype: DType) -> Self {
        match dtype {
            DType::Flex32 => Labels(FLEXIBLE),
            DType::Bool(BoolStore::Native) => Labels(1 << 1),
            DType::Bool(BoolStore::U8) => Labels(2 << 1),
            DType::Bool(BoolStore::U32) => Labels(3 << 1),
            _ => Labels(0),
        }
    }

    /// Those of a result of two operands.
    #[inline]
    pub fn with(self, other: Labels) -> Self {
        if self.0 | other.0 == 0 {
            return self;
        }
        let store = if self.0 & STORE == 0 { other.0 & STORE } else { self.0 & STORE };
        Labels((self.0 | other.0) & FLEXIBLE | store)
    }

    /// What of it fits elements of a type.
    #[inline]
    pub fn fitting(self, dtype: kiln_ir::DType) -> Self {
        match dtype {
            _ if self.0 == 0 => self,
            kiln_ir::DType::F32 => Labels(self.0 & FLEXIBLE),
            kiln_ir::DType::Bool => Labels(self.0 & STORE),
            _ => Labels(0),
        }
    }

    /// The dtype of elements of a type; `store` is how the device has its booleans.
    #[inline]
    pub fn dtype(self, dtype: kiln_ir::DType, store: impl FnOnce() -> BoolStore) -> DType {
        match dtype {
            kiln_ir::DType::F32 if self.0 & FLEXIBLE != 0 => DType::Flex32,
            kiln_ir::DType::Bool => DType::Bool(match self.0 & STORE {
                0b010 => BoolStore::Native,
                0b100 => BoolStore::U8,
                0b110 => BoolStore::U32,
                _ => store(),
            }),
            other => other.into(),
        }
    }
}
