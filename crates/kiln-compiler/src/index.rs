//! Coordinates: where in a node a kernel reads, as affine functions of the kernel's iteration space, and how they pass through views.
use alloc::vec::Vec;

use kiln_ir::dims::row_major;
use kiln_ir::op::{SliceAxis, WindowAxis};
use kiln_ir::{Affine, Bound, IDims, NodeId};
use smallvec::SmallVec;

/// One dimension of an iteration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Number of steps.
    pub size: usize,
    /// Whether the kernel reduces over it.
    pub reduced: bool,
}

/// The iteration space of a kernel in the order of its domain (kept and reduced dimensions may alternate).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Dimensions, outermost first.
    pub dims: Vec<Dim>,
}

/// Why an index could not be expressed, and what would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Iteration dimension `dim` must be split so that its inner part has `inner` steps.
    Split {
        /// Which dimension.
        dim: usize,
        /// Steps of the inner part.
        inner: usize,
    },
    /// This node must be in memory.
    Materialise(NodeId),
    /// The view is not affine over any split of the space.
    NotAffine,
}

/// A place in a tensor. Kept inline: coordinates are made and dropped by the thousand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant)]
pub enum At {
    /// Row-major element number.
    Flat(Affine),
    /// One coordinate per axis.
    Axes(SmallVec<[Affine; 6]>),
}

/// A place, and the bounds under which it is inside the tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coord {
    /// Where.
    pub at: At,
    /// Outside of these the place is meaningless and must not be touched.
    pub bounds: Vec<Bound>,
}

impl Space {
    /// A space of kept dimensions.
    pub fn kept(dims: &[usize]) -> Self {
        Space { dims: dims.iter().map(|&size| Dim { size, reduced: false }).collect() }
    }

    /// The space of a reduction of `dims` over the axes of a bit mask.
    pub fn reducing(dims: &[usize], axes: u32) -> Self {
        Space { dims: dims.iter().enumerate().map(|(a, &size)| Dim { size, reduced: axes >> a & 1 == 1 }).collect() }
    }

    /// Row-major number of the point among all points (`full`), or among the kept ones only.
    pub fn identity(&self, full: bool) -> Affine {
        let mut coeffs = IDims::from_elem(0, self.dims.len());
        let mut stride = 1isize;
        for (d, dim) in self.dims.iter().enumerate().rev() {
            if dim.size != 1 && (full || !dim.reduced) {
                coeffs[d] = stride;
            }
            if full || !dim.reduced {
                stride *= dim.size.max(1) as isize;
            }
        }
        Affine { base: 0, coeffs, dynamic: SmallVec::new() }
    }

    /// Splits a dimension in two.
    pub fn split(&mut self, dim: usize, inner: usize) {
        let d = self.dims[dim];
        debug_assert!(inner > 1 && inner < d.size && d.size.is_multiple_of(inner));
        self.dims[dim].size = d.size / inner;
        self.dims.insert(dim + 1, Dim { size: inner, reduced: d.reduced });
    }

    fn rank(&self) -> usize {
        self.dims.len()
    }
}

/// `a + m * b`.
pub fn add_scaled(a: &mut Affine, b: &Affine, m: isize) {
    a.base += m * b.base;
    for (x, y) in a.coeffs.iter_mut().zip(&b.coeffs) {
        *x += m * y;
    }
    for &(arg, k) in &b.dynamic {
        match a.dynamic.iter_mut().find(|d| d.0 == arg) {
            Some(d) => d.1 += m * k,
            None => a.dynamic.push((arg, m * k)),
        }
    }
    a.dynamic.retain(|d| d.1 != 0);
    a.dynamic.sort_unstable();
}

impl Coord {
    /// The place with a flat element number.
    pub fn flat(index: Affine) -> Self {
        Coord { at: At::Flat(index), bounds: Vec::new() }
    }

    fn with(&self, at: At) -> Self {
        Coord { at, bounds: self.bounds.clone() }
    }

    /// The flat element number in a dense tensor of these sizes.
    pub fn flatten(&self, dims: &[usize], rank: usize) -> Affine {
        match &self.at {
            At::Flat(f) => f.clone(),
            At::Axes(axes) => {
                let strides = row_major(dims);
                let mut f = Affine::zero(rank);
                for (c, s) in axes.iter().zip(&strides) {
                    add_scaled(&mut f, c, *s);
                }
                f
            }
        }
    }

    /// One coordinate per axis of a tensor of these sizes.
    pub fn axes(&self, dims: &[usize], space: &Space) -> Result<SmallVec<[Affine; 6]>, Need> {
        match &self.at {
            At::Axes(a) => Ok(a.clone()),
            At::Flat(f) => unflatten(f, dims, space),
        }
    }

    /// Through a reshape of `inner` to `outer`: the place in `inner`.
    pub fn through_reshape(&self, outer: &[usize], inner: &[usize], space: &Space) -> Coord {
        // Adding or removing axes of size 1 keeps the other coordinates as they are.
        if let At::Axes(axes) = &self.at {
            let long = |dims: &[usize]| dims.iter().copied().enumerate().filter(|d| d.1 != 1).collect::<SmallVec<[(usize, usize); 6]>>();
            let (o, i) = (long(outer), long(inner));
            if o.len() == i.len() && o.iter().zip(&i).all(|(a, b)| a.1 == b.1) {
                let mut out = SmallVec::<[Affine; 6]>::from_elem(Affine::zero(space.rank()), inner.len());
                for (a, b) in o.iter().zip(&i) {
                    out[b.0] = axes[a.0].clone();
                }
                return self.with(At::Axes(out));
            }
        }
        self.with(At::Flat(self.flatten(outer, space.rank())))
    }

