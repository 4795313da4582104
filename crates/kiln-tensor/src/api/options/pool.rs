//! Options of pools, one array entry per spatial axis.

/// Options of a max pool. Without more, the windows do not overlap, and there is no padding.
///
/// ```
/// use kiln_tensor::ops::MaxPoolOptions;
/// let options = MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_padding([1, 1]);
/// assert_eq!(options.dilation, [1, 1]);
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct MaxPoolOptions<const N: usize> {
    /// Window sizes.
    pub kernel_size: [usize; N],
    /// Distance between windows.
    pub stride: [usize; N],
    /// Padding before and after; it never wins.
    pub padding: [(usize, usize); N],
    /// Distance between the elements of a window.
    pub dilation: [usize; N],
    /// Whether the number of windows rounds up.
    pub ceil_mode: bool,
}

impl<const N: usize> MaxPoolOptions<N> {
    /// Windows of the given sizes, side by side.
    pub fn new(kernel_size: [usize; N]) -> Self {
        Self { kernel_size, stride: kernel_size, padding: [(0, 0); N], dilation: [1; N], ceil_mode: false }
    }

    /// Sets the distance between windows.
    #[must_use]
    pub fn with_stride(self, stride: [usize; N]) -> Self {
        Self { stride, ..self }
    }

    /// Sets the padding of each side.
    #[must_use]
    pub fn with_padding(self, padding: [usize; N]) -> Self {
        self.with_padding_pairs(padding.map(|p| (p, p)))
    }

    /// Sets the padding before and after.
    #[must_use]
    pub fn with_padding_pairs(self, padding: [(usize, usize); N]) -> Self {
        Self { padding, ..self }
    }

    /// Sets the distance between the elements of a window.
    #[must_use]
    pub fn with_dilation(self, dilation: [usize; N]) -> Self {
        Self { dilation, ..self }
    }

    /// Sets whether the number of windows rounds up.
    #[must_use]
    pub fn with_ceil_mode(self, ceil_mode: bool) -> Self {
        Self { ceil_mode, ..self }
    }

    /// Whether some axis has other padding before than after.
    pub fn is_asymmetric(&self) -> bool {
        self.padding.iter().any(|(before, after)| before != after)
    }
}

/// Options of an average pool. Without more, the windows do not overlap, and there is no padding.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct AvgPoolOptions<const N: usize> {
    /// Window sizes.
    pub kernel_size: [usize; N],
    /// Distance between windows.
    pub stride: [usize; N],
    /// Zeros before and after.
    pub padding: [(usize, usize); N],
    /// Whether padding counts in the mean's denominator.
    pub count_include_pad: bool,
    /// Whether the number of windows rounds up.
    pub ceil_mode: bool,
}

impl<const N: usize> AvgPoolOptions<N> {
    /// Windows of the given sizes, side by side; padding counts.
    pub fn new(kernel_size: [usize; N]) -> Self {
        Self { kernel_size, stride: kernel_size, padding: [(0, 0); N], count_include_pad: true, ceil_mode: false }
    }

    /// Sets the distance between windows.
    #[must_use]
    pub fn with_stride(self, stride: [usize; N]) -> Self {
        Self { stride, ..self }
    }

    /// Sets the padding of each side.
    #[must_use]
    pub fn with_padding(self, padding: [usize; N]) -> Self {
        self.with_padding_pairs(padding.map(|p| (p, p)))
    }

    /// Sets the padding before and after.
    #[must_use]
    pub fn with_padding_pairs(self, padding: [(usize, usize); N]) -> Self {
        Self { padding, ..self }
    }

    /// Sets whether padding counts in the mean's denominator.
    #[must_use]
    pub fn with_count_include_pad(self, count_include_pad: bool) -> Self {
        Self { count_include_pad, ..self }
    }

    /// Sets whether the number of windows rounds up.
    #[must_use]
    pub fn with_ceil_mode(self, ceil_mode: bool) -> Self {
        Self { ceil_mode, ..self }
    }

    /// Whether some axis has other padding before than after.
    pub fn is_asymmetric(&self) -> bool {
        self.padding.iter().any(|(before, after)| before != after)
    }
}
