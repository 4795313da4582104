//! Matrix products.
use kiln_ir::{Dims, Op, dims};

use super::{RawTensor, apply};
use crate::trace::Operand;

impl RawTensor {
    /// Matrix product over the last two axes, `[..., m, k] x [..., k, n] -> [..., m, n]`; leading axes are broadcast.
    ///
    /// When the right side is one matrix, the left side's leading axes become rows of one product, and so its gradient is one product too.
    #[track_caller]
    pub fn matmul(&self, rhs: &RawTensor) -> RawTensor {
        let (r, s) = (self.rank(), rhs.rank());
        if r < 2 || s < 2 {
            panic!("matmul: needs at least two axes: lhs {:?}, rhs {:?}", self.dims(), rhs.dims());
        }
        if self.is_quantized() != rhs.is_quantized() && self.dtype() != rhs.dtype() {
            let (lhs, rhs) = (self.computed_with(rhs), rhs.computed_with(self));
            if lhs.dtype() == rhs.dtype() {
                return lhs.matmul(&rhs);
            }
        }
        if self.dtype() != rhs.dtype() {
            panic!("matmul: dtypes differ: lhs {}{:?}, rhs {}{:?}", self.dtype(), self.dims(), rhs.dtype(), rhs.dims());
        }
        let (m, k, n) = (self.dims()[r - 2], self.dims()[r - 1], rhs.dims()[s - 1]);
        if rhs.dims()[s - 2] != k {
            panic!("matmul: inner sizes differ: lhs {:?}, rhs {:?}", self.dims(), rhs.dims());
        }
        let Some(mut dims) = dims::broadcast(&self.dims()[..r - 2], &rhs.dims()[..s - 2]) else {
            panic!("matmul: leading sizes don't broadcast: lhs {:?}, rhs {:?}", self.dims(), rhs.dims());
        };
        let one_rhs = rhs.dims()[..s - 2].iter().all(|d| *d == 1);
        let batch = dims.len();
        dims.push(m);
        dims.push(n);
        if one_rhs && dims.len() > 2 {
            let rows: usize = self.dims()[..r - 1].iter().product();
            let product = self.reshape(&[rows, k]).dot(&rhs.reshape(&[k, n]));
            return product.reshape(&dims);
        }
        let with_rank = |x: &RawTensor| {
            let mut d = Dims::from_elem(1, batch + 2 - x.rank());
            d.extend_from_slice(x.dims());
            x.reshape(&d)
        };
        with_rank(self).dot(&with_rank(rhs))
    }

    /// The dot op: operands of one rank.
    #[track_caller]
    pub(crate) fn dot(&self, rhs: &RawTensor) -> RawTensor {
        apply(Op::Dot, &[Operand::Tensor(self), Operand::Tensor(rhs)])
    }

    /// `x @ weight + bias` for `x [..., in]`, `weight [in, out]`, `bias [out]`.
    #[track_caller]
    pub fn linear(&self, weight: &RawTensor, bias: Option<&RawTensor>) -> RawTensor {
        let r = self.rank();
        if weight.rank() != 2 || r == 0 || self.dims()[r - 1] != weight.dims()[0] {
            panic!("linear: input {:?}, weight {:?}: the input's last size must be the weight's first", self.dims(), weight.dims());
        }
        let (rows, inner, n) = (self.dims()[..r - 1].iter().product(), self.dims()[r - 1], weight.dims()[1]);
        let mut y = self.reshape(&[rows, inner]).dot(weight);
        if let Some(b) = bias {
            if b.dims() != [n] {
                panic!("linear: bias {:?}, weight {:?}: the bias needs the weight's last size", b.dims(), weight.dims());
            }
            y = y.add(b);
        }
        let mut dims = Dims::from_slice(self.dims());
        dims[r - 1] = n;
        y.reshape(&dims)
    }
}
