//! A flush: from a recording to settled slots.
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use kiln_ir::{Buffer, Graph, Op, OutputSpec, RuntimeError};

use super::cache::{Compiled, Entry, Variant};
use super::recording::{Code, Recording};
use crate::device::DeviceState;

/// After this many compilations for varying slice starts, all starts are read as arguments.
const MAX_WIDENED: u32 = 2;

/// Settles the live slots that a panic would leave pending.
struct Unsettled<'a>(&'a Recording);

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        for n in &self.0.live {
            if let Some(slot) = &self.0.nodes[*n as usize].slot {
                slot.settle(Err(RuntimeError::Poisoned("a panic while this tensor was computed".into())));
            }
        }
    }
}

/// Runs a recording and settles the slots that somebody holds.
pub(super) fn run(device: &'static DeviceState, r: &mut Recording) -> Result<(), RuntimeError> {
    find_owners(r);
    if r.live.is_empty() {
        return Ok(());
    }
    device.stats.flush();
    let [mut inputs, mut outputs] = core::mem::take(&mut r.buffers);
    let recording = &*r;
    let unsettled = Unsettled(recording);
    let result = execute(device, recording, &mut inputs, &mut outputs);
    inputs.clear();
    match &result {
        Ok(()) => {
            for (n, buffer) in recording.live.iter().zip(outputs.drain(..)) {
                if let Some(slot) = &recording.nodes[*n as usize].slot {
                    slot.settle(Ok(buffer));
                }
            }
        }
        Err(e) => {
            #[cfg(feature = "std")]
            if std::env::var_os("KILN_PANIC_ON_ERR").is_some_and(|v| v != "0") {
                panic!("{e}");
            }
            outputs.clear();
            for n in &recording.live {
                if let Some(slot) = &recording.nodes[*n as usize].slot {
                    slot.settle(Err(e.clone()));
                }
            }
        }
    }
    core::mem::forget(unsettled);
    r.buffers = [inputs, outputs];
    result
}

/// Which results somebody else holds, and which inputs nobody else holds.
fn find_owners(r: &mut Recording) {
    for (k, n) in r.nodes.iter().enumerate() {
        if let Some(slot) = &n.slot
            && Arc::strong_count(slot) > 1
            && !matches!(n.code, Code::Input(_))
        {
            r.live.push(k as u32);
        }
    }
    for n in &r.inputs {
        let slot = r.nodes[*n as usize].slot.as_ref();
        let donated = slot.is_some_and(|s| Arc::strong_count(s) == 1 && matches!(s.value(), Some(Ok(b)) if b.is_unique()));
        r.donated.push(donated);
    }
    // What another thread did with a buffer before it let go of it happened before this run.
    fence(Ordering::Acquire);
}

fn key(r: &Recording) -> u128 {
    let mut h = r.hash;
    h.word(0x6_0000 | r.live.len() as u64);
    for n in &r.live {
        h.word(*n as u64);
    }
    for chunk in r.donated.chunks(64) {
        h.word(chunk.iter().enumerate().fold(0, |w, (k, d)| w | (*d as u64) << k));
    }
    h.key()
}

/// Runs a recording. `inputs` and `outputs` come empty; the latter holds the live results afterwards.
fn execute(device: &'static DeviceState, r: &Recording, inputs: &mut Vec<Buffer>, outputs: &mut Vec<Buffer>) -> Result<(), RuntimeError> {
    let entry = device.cache.lock().entry(key(r), r);
    let compiled = program(device, r, &entry)?;
    for n in &r.inputs {
        match r.nodes[*n as usize].slot.as_ref().and_then(|s| s.value()) {
            Some(Ok(b)) => inputs.push(b.clone()),
            Some(Err(e)) => return Err(e.clone()),
            None => return Err(RuntimeError::Poisoned("a trace has an input that was never computed".into())),
        }
    }
    let Some(executable) = &compiled.executable else {
        return match &compiled.graph {
            Some(graph) => {
                outputs.extend(interpret(device, graph, inputs, &r.args)?);
                Ok(())
            }
            None => Err(RuntimeError::Unsupported("this device runs no programs".into())),
        };
    };
    for spec in &compiled.program.outputs {
        let buffer = match *spec {
            OutputSpec::New(bytes) => device.runtime.alloc(bytes)?,
            OutputSpec::Donated(i) | OutputSpec::SameAs(i) => inputs[i as usize].clone(),
            OutputSpec::SameAsOutput(o) => outputs[o as usize].clone(),
        };
        outputs.push(buffer);
    }
    device.runtime.run(&**executable, inputs, outputs, &r.args)
}

/// The program of a recording. Slice starts are built in the first time; one that is seen to vary becomes an argument.
fn program(device: &'static DeviceState, r: &Recording, entry: &Entry) -> Result<Arc<Compiled>, RuntimeError> {
    let mut variant = entry.variant.lock();
    let start = |s: usize| r.args[r.starts[s] as usize];
    let (built_in, widened) = match &*variant {
        None => ((0..r.starts.len()).map(|s| Some(start(s))).collect::<Vec<_>>(), 0),
        Some(v) => {
            let fits = |s: usize| v.built_in[s].is_none_or(|b| b == start(s));
            if (0..r.starts.len()).all(fits) {
                device.stats.hit();
                return Ok(v.compiled.clone());
            }
            let all = v.widened + 1 >= MAX_WIDENED;
            let widen = |s: usize| if all || !fits(s) { None } else { v.built_in[s] };
            ((0..r.starts.len()).map(widen).collect(), v.widened + 1)
        }
    };
    device.stats.compile();
    let graph = entry.graph(r.args.len(), &built_in);
    let compiled = Arc::new(compile(device, graph)?);
    *variant = Some(Variant { compiled: compiled.clone(), built_in, widened });
    Ok(compiled)
}

fn compile(device: &'static DeviceState, graph: Graph) -> Result<Compiled, RuntimeError> {
    if device.interpret {
        return Ok(Compiled { program: Arc::default(), executable: None, graph: Some(graph) });
    }
    let program = Arc::new(kiln_compiler::compile(&graph, device.runtime.limits()));
    #[cfg(feature = "std")]
    crate::config::program_compiled(&graph, &program);
    let executable = device.runtime.compile(program.clone())?;
    Ok(Compiled { program, executable: Some(executable), graph: None })
}

/// Executes a graph node by node on the host.
fn interpret(device: &'static DeviceState, graph: &Graph, inputs: &[Buffer], args: &[u64]) -> Result<Vec<Buffer>, RuntimeError> {
    let mut tensors = Vec::with_capacity(inputs.len());
    for node in &graph.nodes {
        if let Op::Input(n) = node.op {
            let buffer = &inputs[n as usize];
            let mut bytes = alloc::vec![0; buffer.bytes()];
            device.runtime.download(buffer, &mut bytes)?;
            tensors.push(kiln_ir::interp::Tensor::from_bytes(node.dtype, &node.dims, &bytes));
        }
    }
    let results = kiln_ir::interp::run(graph, &tensors, args).map_err(RuntimeError::Kernel)?;
    results.iter().map(|t| device.runtime.upload(&t.to_bytes())).collect()
}
