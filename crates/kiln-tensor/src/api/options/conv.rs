//! Options of convolutions, one array entry per spatial axis.

/// Options of a convolution.
///
/// ```
/// use kiln_tensor::ops::ConvOptions;
/// let options = ConvOptions::new([2, 2], [1, 1], [1, 1], 1);
/// assert_eq!(options.padding, [(1, 1), (1, 1)]);
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ConvOptions<const N: usize> {
    /// Distance between outputs.
    pub stride: [usize; N],
    /// Zeros before and after.
    pub padding: [(usize, usize); N],
    /// Distance between kernel elements.
    pub dilation: [usize; N],
    /// Number of independent groups of channels.
    pub groups: usize,
}

impl<const N: usize> ConvOptions<N> {
    /// Options with the same padding before and after.
    ///
    /// # Panics
    /// When a stride, a dilation or the number of groups is 0.
    #[track_caller]
    pub fn new(stride: [usize; N], padding: [usize; N], dilation: [usize; N], groups: usize) -> Self {
        Self::new_with_padding(stride, padding.map(|p| (p, p)), dilation, groups)
    }

    /// Options with `(before, after)` padding.
    ///
    /// # Panics
    /// When a stride, a dilation or the number of groups is 0.
    #[track_caller]
    pub fn new_with_padding(stride: [usize; N], padding: [(usize, usize); N], dilation: [usize; N], groups: usize) -> Self {
        check_steps("conv", &stride, &dilation);
        assert!(groups > 0, "conv: the number of groups must not be 0");
        Self { stride, padding, dilation, groups }
    }

    /// Whether some axis has other padding before than after.
    pub fn is_asymmetric(&self) -> bool {
        self.padding.iter().any(|(before, after)| before != after)
    }

    /// Padding before each axis.
    pub fn padding_begin(&self) -> [usize; N] {
        self.padding.map(|(before, _)| before)
    }

    /// Padding after each axis.
    pub fn padding_end(&self) -> [usize; N] {
        self.padding.map(|(_, after)| after)
    }

    /// Padding of each side.
    ///
    /// # Panics
    /// When the padding is asymmetric.
    #[track_caller]
    pub fn symmetric_padding(&self) -> [usize; N] {
        assert!(!self.is_asymmetric(), "conv: the padding {:?} is not symmetric", self.padding);
        self.padding_begin()
    }
}

#[track_caller]
pub(super) fn check_steps(op: &str, stride: &[usize], dilation: &[usize]) {
    assert!(!stride.contains(&0), "{op}: the stride {stride:?} contains 0");
    assert!(!dilation.contains(&0), "{op}: the dilation {dilation:?} contains 0");
}

/// Options of a convolution with separate padding at the end.
#[deprecated(note = "use `ConvOptions::new_with_padding`")]
#[derive(Clone, Debug)]
pub struct PaddedConvOptions<const N: usize> {
    /// The options; their padding is that at the beginning when `padding_end` is given.
    pub options: ConvOptions<N>,
    /// Padding at the end, if it differs.
    pub padding_end: Option<[usize; N]>,
}

#[allow(deprecated)]
impl<const N: usize> PaddedConvOptions<N> {
    /// Options with other padding at the beginning than at the end.
    ///
    /// # Panics
    /// As [`ConvOptions::new`].
    #[track_caller]
    pub fn asymmetric(stride: [usize; N], padding_begin: [usize; N], padding_end: [usize; N], dilation: [usize; N], groups: usize) -> Self {
        let options = ConvOptions::new(stride, padding_begin, dilation, groups);
        Self { options, padding_end: (padding_begin != padding_end).then_some(padding_end) }
    }

    /// Whether the two sides differ.
    pub fn is_asymmetric(&self) -> bool {
        self.padding_end.is_some() || self.options.is_asymmetric()
    }
}

#[allow(deprecated)]
impl<const N: usize> From<PaddedConvOptions<N>> for ConvOptions<N> {
    fn from(padded: PaddedConvOptions<N>) -> Self {
        let mut options = padded.options;
        if let Some(end) = padded.padding_end {
            for (pair, end) in options.padding.iter_mut().zip(end) {
                pair.1 = end;
            }
        }
        options
    }
}

#[allow(deprecated)]
impl<const N: usize> From<ConvOptions<N>> for PaddedConvOptions<N> {
    fn from(options: ConvOptions<N>) -> Self {
        let padding_end = options.is_asymmetric().then(|| options.padding_end());
        Self { options, padding_end }
    }
}

/// Options of a deformable convolution.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct DeformConvOptions<const N: usize> {
    /// Distance between outputs.
    pub stride: [usize; N],
    /// Zeros on each side.
    pub padding: [usize; N],
    /// Distance between kernel elements.
    pub dilation: [usize; N],
    /// Number of independent groups of channels.
    pub weight_groups: usize,
    /// Number of groups of channels that share offsets.
    pub offset_groups: usize,
}

impl<const N: usize> DeformConvOptions<N> {
    /// The options.
    ///
    /// # Panics
    /// When a stride, a dilation or a number of groups is 0.
    #[track_caller]
    pub fn new(stride: [usize; N], padding: [usize; N], dilation: [usize; N], weight_groups: usize, offset_groups: usize) -> Self {
        check_steps("deform_conv", &stride, &dilation);
        assert!(weight_groups > 0 && offset_groups > 0, "deform_conv: the number of groups must not be 0");
        Self { stride, padding, dilation, weight_groups, offset_groups }
    }
}

/// Options of a transposed convolution.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ConvTransposeOptions<const N: usize> {
    /// Distance between the outputs of neighbouring inputs.
    pub stride: [usize; N],
    /// Outputs cut off on each side.
    pub padding: [usize; N],
    /// Outputs added at the end.
    pub padding_out: [usize; N],
    /// Distance between kernel elements.
    pub dilation: [usize; N],
    /// Number of independent groups of channels.
    pub groups: usize,
}

impl<const N: usize> ConvTransposeOptions<N> {
    /// The options.
    ///
    /// # Panics
    /// When a stride, a dilation or the number of groups is 0.
    #[track_caller]
    pub fn new(stride: [usize; N], padding: [usize; N], padding_out: [usize; N], dilation: [usize; N], groups: usize) -> Self {
        check_steps("conv_transpose", &stride, &dilation);
        assert!(groups > 0, "conv_transpose: the number of groups must not be 0");
        Self { stride, padding, padding_out, dilation, groups }
    }
}

/// Options of unfolding an image into windows, and of folding windows back.
#[derive(Clone, Debug)]
pub struct UnfoldOptions {
    /// Distance between windows.
    pub stride: [usize; 2],
    /// Zeros on each side.
    pub padding: [usize; 2],
    /// Distance between the elements of a window.
    pub dilation: [usize; 2],
}

impl UnfoldOptions {
    /// The options.
    ///
    /// # Panics
    /// When a stride or a dilation is 0.
    #[track_caller]
    pub fn new(stride: [usize; 2], padding: [usize; 2], dilation: [usize; 2]) -> Self {
        check_steps("unfold", &stride, &dilation);
        Self { stride, padding, dilation }
    }
}