    /// Through a permutation: the place in the operand.
    pub fn through_permute(&self, outer: &[usize], perm: &[u8], space: &Space) -> Result<Coord, Need> {
        let axes = self.axes(outer, space)?;
        let mut out = axes.clone();
        for (i, &p) in perm.iter().enumerate() {
            out[p as usize] = axes[i].clone();
        }
        Ok(self.with(At::Axes(out)))
    }

    /// Through a broadcast of `inner` to `outer`.
    pub fn through_expand(&self, outer: &[usize], inner: &[usize], space: &Space) -> Result<Coord, Need> {
        let lead = outer.len() - inner.len();
        if let At::Flat(flat) = &self.at {
            // Neighbouring axes that are spread out need not be told apart.
            let spread = |a: usize| a < lead || inner[a - lead] == 1;
            let (mut merged, mut place) = (SmallVec::<[usize; 6]>::new(), SmallVec::<[usize; 6]>::new());
            for (a, &d) in outer.iter().enumerate() {
                match merged.last_mut() {
                    Some(last) if spread(a) && spread(a - 1) => *last *= d,
                    _ => merged.push(d),
                }
                place.push(merged.len() - 1);
            }
            let axes = unflatten(flat, &merged, space)?;
            let of = |(a, d): (usize, &usize)| if *d == 1 { Affine::zero(space.rank()) } else { axes[place[lead + a]].clone() };
            return Ok(self.with(At::Axes(inner.iter().enumerate().map(of).collect())));
        }
        let axes = self.axes(outer, space)?;
        let out = inner.iter().enumerate().map(|(a, &d)| if d == 1 { Affine::zero(space.rank()) } else { axes[lead + a].clone() }).collect();
        Ok(self.with(At::Axes(out)))
    }

    /// Through a slice; `starts` are the starts' affine values (a constant or one run-time scalar).
    pub fn through_slice(&self, outer: &[usize], slices: &[SliceAxis], starts: &[Affine], space: &Space) -> Result<Coord, Need> {
        let mut axes = self.axes(outer, space)?;
        for (s, start) in slices.iter().zip(starts) {
            let mut c = start.clone();
            add_scaled(&mut c, &axes[s.axis as usize], s.step as isize);
            axes[s.axis as usize] = c;
        }
        Ok(self.with(At::Axes(axes)))
    }

    /// Through sliding windows.
    pub fn through_window(&self, outer: &[usize], windows: &[WindowAxis], space: &Space) -> Result<Coord, Need> {
        let mut axes = self.axes(outer, space)?;
        let rank = outer.len() - windows.len();
        for (k, w) in windows.iter().enumerate() {
            let mut c = Affine::zero(space.rank());
            add_scaled(&mut c, &axes[w.axis as usize], w.stride as isize);
            add_scaled(&mut c, &axes[rank + k], w.dilation as isize);
            axes[w.axis as usize] = c;
        }
        axes.truncate(rank);
        Ok(self.with(At::Axes(axes)))
    }

    /// Through padding of `inner`: the place in the operand with the bounds that say where it exists. Also returns the new bounds alone.
    pub fn through_pad(&self, outer: &[usize], inner: &[usize], pads: &[(usize, usize)], space: &Space) -> Result<(Coord, Vec<Bound>), Need> {
        let mut axes = self.axes(outer, space)?;
        let mut fresh = Vec::new();
        for (a, &(lo, hi)) in pads.iter().enumerate() {
            axes[a].base -= lo as isize;
            if lo != 0 || hi != 0 {
                fresh.push(Bound { index: axes[a].clone(), extent: inner[a] });
            }
        }
        let mut bounds = self.bounds.clone();
        bounds.extend(fresh.iter().cloned());
        Ok((Coord { at: At::Axes(axes), bounds }, fresh))
    }
}

/// Splits a flat element number into coordinates, if no carry between axes can happen.
fn unflatten(flat: &Affine, dims: &[usize], space: &Space) -> Result<SmallVec<[Affine; 6]>, Need> {
    let rank = space.rank();
    let strides = row_major(dims);
    let mut out = SmallVec::<[Affine; 6]>::from_elem(Affine::zero(rank), dims.len());
    if dims.contains(&0) {
        return Ok(out);
    }
    if !flat.dynamic.is_empty() || flat.base < 0 {
        return Err(Need::NotAffine);
    }
    let mut rest = flat.base;
    let mut top: SmallVec<[isize; 6]> = SmallVec::from_elem(0, dims.len());
    for a in 0..dims.len() {
        out[a].base = rest / strides[a];
        rest %= strides[a];
        top[a] = out[a].base;
    }
    for (d, &c) in flat.coeffs.iter().enumerate() {
        let steps = space.dims[d].size;
        if c == 0 || steps <= 1 {
            continue;
        }
        if c < 0 {
            return Err(Need::NotAffine);
        }
        // The axis whose stride is the largest not above the coefficient.
        let Some(a) = (0..dims.len()).find(|&a| dims[a] > 1 && strides[a] <= c) else { return Err(Need::NotAffine) };
        if c % strides[a] != 0 {
            return Err(Need::NotAffine);
        }
        let q = c / strides[a];
        let reach = q * (steps as isize - 1);
        if reach >= dims[a] as isize {
            // The dimension walks over the end of the axis: split it there.
            let room = dims[a] as isize / q;
            if room > 1 && dims[a] as isize % q == 0 && steps as isize % room == 0 && room < steps as isize {
                return Err(Need::Split { dim: d, inner: room as usize });
            }
            return Err(Need::NotAffine);
        }
        out[a].coeffs[d] = q;
        top[a] += reach;
    }
    if top.iter().zip(dims).any(|(t, d)| *t >= *d as isize) {
        return Err(Need::NotAffine);
    }
    Ok(out)
}
