//! The backward pass: from a result to the leaves it depends on.
use alloc::collections::BinaryHeap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use hashbrown::HashMap;

use super::rules::{self, Backward};
use super::tape::{Call, Rule, Saved, Step};
use super::{Entry, Gradients};
use crate::raw::RawTensor;

/// An entry in the order of the walk: newest first, so that an entry comes after everything that was computed from it.
struct Next(Arc<Entry>);

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Next {}

impl RawTensor {
    /// Gradients of the sum of this tensor's elements for every leaf it depends on. Consumes the graph: a second pass over any part of it panics.
    ///
    /// Panics at the caller if the tensor is not tracked, or the graph was consumed.
    #[track_caller]
    pub fn backward(&self) -> Gradients {
        self.walk(false)
    }

    /// [`RawTensor::backward`], but the graph stays and the gradients are tracked themselves, for derivatives of higher order.
    #[track_caller]
    pub fn backward_keeping_graph(&self) -> Gradients {
        self.walk(true)
    }

    #[track_caller]
    fn walk(&self, keep_graph: bool) -> Gradients {
        let Some(root) = &self.tape else {
            panic!(
                "backward: the tensor depends on no tensor that requires a gradient: did you forget to call require_grad? Shape {:?}",
                self.dims()
            );
        };
        let context = if keep_graph { self.context } else { self.context.without_autodiff() };
        let one = RawTensor { context, ..RawTensor::ones(&self.device().without_autodiff(), self.dims(), self.dtype()) };
        let mut gradients = Gradients::new();
        let mut pending: HashMap<u64, RawTensor> = HashMap::new();
        let mut heap = BinaryHeap::new();
        #[cfg(feature = "std")]
        let (mut marked, mut steps) = (Vec::new(), 0);
        pending.insert(root.id, one);
        heap.push(Next(root.clone()));
        while let Some(Next(entry)) = heap.pop() {
            let dy = pending.remove(&entry.id).expect("an entry is queued with its gradient");
            if entry.leaf {
                gradients.insert(entry.id, dy);
                #[cfg(feature = "std")]
                marked.extend(entry.distributed.get().map(|param| (*param, entry.id)));
                continue;
            }
            #[cfg(feature = "std")]
            {
                steps += 1;
            }
            let (contributions, parents) = {
                let mut step = entry.step();
                let contributions = match &*step {
                    Some(s) => differentiate(s, &dy, keep_graph.then_some(&entry)),
                    None => panic!(
                        "backward: this graph, or a part of it, was consumed by an earlier backward: compute the forward pass again, or add losses that share \
                         intermediate results before one backward: shape {:?}",
                        self.dims()
                    ),
                };
                let parents = if keep_graph {
                    step.as_ref().map(|s| s.parents.clone()).unwrap_or_default()
                } else {
                    step.take().map(|s| s.parents).unwrap_or_default()
                };
                (contributions, parents)
            };
            for (parent, grad) in parents.into_iter().zip(contributions) {
                let (Some(parent), Some(grad)) = (parent, grad) else {
                    continue;
                };
                match pending.remove(&parent.id) {
                    Some(sum) => {
                        pending.insert(parent.id, sum.add(&grad));
                    }
                    None => {
                        pending.insert(parent.id, grad);
                        heap.push(Next(parent));
                    }
                }
            }
        }
        #[cfg(feature = "std")]
        crate::config::backward_passed(steps, gradients.iter().map(|(_, gradient)| gradient));
        #[cfg(feature = "std")]
        if !marked.is_empty() {
            crate::distributed::reduce_gradients(&self.device(), &mut gradients, marked);
        }
        gradients
    }
}

/// The gradients of a step's operands. With `tracked`, what was saved is given back its place in the graph, so that the gradients are tracked.
fn differentiate(step: &Step, dy: &RawTensor, tracked: Option<&Arc<Entry>>) -> Vec<Option<RawTensor>> {
    match &step.rule {
        Rule::Elementwise(e) => rules::row_gradients(*e, &Backward { step, dy, tracked }),
        Rule::Op(op) => rules::gradients(op, &Backward { step, dy, tracked }),
        Rule::Custom(rule) => {
            let b = Backward { step, dy, tracked };
            let inputs = step.saved.iter().enumerate();
            let inputs = inputs.filter(|(_, s)| matches!(s, Saved::Value(_))).map(|(i, _)| b.value(i)).collect();
            rule(&Call { dy, inputs, output: step.output.is_some().then(|| b.output()) })
        }
    }
}
