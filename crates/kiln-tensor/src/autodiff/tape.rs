//! The tape: entries beside tracked tensors.
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use kiln_ir::{DType, Dims, Elementwise, Op};
use smallvec::SmallVec;

use super::rules;
use crate::device::Context;
use crate::lock::{Guard, Mutex};
use crate::raw::RawTensor;
use crate::trace::{Operand, ScalarWord, Slot};

/// Entries are numbered through the process: an entry's parents have smaller numbers.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// How a tracked tensor came to be. Shared by the clones of the tensor.
pub(crate) struct Entry {
    /// Creation order.
    pub id: u64,
    /// Whether this is a tensor that retains its gradient; it has no step.
    pub leaf: bool,
    /// Of a leaf: the parameter that other devices have too.
    #[cfg(feature = "std")]
    pub distributed: std::sync::OnceLock<crate::distributed::DistributedParamId>,
    /// How it was computed, until a backward pass consumes it.
    step: Mutex<Option<Step>>,
}

/// What the rule of an op may need of an operand.
pub(super) enum Saved {
    /// Nothing: its sizes and dtype are the result's.
    Same,
    /// Only its type.
    Type(Box<(Dims, DType)>),
    /// Its elements.
    Value(Arc<Slot>),
    /// A scalar.
    Scalar(ScalarWord),
}

/// A gradient rule.
pub(super) enum Rule {
    /// That of a row of the table.
    Elementwise(Elementwise),
    /// That of another op of the language.
    Op(Box<Op>),
    /// That of a composed op which knows a shorter one than its parts'.
    Custom(Arc<CustomRule>),
}

/// A rule of its own: from what it gets to the gradients of the inputs, in their order.
pub(super) type CustomRule = dyn Fn(&Call<'_>) -> Vec<Option<RawTensor>> + Send + Sync;

/// One computed tensor: what made it, from what.
pub(super) struct Step {
    pub rule: Rule,
    pub parents: SmallVec<[Option<Arc<Entry>>; 2]>,
    pub saved: SmallVec<[Saved; 2]>,
    /// The result, if the rule needs it.
    pub output: Option<Arc<Slot>>,
    /// The second result, if the rule needs it.
    pub extra: Option<Arc<Slot>>,
    pub context: Context,
}

/// What a custom rule gets.
pub(crate) struct Call<'a> {
    /// Gradient of the result.
    pub dy: &'a RawTensor,
    pub(super) inputs: Vec<RawTensor>,
    pub(super) output: Option<RawTensor>,
}

impl Call<'_> {
    /// An operand.
    pub fn input(&self, i: usize) -> &RawTensor {
        &self.inputs[i]
    }

    /// The result.
    pub fn output(&self) -> &RawTensor {
        self.output.as_ref().expect("the rule keeps its output")
    }
}

/// What a custom rule keeps for the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Nothing.
    Nothing,
    /// The operands.
    Inputs,
    /// The result.
    Output,
}

impl Entry {
    #[inline(always)]
    fn new(leaf: bool, step: Option<Step>) -> Self {
        Entry {
            id: NUMBERS.fetch_add(1, Ordering::Relaxed),
            leaf,
            #[cfg(feature = "std")]
            distributed: std::sync::OnceLock::new(),
            step: Mutex::new(step),
        }
    }

    /// A tensor that retains its gradient.
    pub fn leaf() -> Arc<Self> {
        Arc::new(Entry::new(true, None))
    }

    #[inline(always)]
    fn computed(step: Step) -> Arc<Self> {
        Arc::new(Entry::new(false, Some(step)))
    }

    /// Moves the parents out.
    #[inline]
    fn give_up(&mut self, to: &mut Vec<Arc<Entry>>) {
        if let Some(step) = self.step.get_mut() {
            to.extend(step.parents.iter_mut().filter_map(Option::take));
        }
    }

    /// The step, unless it was consumed.
    pub(super) fn step(&self) -> Guard<'_, Option<Step>> {
        self.step.lock()
    }
}

