//! A program ready to run: its works with loaded functions, its run-time scalars on the device, and the graphs captured of it.
use std::any::Any;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_ir::{BufId, Executable, Place, Program, RuntimeError};

use crate::device::Context;
use crate::driver::{Address, Handle, LaunchAttribute, LaunchConfig};
use crate::kernels::Function;
use crate::lowered::{Word, Work};
use crate::memory::Block;
use crate::product::Activation;

/// A launch of a loaded function.
pub struct Call {
    /// Name of the function.
    pub name: String,
    /// The function.
    pub function: Function,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Parameters.
    pub params: Vec<Word>,
    /// Whether its text waits for the kernel in front and lets the next one start.
    pub chained: bool,
}

/// A work with its function.
pub enum Ready {
    /// Launch.
    Launch(Call),
    /// Anything else.
    Other(Work),
}

impl Ready {
    /// What it is, for a profile.
    pub fn label(&self) -> String {
        match self {
            Ready::Launch(c) => format!("{} {:?} x {}", c.name, c.grid, c.block[0]),
            Ready::Other(Work::Product(p)) => {
                let [m, n, k] = p.size;
                let follows = match p.activation {
                    None => "",
                    Some(Activation::Gelu { .. }) => " + gelu",
                    Some(Activation::GeluGrad { .. }) => " * gelu'",
                };
                let extra = format!("{follows}{}{}", if p.bias.is_some() { " + bias" } else { "" }, if p.added.is_some() { " + matrix" } else { "" });
                let (a, b) = (if p.first.transposed { "t" } else { "n" }, if p.second.transposed { "t" } else { "n" });
                format!("cublas {m}x{n}x{k} x {} {a}{b} {} -> {}{extra}", p.batch * p.repeats.len(), p.dtype, p.out)
            }
            Ready::Other(Work::Convolution(c)) => {
                let s = &c.shape;
                format!("cudnn {:?} x {:?} w {:?} stride {:?} {}", s.mode, &s.x[..], &s.w[..], &s.attrs.stride[..], s.dtype)
            }
            Ready::Other(Work::Copy { .. }) => "copy".into(),
            Ready::Other(Work::Host(kernel)) => format!("host {}", kernel.family()),
            Ready::Other(Work::Launch { source, .. }) => source.entry.clone(),
        }
    }
}

/// A program ready to run.
pub struct Prepared {
    /// The program with its scratch buffers.
    pub program: Program,
    /// Launches, their kernels, and the works of each.
    pub launches: Vec<Vec<Vec<Ready>>>,
    /// Bytes of arena.
    pub arena: usize,
    /// Whether every work can be captured in a graph, and enough of them to pay.
    pub capturable: bool,
    /// Graphs and scalars.
    pub state: Mutex<State>,
}

/// What changes between runs.
#[derive(Default)]
pub struct State {
    /// Where the scalars are on the device.
    pub args: Option<Block>,
    /// The scalars that are there.
    pub uploaded: Option<Vec<u64>>,
    /// Graphs by the addresses they were captured with, longest unused first.
    graphs: Vec<(Vec<Address>, Graph)>,
    /// Addresses of earlier runs without a graph, with their number.
    seen: Vec<(Vec<Address>, u32)>,
}

/// An instantiated graph.
struct Graph {
    context: std::sync::Arc<Context>,
    exec: Handle,
}

// SAFETY: a graph is launched under the queue's lock only.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph is ours; the driver waits with destroying it until launches have finished.
        unsafe { (self.context.driver.cuGraphExecDestroy)(self.exec) };
    }
}

/// Most graphs of a program.
const MOST_GRAPHS: usize = 8;
/// A graph is captured at this run with the same addresses.
const CAPTURE_AT: u32 = 2;

impl Executable for Prepared {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Where everything is in one run.
pub struct Places<'a> {
    /// Addresses of inputs, then outputs.
    pub outside: Vec<Address>,
    /// Number of inputs.
    pub inputs: usize,
    /// Address of the arena.
    pub arena: Address,
    /// Address of the scalars.
    pub args: Address,
    /// Address of the fault word.
    pub fault: Address,
    /// The program.
    pub program: &'a Program,
}

