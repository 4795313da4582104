//! Bincode records of optimizers and schedulers, which tell neither names nor types: the states that Burn 0.21 had are tried one after the other.

use std::collections::BTreeMap;

use kiln_tensor::Bytes;

use super::super::burnpack::{PackTensor, Scalar};
use super::bincode::{Cursor, ID_LEN};
use super::record::param_id;

/// A part of a state, in the order of its bytes.
enum Part {
    Number(&'static str),
    Tensor(&'static str),
    /// Behind a byte that tells whether it is there.
    Maybe(&'static str),
}

use Part::{Maybe, Number, Tensor};

/// The states of Burn 0.21's optimizers.
const STATES: [&[Part]; 6] = [
    // Adam, AdamW.
    &[Number("momentum.time"), Tensor("momentum.moment_1"), Tensor("momentum.moment_2"), Maybe("momentum.max_moment_2")],
    // Adan.
    &[
        Number("momentum.time"),
        Tensor("momentum.exp_avg"),
        Tensor("momentum.exp_avg_sq"),
        Tensor("momentum.exp_avg_diff"),
        Tensor("momentum.neg_pre_grad"),
    ],
    // SGD.
    &[Maybe("momentum.velocity")],
    // RMSprop.
    &[Tensor("square_avg.square_avg"), Maybe("centered.grad_avg"), Tensor("centered.avg"), Maybe("momentum.buf")],
    // AdaGrad.
    &[Number("lr_decay.time"), Tensor("lr_decay.sum")],
    // Muon.
    &[Tensor("momentum.velocity")],
];

/// What an optimizer's record holds.
#[derive(Default)]
pub(super) struct States {
    pub(super) tensors: Vec<PackTensor>,
    pub(super) scalars: BTreeMap<String, Scalar>,
}

/// Reads an optimizer's record from `offset` on; `None` if it is none.
///
/// Where the bytes fit several optimizers (a velocity behind a tag of 1, a sum behind a time of 1), the parts have the names of all of them, and each
/// optimizer finds its own.
pub(super) fn optimizer(bytes: &Bytes, offset: usize) -> Option<States> {
    let fitting: Vec<States> = STATES.iter().filter_map(|parts| all(bytes, offset, parts)).collect();
    fitting.into_iter().reduce(|mut first, second| {
        let known: Vec<String> = first.tensors.iter().map(|tensor| tensor.name.clone()).collect();
        first.tensors.extend(second.tensors.into_iter().filter(|tensor| !known.contains(&tensor.name)));
        first.scalars.extend(second.scalars);
        first
    })
}

/// A map of ids to states of one kind that ends where the file does.
fn all(bytes: &Bytes, offset: usize, parts: &[Part]) -> Option<States> {
    let mut cursor = Cursor { bytes, offset };
    let mut states = States::default();
    // Entries are read one by one, so a number that is not true costs nothing.
    for _ in 0..cursor.uint()? {
        let id = cursor.text().filter(|id| id.len() == ID_LEN).and_then(param_id)?;
        // The first version, of a tensor of rank 0 to 8.
        let (version, rank) = (cursor.uint()?, cursor.uint()?);
        if version != 0 || rank > 8 {
            return None;
        }
        for part in parts {
            let (name, is_tensor) = match part {
                Number(name) => (name, false),
                Tensor(name) => (name, true),
                Maybe(name) => match cursor.uint()? {
                    0 => continue,
                    1 => (name, true),
                    _ => return None,
                },
            };
            let name = format!("{id}.{name}");
            match is_tensor {
                true => states.tensors.push(cursor.tensor(bytes, name, id).filter(|tensor| tensor.shape.num_dims() as u64 == rank)?),
                false => {
                    states.scalars.insert(name, Scalar::UInt(cursor.uint()?));
                }
            }
        }
        states.scalars.insert(format!("{id}.__rank"), Scalar::UInt(rank));
    }
    (cursor.offset == bytes.len() && !states.scalars.is_empty()).then_some(states)
}

/// The number that a scheduler's record is, read in each way that its bytes allow: `#uint`, `#int` and `#float`.
pub(super) fn scheduler(bytes: &[u8], offset: usize) -> BTreeMap<String, Scalar> {
    let mut numbers = BTreeMap::new();
    let mut cursor = Cursor { bytes, offset };
    if let Some(value) = cursor.uint().filter(|_| cursor.offset == bytes.len()) {
        numbers.insert("#uint".into(), Scalar::UInt(value));
        // Signed numbers alternate: 0, -1, 1, -2, ...
        numbers.insert("#int".into(), Scalar::Int((value >> 1) as i64 ^ -((value & 1) as i64)));
    }
    if let Some(Ok(value)) = bytes.get(offset..).map(<[u8; 8]>::try_from) {
        numbers.insert("#float".into(), Scalar::Float(f64::from_le_bytes(value)));
    }
    numbers
}
