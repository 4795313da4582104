//! How windows (convolutions, pools) treat the border of their input.

use kiln_module::config::Config;

/// The padding of a one-dimensional window.
#[derive(Config, Debug, PartialEq)]
pub enum PaddingConfig1d {
    /// As much as makes `⌈input / stride⌉` windows fit; an odd total puts the extra element at the end.
    Same,
    /// None.
    Valid,
    /// The given numbers of elements before and after.
    Explicit(usize, usize),
}

/// The padding of a two-dimensional window.
#[derive(Config, Debug, PartialEq)]
pub enum PaddingConfig2d {
    /// As much as makes `⌈input / stride⌉` windows fit; an odd total puts the extra row below and column to the right.
    Same,
    /// None.
    Valid,
    /// The given numbers of rows and columns: top, left, bottom, right.
    Explicit(usize, usize, usize, usize),
}

/// The padding of a three-dimensional window.
#[derive(Config, Debug, PartialEq)]
pub enum PaddingConfig3d {
    /// As much as makes `⌈input / stride⌉` windows fit; an odd total puts the extra element at the end.
    Same,
    /// None.
    Valid,
    /// The given numbers of elements on both sides of depth, height and width.
    Explicit(usize, usize, usize),
}

/// The extent of a window along one axis.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) input: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    pub(crate) dilation: usize,
}

impl Window {
    fn same(self) -> (usize, usize) {
        let count = self.input.div_ceil(self.stride);
        let extent = self.dilation * self.kernel.saturating_sub(1) + 1;
        let needed = count.saturating_sub(1) * self.stride + extent;
        let total = needed.saturating_sub(self.input);
        (total / 2, total - total / 2)
    }
}

impl PaddingConfig1d {
    pub(crate) fn pairs(&self, windows: [Window; 1]) -> [(usize, usize); 1] {
        match self {
            Self::Same => windows.map(Window::same),
            Self::Valid => [(0, 0)],
            Self::Explicit(before, after) => [(*before, *after)],
        }
    }
}

impl PaddingConfig2d {
    pub(crate) fn pairs(&self, windows: [Window; 2]) -> [(usize, usize); 2] {
        match self {
            Self::Same => windows.map(Window::same),
            Self::Valid => [(0, 0); 2],
            Self::Explicit(top, left, bottom, right) => [(*top, *bottom), (*left, *right)],
        }
    }
}

impl PaddingConfig3d {
    pub(crate) fn pairs(&self, windows: [Window; 3]) -> [(usize, usize); 3] {
        match self {
            Self::Same => windows.map(Window::same),
            Self::Valid => [(0, 0); 3],
            Self::Explicit(depth, height, width) => [(*depth, *depth), (*height, *height), (*width, *width)],
        }
    }
}

/// The windows along the last `N` axes of an input.
pub(crate) fn windows<const N: usize>(dims: &[usize], kernel: [usize; N], stride: [usize; N], dilation: [usize; N]) -> [Window; N] {
    let first = dims.len() - N;
    core::array::from_fn(|axis| Window { input: dims[first + axis], kernel: kernel[axis], stride: stride[axis], dilation: dilation[axis] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(input: usize, kernel: usize, stride: usize, dilation: usize) -> (usize, usize) {
        PaddingConfig1d::Same.pairs(windows(&[1, 1, input], [kernel], [stride], [dilation]))[0]
    }

    #[test]
    fn same_padding_keeps_the_number_of_windows() {
        assert_eq!(same(10, 3, 1, 1), (1, 1));
        assert_eq!(same(10, 4, 1, 1), (1, 2));
        assert_eq!(same(10, 3, 1, 2), (2, 2));
        assert_eq!(same(10, 3, 2, 1), (0, 1));
        assert_eq!(same(10, 1, 3, 1), (0, 0));
        for input in 1..12 {
            for kernel in 1..5 {
                for stride in 1..4 {
                    for dilation in 1..3 {
                        let (before, after) = same(input, kernel, stride, dilation);
                        let extent = dilation * (kernel - 1) + 1;
                        let count = (input + before + after - extent) / stride + 1;
                        assert_eq!(count, input.div_ceil(stride));
                    }
                }
            }
        }
    }

    #[test]
    fn explicit_padding_of_an_image_is_top_left_bottom_right() {
        let image = windows(&[1, 1, 5, 5], [3, 3], [1, 1], [1, 1]);
        assert_eq!(PaddingConfig2d::Explicit(1, 2, 3, 4).pairs(image), [(1, 3), (2, 4)]);
    }
}
