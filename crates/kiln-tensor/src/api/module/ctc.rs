//! Connectionist temporal classification.

use kiln_ir::Elementwise::{Eq, Lt};

use crate::api::Tensor;
use crate::api::kind::Int;
use crate::raw::RawTensor;

/// The negative log-likelihood of label sequences under per-step log-probabilities, over all alignments with blanks and repetitions: shape
/// `[batch]`. `log_probs` is `[steps, batch, classes]`, `targets` `[batch, labels]` (padded), the lengths `[batch]`. A sequence that no
/// alignment produces has infinite loss.
///
/// A. Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with recurrent neural networks", 2006.
///
/// ```
/// use kiln_tensor::{Device, Int, Tensor, module::ctc_loss};
/// let device = Device::default();
/// // Two steps, blank and one label with even odds: three of the four paths spell the label.
/// let log_probs = Tensor::<3>::full([2, 1, 2], 0.5f32.ln(), &device);
/// let one = |x: i64| Tensor::<1, Int>::from_data([x], &device);
/// let loss = ctc_loss(log_probs, Tensor::from_data([[1]], &device), one(2), one(1), 0);
/// assert!((loss.into_scalar::<f32>() + 0.75f32.ln()).abs() < 1e-6);
/// ```
///
/// # Panics
/// When the shapes do not fit, there is no step, or `blank` is no class.
#[track_caller]
pub fn ctc_loss(
    log_probs: Tensor<3>,
    targets: Tensor<2, Int>,
    input_lengths: Tensor<1, Int>,
    target_lengths: Tensor<1, Int>,
    blank: usize,
) -> Tensor<1> {
    Tensor::from_raw(ctc(&log_probs.raw, &targets.raw, &input_lengths.raw, &target_lengths.raw, blank))
}

#[track_caller]
fn ctc(log_probs: &RawTensor, targets: &RawTensor, input_lengths: &RawTensor, target_lengths: &RawTensor, blank: usize) -> RawTensor {
    let (steps, batch, classes) = (log_probs.dims()[0], log_probs.dims()[1], log_probs.dims()[2]);
    let labels = targets.dims()[1];
    let fits = targets.dims()[0] == batch && input_lengths.dims() == [batch] && target_lengths.dims() == [batch];
    assert!(
        fits && steps > 0 && blank < classes,
        "ctc_loss: log_probs {:?}, targets {:?}, lengths {:?} and {:?}, blank {blank}",
        log_probs.dims(),
        targets.dims(),
        input_lengths.dims(),
        target_lengths.dims()
    );
    let device = log_probs.device().without_autodiff();
    let length = |x: &RawTensor| x.cast(RawTensor::INDEX).reshape(&[batch, 1]);
    let (input_lengths, target_lengths) = (length(input_lengths), length(target_lengths));
    let nothing = |width: usize| RawTensor::constant(&device, &[batch, width], log_probs.dtype(), f64::NEG_INFINITY);

    // Labels with blanks between and around them.
    let blanks = |width: usize| RawTensor::constant(&device, &[batch, width], RawTensor::INDEX, blank as f64);
    let between = RawTensor::cat(&[blanks(labels).unsqueeze(2), targets.cast(RawTensor::INDEX).unsqueeze(2)], 2);
    let states = RawTensor::cat(&[between.reshape(&[batch, 2 * labels]), blanks(1)], 1);
    let width = 2 * labels + 1;
    let scores = log_probs.gather(2, &states.unsqueeze(0).expand(&[steps, batch, width]));
    let score = |step: usize| scores.narrow(0, step, 1).reshape(&[batch, width]);

    // A blank may be skipped between two labels that differ.
    let skips = (width > 2).then(|| {
        let differ = states.narrow(1, 2, width - 2).ne(&states.narrow(1, 0, width - 2));
        RawTensor::cat(&[RawTensor::zeros(&device, &[batch, 2], kiln_ir::DType::Bool), differ], 1)
    });

    // Before the first step only the start is possible; the first step goes to the first blank or the first label.
    let position = RawTensor::iota(&device, &[batch, width], RawTensor::INDEX, 1);
    let before = nothing(width).fill_constant(&position.with_constant(Eq, 0.0), 0.0);
    let first = nothing(width).mask_where(&position.with_constant(Lt, 2.0), &score(0));
    let mut reached = before.mask_where(&input_lengths.with_constant(kiln_ir::Elementwise::Gt, 0.0), &first);
    for step in 1..steps {
        let mut ways = alloc::vec![reached.clone()];
        if width > 1 {
            ways.push(RawTensor::cat(&[nothing(1), reached.narrow(1, 0, width - 1)], 1));
        }
        if let Some(skips) = &skips {
            let from_label = RawTensor::cat(&[nothing(2), reached.narrow(1, 0, width - 2)], 1);
            ways.push(nothing(width).mask_where(skips, &from_label));
        }
        let ways: alloc::vec::Vec<RawTensor> = ways.iter().map(|way| way.unsqueeze(0)).collect();
        let next = RawTensor::cat(&ways, 0).log_sum_exp(&[0]).squeeze(0).add(&score(step));
        reached = reached.mask_where(&input_lengths.gt_scalar(step as i64), &next);
    }

    // A sequence ends in its last label or the blank after it.
    let last = target_lengths.mul_scalar(2i64);
    let in_blank = reached.gather(1, &last);
    let in_label = reached.gather(1, &last.sub_scalar(1i64).max_scalar(0i64));
    let in_label = in_label.fill_constant(&target_lengths.with_constant(Eq, 0.0), f64::NEG_INFINITY);
    RawTensor::cat(&[in_blank, in_label], 1).log_sum_exp(&[1]).neg().reshape(&[batch])
}
