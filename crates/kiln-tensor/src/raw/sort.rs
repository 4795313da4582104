//! Sorting.
use kiln_ir::Op;

use super::{RawTensor, apply_results};
use crate::trace::Operand;

impl RawTensor {
    /// Stable sort along an axis, NaN last (first when descending): values, and where they were (`I64`).
    #[track_caller]
    pub fn sort(&self, axis: usize, descending: bool) -> (RawTensor, RawTensor) {
        self.check_axis("sort", axis);
        let [values, indices] = apply_results(Op::Sort { axis, descending }, &[Operand::Tensor(self)]);
        (values, indices)
    }

    /// The `k` largest (or smallest) along an axis in order, and where they were.
    #[track_caller]
    pub fn topk(&self, axis: usize, k: usize, largest: bool) -> (RawTensor, RawTensor) {
        self.check_axis("topk", axis);
        if k > self.dims()[axis] {
            panic!("topk: {k} of {} elements on axis {axis}: {:?}", self.dims()[axis], self.dims());
        }
        let (values, indices) = self.sort(axis, largest);
        (values.narrow(axis, 0, k), indices.narrow(axis, 0, k))
    }
}
