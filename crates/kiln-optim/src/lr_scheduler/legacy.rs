//! Records of schedulers that Burn 0.21 wrote: a bare number that does not say whose it is.

use kiln_module::record::RecordError;
use kiln_module::record::burnpack::Scalar;
use kiln_module::record::legacy::LegacyRecord;

use super::LrSchedulerRecord;

/// What schedulers of Burn 0.21 recorded, and what it is called now.
const FIELDS: [(&str, &str); 5] =
    [("Linear", "remaining_iters"), ("Cosine", "current_iter"), ("Noam", "step"), ("Exponential", "previous_lr"), ("Step", "iter_idx")];

/// The record of Burn 0.22 with the same content. Where the file does not tell the kind of scheduler, the number has the name that each kind knows it
/// by, and the scheduler that it is loaded into finds its own.
pub(super) fn read(file: &str, record: LegacyRecord) -> Result<LrSchedulerRecord, RecordError> {
    if let Some(tensor) = record.tensors.first() {
        return Err(RecordError::Validation(format!("{file}: no scheduler record: it holds the tensor `{}`", tensor.name)));
    }
    let mut read = LrSchedulerRecord::new();
    for (name, value) in &record.scalars {
        // A composed scheduler tells the kinds of its parts.
        if let Some((index, kind)) = name.strip_prefix("schedulers.").and_then(|rest| rest.split_once('.')) {
            if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == kind) {
                read = read.with_scalar(&format!("0.{index}.{field}"), *value);
            }
            continue;
        }
        for (kind, field) in FIELDS {
            let fits = match (kind, value) {
                ("Exponential", Scalar::Float(_)) => true,
                ("Exponential", _) | (_, Scalar::Float(_) | Scalar::Bool(_)) => false,
                // In bincode, only the scheduler by steps counts with signed numbers.
                ("Step", _) => name != "#uint",
                (_, Scalar::Int(_)) => false,
                (_, Scalar::UInt(_)) => true,
            };
            if fits {
                read = read.with_scalar(&format!("0.{field}"), *value);
            }
        }
    }
    Ok(read)
}
