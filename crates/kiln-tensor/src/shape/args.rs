//! What reshape, expand and movedim accept as their shape and axis arguments.

use alloc::vec::Vec;
use core::fmt::Debug;

use super::{AsIndex, Shape};

/// The target shape of a reshape to rank `D2`: a [`Shape`], or an array where -1 stands for "what remains" and 0 for "the size of the
/// source's axis at this position".
pub trait ReshapeArgs<const D2: usize>: Debug {
    /// Resolves the target against the source shape of rank `D`.
    ///
    /// # Panics
    /// When the element counts differ.
    fn into_shape<const D: usize>(self, source: Shape) -> Shape;
}

impl<const D2: usize> ReshapeArgs<D2> for Shape {
    #[track_caller]
    fn into_shape<const D: usize>(self, source: Shape) -> Shape {
        assert!(self.rank() == D2, "reshape: the target {self} has rank {}, the result type has rank {D2}", self.rank());
        assert!(
            self.num_elements() == source.num_elements(),
            "reshape: element counts differ: from {source} ({}) to {self} ({})",
            source.num_elements(),
            self.num_elements()
        );
        self
    }
}

impl<I: AsIndex, const D2: usize> ReshapeArgs<D2> for [I; D2] {
    #[track_caller]
    fn into_shape<const D: usize>(self, source: Shape) -> Shape {
        match source.reshape(self) {
            Ok(shape) => shape,
            Err(error) => panic!("reshape: {error}"),
        }
    }
}

/// The target shape of an expand from rank `D1` to rank `D2`: a [`Shape`], or an array where -1 keeps the source's size.
pub trait BroadcastArgs<const D1: usize, const D2: usize> {
    /// Resolves the target against the source shape.
    ///
    /// # Panics
    /// When the source does not broadcast to the target.
    fn into_shape(self, shape: &Shape) -> Shape;
}

impl<const D1: usize, const D2: usize> BroadcastArgs<D1, D2> for Shape {
    #[track_caller]
    fn into_shape(self, shape: &Shape) -> Shape {
        match shape.expand(self.clone()) {
            Ok(shape) => shape,
            Err(error) => panic!("expand: {error}: from {shape} to {self}"),
        }
    }
}

impl<const D1: usize, const D2: usize, E: AsIndex> BroadcastArgs<D1, D2> for [E; D2] {
    #[track_caller]
    fn into_shape(self, shape: &Shape) -> Shape {
        let mut target = Shape::new([0; D2]);
        for (axis, size) in self.iter().enumerate() {
            let Ok(size) = size.fitted() else {
                panic!("expand: size {size:?} at axis {axis} is too large: source {shape}");
            };
            target[axis] = if size >= 0 {
                size as usize
            } else {
                let kept = (axis + shape.rank()).checked_sub(D2).map(|i| shape[i]);
                match (size, kept) {
                    (-1, Some(kept)) => kept,
                    _ => panic!("expand: size {size} at axis {axis} of {self:?} is not a size: source {shape}"),
                }
            };
        }
        BroadcastArgs::<D1, D2>::into_shape(target, shape)
    }
}

/// One axis or several, as source or destination of `movedim`; negative axes count from the end.
pub trait MovedimArgs {
    /// The axes, resolved for rank `D`.
    ///
    /// # Panics
    /// When an axis does not exist or is named twice.
    fn into_dim_vec<const D: usize>(self) -> Vec<usize>;

    /// The axes, resolved for a tensor of the sizes `dims`, which are named when one does not exist.
    #[doc(hidden)]
    #[track_caller]
    fn into_axes<const D: usize>(self, dims: &[usize]) -> Vec<usize>
    where
        Self: Sized,
    {
        let _ = dims;
        self.into_dim_vec::<D>()
    }
}

/// Distinct axes for `movedim`, with what is known of the shape.
#[track_caller]
fn moved(axes: &[impl AsIndex], rank: usize, shape: &dyn Debug) -> Vec<usize> {
    let mut resolved = Vec::with_capacity(axes.len());
    for index in axes {
        let Ok(axis) = index.try_dim_index(rank) else {
            panic!("movedim: axis {index:?} is out of range for rank {rank}: shape {shape:?}");
        };
        assert!(!resolved.contains(&axis), "movedim: axis {axis} is named twice in {axes:?}: shape {shape:?}");
        resolved.push(axis);
    }
    resolved
}

impl<I: AsIndex> MovedimArgs for Vec<I> {
    #[track_caller]
    fn into_dim_vec<const D: usize>(self) -> Vec<usize> {
        moved(&self, D, &format_args!("of rank {D}"))
    }

    #[track_caller]
    fn into_axes<const D: usize>(self, dims: &[usize]) -> Vec<usize> {
        moved(&self, D, &dims)
    }
}

/// Implements [`MovedimArgs`] for single axes.
macro_rules! single_axis {
    ($($t:ty),*) => {$(
        impl MovedimArgs for $t {
            #[track_caller]
            fn into_dim_vec<const D: usize>(self) -> Vec<usize> {
                moved(&[self], D, &format_args!("of rank {D}"))
            }

            #[track_caller]
            fn into_axes<const D: usize>(self, dims: &[usize]) -> Vec<usize> {
                moved(&[self], D, &dims)
            }
        }
    )*};
}
single_axis!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);