impl Places<'_> {
    /// Address of a buffer.
    pub fn buf(&self, b: BufId) -> Address {
        match self.program.buf(b).place {
            Place::Input(n) => self.outside[n as usize],
            Place::Output(n) => self.outside[self.inputs + n as usize],
            Place::Arena(at) => self.arena + at as Address,
            Place::Unused => 0,
        }
    }

    fn word(&self, w: &Word) -> u64 {
        match *w {
            Word::Buf(b) => self.buf(b),
            Word::Arena(at) => self.arena + at as u64,
            Word::Args => self.args,
            Word::Fault => self.fault,
            Word::Number(n) => n,
        }
    }
}

/// Launches a function. `overlap`: it may start before the kernel in front of it in the stream has finished; both are chained.
pub fn launch(context: &Context, stream: Handle, call: &Call, places: &Places<'_>, overlap: bool) -> Result<(), RuntimeError> {
    let Call { function, grid, block, shared, params, .. } = call;
    let mut words: [u64; 32] = [0; 32];
    let mut long: Vec<u64>;
    let words: &mut [u64] = if params.len() <= 32 {
        &mut words[..params.len()]
    } else {
        long = vec![0; params.len()];
        &mut long
    };
    params.iter().zip(words.iter_mut()).for_each(|(p, w)| *w = places.word(p));
    let mut pointers: Vec<*mut c_void> = words.iter_mut().map(|w| (w as *mut u64).cast()).collect();
    let driver = context.driver;
    let attribute = LaunchAttribute::OVERLAP;
    let config = LaunchConfig { grid: *grid, block: *block, shared: *shared, stream, attributes: &attribute, count: overlap as u32 };
    // SAFETY: the parameters are those of the rendered function, each a pointer or a 64-bit number, and live through the call as the attribute does.
    driver.check("cuLaunchKernelEx", unsafe { (driver.cuLaunchKernelEx)(&config, function.0, pointers.as_mut_ptr(), null_mut()) })
}

impl Prepared {
    /// The changing state.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Launches the graph of these addresses, if there is one.
    pub fn replay(&mut self, context: &Context, key: &[Address]) -> Option<Result<(), RuntimeError>> {
        let n = self.graphs.iter().rposition(|(k, _)| k == key)?;
        let driver = context.driver;
        // SAFETY: the graph is alive; its kernels' addresses are those of this run.
        let code = unsafe { (driver.cuGraphLaunch)(self.graphs[n].1.exec, context.stream) };
        if n + 1 != self.graphs.len() {
            let graph = self.graphs.remove(n);
            self.graphs.push(graph);
        }
        Some(driver.check("cuGraphLaunch", code))
    }

    /// Whether a run with these addresses should be captured; counts it.
    pub fn is_due(&mut self, key: &[Address]) -> bool {
        if let Some((_, count)) = self.seen.iter_mut().find(|(k, _)| k == key) {
            *count += 1;
            return *count >= CAPTURE_AT;
        }
        if self.seen.len() >= 2 * MOST_GRAPHS {
            self.seen.remove(0);
        }
        self.seen.push((key.to_vec(), 0));
        false
    }

    /// Captures what `record` launches, keeps it as the graph of these addresses and launches it.
    pub fn capture(
        &mut self,
        context: &std::sync::Arc<Context>,
        key: &[Address],
        record: impl FnOnce() -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let driver = context.driver;
        const THREAD_LOCAL: i32 = 1;
        let (mut graph, mut exec) = (null_mut(), null_mut());
        // SAFETY: every place is valid for its call; the capture is ended whatever `record` says.
        unsafe {
            driver.check("cuStreamBeginCapture", (driver.cuStreamBeginCapture_v2)(context.stream, THREAD_LOCAL))?;
            let recorded = record();
            let ended = driver.check("cuStreamEndCapture", (driver.cuStreamEndCapture)(context.stream, &mut graph));
            recorded.and(ended)?;
            let made = driver.check("cuGraphInstantiate", (driver.cuGraphInstantiateWithFlags)(&mut exec, graph, 0));
            (driver.cuGraphDestroy)(graph);
            made?;
        }
        if self.graphs.len() >= MOST_GRAPHS {
            self.graphs.remove(0);
        }
        self.seen.retain(|(k, _)| k != key);
        self.graphs.push((key.to_vec(), Graph { context: context.clone(), exec }));
        self.replay(context, key).unwrap_or(Ok(()))
    }
}
