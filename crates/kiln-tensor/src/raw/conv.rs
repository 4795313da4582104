//! Convolutions in one, two and three spatial axes, and transposed ones.
use kiln_ir::op::ConvAttrs;
use kiln_ir::{Dims, Op};

use super::{RawTensor, apply, apply_as};
use crate::trace::Operand;

/// Options of a convolution, one entry per spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvOptions<'a> {
    /// Distance between outputs.
    pub stride: &'a [usize],
    /// Zeros before and after.
    pub padding: &'a [(usize, usize)],
    /// Distance between kernel elements.
    pub dilation: &'a [usize],
    /// Number of independent channel groups.
    pub groups: usize,
}

/// Options of a transposed convolution, one entry per spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvTransposeOptions<'a> {
    /// Distance between inputs in the output.
    pub stride: &'a [usize],
    /// Elements cut from both ends of the output.
    pub padding: &'a [usize],
    /// Elements added at the end of the output.
    pub padding_out: &'a [usize],
    /// Distance between kernel elements.
    pub dilation: &'a [usize],
    /// Number of independent channel groups.
    pub groups: usize,
}

impl RawTensor {
    /// Convolution of `x [n, c, spatial...]` with `weight [o, c / groups, kernel...]`, plus `bias [o]`: `[n, o, spatial...]`.
    #[track_caller]
    pub fn conv(&self, weight: &RawTensor, bias: Option<&RawTensor>, o: &ConvOptions<'_>) -> RawTensor {
        let n = self.rank().saturating_sub(2);
        if n == 0 || [o.stride.len(), o.padding.len(), o.dilation.len()] != [n; 3] {
            panic!("conv: options for {} spatial axes, input {:?}, weight {:?}", o.stride.len(), self.dims(), weight.dims());
        }
        let attrs =
            ConvAttrs { stride: o.stride.into(), dilation: o.dilation.into(), padding: o.padding.into(), groups: o.groups, channels_last: false };
        let y = apply(Op::Conv(attrs), &[Operand::Tensor(self), Operand::Tensor(weight)]);
        y.add_channel_bias(bias)
    }

    /// Transposed convolution of `x [n, c, spatial...]` with `weight [c, o / groups, kernel...]`, plus `bias [o]`.
    #[track_caller]
    pub fn conv_transpose(&self, weight: &RawTensor, bias: Option<&RawTensor>, o: &ConvTransposeOptions<'_>) -> RawTensor {
        let n = self.rank().saturating_sub(2);
        let options = [o.stride.len(), o.padding.len(), o.padding_out.len(), o.dilation.len()];
        if n == 0 || weight.rank() != n + 2 || options != [n; 4] {
            panic!("conv_transpose: options for {} spatial axes, input {:?}, weight {:?}", o.stride.len(), self.dims(), weight.dims());
        }
        if self.dims()[1] != weight.dims()[0] || o.groups == 0 || !self.dims()[1].is_multiple_of(o.groups) {
            panic!(
                "conv_transpose: channels must match: input {:?} has {}, weight {:?} takes {} in {} groups",
                self.dims(),
                self.dims()[1],
                weight.dims(),
                weight.dims()[0],
                o.groups
            );
        }
        if o.stride.contains(&0) || o.dilation.contains(&0) || weight.dims()[2..].contains(&0) {
            panic!(
                "conv_transpose: stride {:?}, dilation {:?} and kernel sizes must be positive: input {:?}, weight {:?}",
                o.stride,
                o.dilation,
                self.dims(),
                weight.dims()
            );
        }
        let mut dims = Dims::from_slice(&[self.dims()[0], weight.dims()[1].saturating_mul(o.groups)]);
        let mut padding = smallvec::SmallVec::new();
        for s in 0..n {
            let span = kiln_ir::infer::span(weight.dims()[s + 2], o.dilation[s]);
            let reach = self.dims()[s + 2].saturating_sub(1).saturating_mul(o.stride[s]);
            let full = reach.saturating_add(span).saturating_add(o.padding_out[s]);
            if self.dims()[s + 2] == 0 || full <= o.padding[s].saturating_mul(2) {
                panic!("conv_transpose: padding {:?} leaves nothing of input {:?}, weight {:?}", o.padding, self.dims(), weight.dims());
            }
            dims.push(full - 2 * o.padding[s]);
            // As a gradient it belongs to a convolution from the result to the input. What padding_out adds at the end is cut there by the
            // division of its output size, or by a smaller padding after.
            padding.push((o.padding[s], o.padding[s]));
        }
        let attrs = ConvAttrs { stride: o.stride.into(), dilation: o.dilation.into(), padding, groups: o.groups, channels_last: false };
        let whole = transposed(self, weight, attrs, &dims, o.padding_out);
        whole.add_channel_bias(bias)
    }

    /// Adds `bias [c]` to axis 1.
    #[track_caller]
    fn add_channel_bias(self, bias: Option<&RawTensor>) -> RawTensor {
        let Some(b) = bias else {
            return self;
        };
        if b.rank() != 1 || b.dims()[0] != self.dims()[1] {
            panic!("conv: bias {:?}, output {:?}: the bias needs one element a channel", b.dims(), self.dims());
        }
        let mut dims = Dims::from_elem(1, self.rank());
        dims[1] = b.dims()[0];
        self.add(&b.reshape(&dims))
    }
}

/// The input gradient of the convolution that maps `dims` to `x`. Where `padding_out` reaches the stride (it may with a dilation), that convolution would have one
/// more output, so the result is made shorter and padded with zeros.
#[track_caller]
fn transposed(x: &RawTensor, weight: &RawTensor, attrs: ConvAttrs, dims: &[usize], padding_out: &[usize]) -> RawTensor {
    let mut inner = Dims::from_slice(dims);
    let mut pads: smallvec::SmallVec<[(usize, usize); 6]> = smallvec::SmallVec::from_elem((0, 0), dims.len());
    for (s, extra) in padding_out.iter().enumerate() {
        let surplus = (extra + 1).saturating_sub(attrs.stride[s]);
        inner[s + 2] -= surplus;
        pads[s + 2].1 = surplus;
    }
    let y = apply_as(Op::ConvInputGrad(attrs), &[Operand::Tensor(x), Operand::Tensor(weight)], &inner, x.dtype());
    y.pad_zeros(&pads)
}
