//! Walking index spaces: several buffers advance together by their strides.
use kiln_ir::Dims;
use smallvec::SmallVec;

/// An index space over which `N` buffers are walked, each with its own strides in elements. Neighbouring dimensions that all buffers walk as one are merged.
#[derive(Clone, Debug)]
pub(crate) struct Space<const N: usize> {
    pub dims: Dims,
    pub strides: SmallVec<[[isize; N]; 6]>,
}

impl<const N: usize> Space<N> {
    /// The space of `dims` with one list of strides a buffer.
    pub fn new(dims: &[usize], strides: [&[isize]; N]) -> Self {
        let mut space = Space { dims: Dims::new(), strides: SmallVec::new() };
        for (d, &size) in dims.iter().enumerate() {
            let step: [isize; N] = core::array::from_fn(|b| strides[b][d]);
            if size == 1 {
                continue;
            }
            if let (Some(last), Some(outer)) = (space.strides.last_mut(), space.dims.last_mut())
                && (0..N).all(|b| last[b] == step[b] * size as isize)
            {
                *last = step;
                *outer *= size;
                continue;
            }
            space.dims.push(size);
            space.strides.push(step);
        }
        space
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Takes the innermost dimension off: its size and strides (1 and zeros for a single point).
    pub fn pop(&mut self) -> (usize, [isize; N]) {
        match (self.dims.pop(), self.strides.pop()) {
            (Some(size), Some(strides)) => (size, strides),
            _ => (1, [0; N]),
        }
    }

    /// Offsets of the point with flat index `at`.
    pub fn offsets(&self, mut at: usize) -> [isize; N] {
        let mut offsets = [0; N];
        for (size, strides) in self.dims.iter().zip(&self.strides).rev() {
            let i = (at % size) as isize;
            at /= size;
            for b in 0..N {
                offsets[b] += i * strides[b];
            }
        }
        offsets
    }

    /// Calls `f` with the offsets of the first point and the number of points of every run along the innermost dimension within a range of flat indices.
    pub fn runs(&self, range: core::ops::Range<usize>, f: &mut dyn FnMut([isize; N], usize)) {
        let inner = self.dims.last().copied().unwrap_or(1);
        let mut at = range.start;
        while at < range.end {
            let n = (inner - at % inner).min(range.end - at);
            f(self.offsets(at), n);
            at += n;
        }
    }

    /// The innermost strides.
    pub fn inner(&self) -> [isize; N] {
        self.strides.last().copied().unwrap_or([0; N])
    }
}