impl Drop for Entry {
    /// Frees the chain of parents that this entry alone holds, without recursion: graphs may be deep.
    fn drop(&mut self) {
        let mut parents = Vec::new();
        self.give_up(&mut parents);
        while let Some(mut parent) = parents.pop() {
            // An entry that nobody else holds is emptied before it is dropped. Where another thread lets go of it at the same moment, whoever is last comes here again.
            if let Some(entry) = Arc::get_mut(&mut parent) {
                entry.give_up(&mut parents);
            }
        }
    }
}

/// Puts the result of an op on the tape.
pub(crate) fn track(op: &Op, operands: &[Operand<'_>], output: RawTensor, extra: Option<&RawTensor>) -> RawTensor {
    let entry = |o: &Operand<'_>| match o {
        Operand::Tensor(t) => t.tape.clone(),
        Operand::Scalar(_) => None,
    };
    // Most ops have two operands, whose lists are made in place.
    let parents: SmallVec<[Option<Arc<Entry>>; 2]> = match operands {
        [a, b] => SmallVec::from_buf([entry(a), entry(b)]),
        all => all.iter().map(entry).collect(),
    };
    let tracked = parents.iter().enumerate().fold(0, |bits, (i, p)| bits | (p.is_some() as u32) << i.min(31));
    let needs = rules::needs(op, tracked);
    let rule = match op {
        Op::Elementwise(e) => Rule::Elementwise(*e),
        other => Rule::Op(Box::new(other.clone())),
    };
    let is_elementwise = matches!(rule, Rule::Elementwise(_));
    let save = |i: usize, o: &Operand<'_>| match o {
        Operand::Scalar(s) => Saved::Scalar(*s),
        Operand::Tensor(t) if needs.operands >> i.min(31) & 1 == 1 => Saved::Value(t.slot.clone()),
        Operand::Tensor(_) if is_elementwise => Saved::Same,
        Operand::Tensor(t) => Saved::Type(Box::new((t.slot.dims.clone(), t.slot.dtype))),
    };
    let saved = match operands {
        [a, b] => SmallVec::from_buf([save(0, a), save(1, b)]),
        all => all.iter().enumerate().map(|(i, o)| save(i, o)).collect(),
    };
    let step = Step {
        rule,
        parents,
        saved,
        output: needs.output.then(|| output.slot.clone()),
        extra: extra.filter(|_| needs.extra).map(|e| e.slot.clone()),
        context: output.context,
    };
    RawTensor { tape: Some(Entry::computed(step)), ..output }
}

/// Puts an untracked result of a composed op on the tape, with a rule of its own. Without a tracked input the rule is dropped.
pub(crate) fn custom(
    inputs: &[&RawTensor],
    output: RawTensor,
    keep: Keep,
    rule: impl Fn(&Call<'_>) -> Vec<Option<RawTensor>> + Send + Sync + 'static,
) -> RawTensor {
    debug_assert!(output.tape.is_none(), "a custom rule's output is computed from untracked inputs");
    if inputs.iter().all(|x| x.tape.is_none()) {
        return output;
    }
    tracked(inputs, output, keep, Rule::Custom(Arc::new(rule)))
}

/// [`custom`] with a tracked input: code that is compiled once.
fn tracked(inputs: &[&RawTensor], output: RawTensor, keep: Keep, rule: Rule) -> RawTensor {
    let save = |x: &&RawTensor| match keep {
        Keep::Inputs => Saved::Value(x.slot.clone()),
        Keep::Nothing | Keep::Output => Saved::Same,
    };
    let step = Step {
        rule,
        parents: inputs.iter().map(|x| x.tape.clone()).collect(),
        saved: inputs.iter().map(save).collect(),
        output: (keep == Keep::Output).then(|| output.slot.clone()),
        extra: None,
        context: output.context,
    };
    RawTensor { tape: Some(Entry::computed(step)), ..output }
}
