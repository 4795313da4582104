//! The parameters of convolutions: kernels and bias, and what channels and groups must satisfy.

use kiln_module::module::{Initializer, Param};
use kiln_tensor::{Device, Tensor};

/// What the parameters of a convolution over `N` axes are made from.
pub(super) struct Kernels<'a, const N: usize> {
    /// The layer, for messages.
    pub(super) op: &'a str,
    /// The numbers of input and output channels.
    pub(super) channels: [usize; 2],
    pub(super) groups: usize,
    pub(super) size: [usize; N],
    pub(super) bias: bool,
    pub(super) initializer: &'a Initializer,
}

/// Kernels of rank `D`, and the bias.
type Parameters<const D: usize> = (Param<Tensor<D>>, Option<Param<Tensor<1>>>);

impl<const N: usize> Kernels<'_, N> {
    /// Kernels `[channels out, channels in / groups, ..]`.
    #[track_caller]
    pub(super) fn init<const D: usize>(&self, device: &Device) -> Parameters<D> {
        let [inputs, outputs] = self.checked();
        self.parameters([outputs, inputs / self.groups], [inputs, outputs], device)
    }

    /// Kernels `[channels in, channels out / groups, ..]` of a transposed convolution, in which the channels change places.
    #[track_caller]
    pub(super) fn init_transposed<const D: usize>(&self, device: &Device) -> Parameters<D> {
        let [inputs, outputs] = self.checked();
        self.parameters([inputs, outputs / self.groups], [outputs, inputs], device)
    }

    /// `fans` are the channels that each output depends on, and that each input acts on, before they are split into groups.
    fn parameters<const D: usize>(&self, first: [usize; 2], fans: [usize; 2], device: &Device) -> Parameters<D> {
        let elements: usize = self.size.iter().product();
        let [fan_in, fan_out] = fans.map(|channels| Some(channels / self.groups * elements));
        let shape: [usize; D] = core::array::from_fn(|axis| if axis < 2 { first[axis] } else { self.size[axis - 2] });
        let weight = self.initializer.init_with(shape, fan_in, fan_out, device);
        (weight, self.bias.then(|| self.initializer.init_with([self.channels[1]], fan_in, fan_out, device)))
    }

    #[track_caller]
    fn checked(&self) -> [usize; 2] {
        let Self { op, channels: [inputs, outputs], groups, .. } = *self;
        assert!(
            groups > 0 && inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups),
            "{op}: {inputs} input and {outputs} output channels are no multiples of {groups} groups"
        );
        self.channels
    }
}
