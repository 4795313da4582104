//! Small inline lists of sizes and strides, and the arithmetic on them.
use smallvec::SmallVec;

/// Sizes of a shape, outermost first. Inline up to rank 6.
pub type Dims = SmallVec<[usize; 6]>;
/// Signed strides or coefficients, one per dimension. Inline up to rank 6.
pub type IDims = SmallVec<[isize; 6]>;

/// Number of elements of a shape (1 for rank 0). Of a shape that does not [fit](fits) it is at most the largest number.
pub fn numel(dims: &[usize]) -> usize {
    dims.iter().fold(1, |n, d| n.saturating_mul(*d))
}

/// Whether elements of `size` bytes in this shape can be addressed: their bytes are less than half of the address space, also where an axis is empty.
#[inline]
pub fn fits(dims: &[usize], size: usize) -> bool {
    let bytes = dims.iter().try_fold(size, |n, d| n.checked_mul((*d).max(1)));
    bytes.is_some_and(|bytes| bytes <= isize::MAX as usize)
}

/// Row-major strides of a dense buffer, in elements.
pub fn row_major(dims: &[usize]) -> IDims {
    let mut strides = IDims::from_elem(0, dims.len());
    let mut s = 1isize;
    for i in (0..dims.len()).rev() {
        strides[i] = s;
        s *= dims[i].max(1) as isize;
    }
    strides
}

/// Sizes `[n, c, spatial...]` in the order `[n, spatial..., c]`. Shapes of fewer than two axes stay as they are.
pub fn channels_last(dims: &[usize]) -> Dims {
    let mut out = Dims::from_slice(dims);
    if dims.len() > 1 {
        out[1..].rotate_left(1);
    }
    out
}

/// Sizes `[n, spatial..., c]` in the order `[n, c, spatial...]`: undoes [`channels_last`].
pub fn channels_first(dims: &[usize]) -> Dims {
    let mut out = Dims::from_slice(dims);
    if dims.len() > 1 {
        out[1..].rotate_right(1);
    }
    out
}

/// The NumPy broadcast of two shapes, or `None` when they don't fit.
pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Dims> {
    let rank = a.len().max(b.len());
    let mut out = Dims::from_elem(1, rank);
    for (i, o) in out.iter_mut().enumerate() {
        let x = if i + a.len() >= rank { a[i + a.len() - rank] } else { 1 };
        let y = if i + b.len() >= rank { b[i + b.len() - rank] } else { 1 };
        *o = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return None,
        };
    }
    Some(out)
}

/// Calls `f` with every index of `dims` in row-major order.
pub fn for_each_index(dims: &[usize], mut f: impl FnMut(&[usize])) {
    if dims.contains(&0) {
        return;
    }
    let mut idx = Dims::from_elem(0, dims.len());
    loop {
        f(&idx);
        let mut d = dims.len();
        loop {
            if d == 0 {
                return;
            }
            d -= 1;
            idx[d] += 1;
            if idx[d] < dims[d] {
                break;
            }
            idx[d] = 0;
        }
    }
}
