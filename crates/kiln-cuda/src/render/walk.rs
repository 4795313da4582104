//! Walking index spaces: several offsets advance together by their strides.
use std::fmt::Write;

use kiln_ir::Dims;
use smallvec::SmallVec;

/// An index space over which `N` offsets are walked. Dimensions of size 1 are left out, neighbours that all offsets walk as one are merged.
#[derive(Clone, Debug)]
pub(crate) struct Walk<const N: usize> {
    pub dims: Dims,
    pub strides: SmallVec<[[isize; N]; 6]>,
}

impl<const N: usize> Walk<N> {
    /// The space of `dims` with one list of strides an offset.
    pub fn new(dims: &[usize], strides: [&[isize]; N]) -> Self {
        let mut walk = Walk { dims: Dims::new(), strides: SmallVec::new() };
        for (d, &size) in dims.iter().enumerate() {
            let step: [isize; N] = core::array::from_fn(|b| strides[b][d]);
            if size == 1 {
                continue;
            }
            if let (Some(last), Some(outer)) = (walk.strides.last_mut(), walk.dims.last_mut())
                && (0..N).all(|b| last[b] == step[b] * size as isize)
            {
                *last = step;
                *outer *= size;
                continue;
            }
            walk.dims.push(size);
            walk.strides.push(step);
        }
        walk
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Statements that take the flat index `rest` apart and add to the offsets of these names.
    pub fn print(&self, names: [&str; N]) -> String {
        let mut s = String::new();
        for (d, (size, strides)) in self.dims.iter().zip(&self.strides).enumerate().rev() {
            let i = if d == 0 {
                s.push_str("{ const ix i = (ix)rest; ");
                "i"
            } else {
                let _ = write!(s, "{{ const count q = rest / {size}u; const ix i = (ix)(rest - q * {size}u); rest = q; ");
                "i"
            };
            for (name, stride) in names.iter().zip(strides) {
                match stride {
                    0 => {}
                    1 => {
                        let _ = write!(s, "{name} += {i}; ");
                    }
                    _ => {
                        let _ = write!(s, "{name} += {i} * (ix){stride}; ");
                    }
                }
            }
            s.push_str("} ");
        }
        s.trim_end().to_string()
    }
}
