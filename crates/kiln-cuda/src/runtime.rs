//! `CudaRuntime`, the device "cuda": memory, transfers, and programs run in one stream.
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_ir::runtime::Storage;
use kiln_ir::{Buffer, DType, DeviceInfo, Executable, Kernel, Limits, MatmulPrecision, MemoryUse, Program, Runtime, RuntimeError};

use crate::blas::{Blas, WORKSPACE};
use crate::device::{Context, Gpu, OpenError, gpu};
use crate::dnn::{self, Dnn};
use crate::driver::{Address, Handle};
use crate::executable::{Call, Places, Prepared, Ready, launch};
use crate::host;
use crate::kernels::Kernels;
use crate::lowered::{Lowered, Work};
use crate::memory::{Block, Pool};
use crate::profile::{self, Profile};
use crate::render;
use crate::steps::{Chip, fault};

/// Uploads up to this size are copied by the driver at once.
const SMALL: usize = 64 << 10;
/// Bytes of a half of the staging memory.
const STAGE: usize = 8 << 20;
/// Launches from which on a graph pays.
const GRAPH_FROM: usize = 3;

/// A GPU.
pub struct CudaRuntime {
    gpu: Gpu,
    /// For 32-bit floats in full precision, and in TensorFloat-32.
    limits: [Limits; 2],
    is_high: AtomicBool,
    context: Arc<Context>,
    pool: Arc<Pool>,
    kernels: Kernels,
    /// Words of the host's memory that kernels write.
    fault: *mut [i32; fault::WORDS],
    queue: Mutex<Queue>,
    /// Set when the driver reported an error that the device does not survive.
    poisoned: Mutex<Option<RuntimeError>>,
    has_blas: AtomicBool,
    has_dnn: AtomicBool,
}

// SAFETY: the fault word is pinned memory that lives as long as the process; it is read and written as a whole word.
unsafe impl Send for CudaRuntime {}
// SAFETY: as above; everything else is guarded by locks.
unsafe impl Sync for CudaRuntime {}

/// What is used by one thread at a time.
struct Queue {
    /// Scratch memory of the program that runs: one for all, since they run one after the other.
    arena: Option<Block>,
    arena_bytes: usize,
    blas: Option<Blas>,
    /// cuDNN, from the first convolution on.
    dnn: Option<Dnn>,
    workspace: Option<Block>,
    staging: Option<Staging>,
    profile: Profile,
}

/// Pinned memory through which large uploads go, in two halves.
struct Staging {
    halves: [*mut u8; 2],
    events: [Handle; 2],
    used: [bool; 2],
}

// SAFETY: used under the queue's lock only.
unsafe impl Send for Staging {}

/// The inside of this runtime's buffers.
#[derive(Debug)]
struct Held(Block);

impl Storage for Held {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl std::fmt::Debug for CudaRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CudaRuntime({})", self.gpu.name)
    }
}

impl CudaRuntime {
    /// GPU number `index`, opened.
    ///
    /// # Errors
    /// [`OpenError`]: which library, driver or device is missing.
    pub fn open(index: usize) -> Result<Arc<Self>, OpenError> {
        let gpu = gpu(index)?;
        crate::nvrtc::version().map_err(OpenError::Missing)?;
        let no = |e: RuntimeError| OpenError::NoDevice(e.to_string());
        let context = Arc::new(Context::new(&gpu).map_err(no)?);
        let fault: *mut [i32; fault::WORDS] = context.pinned(64).map_err(no)?.cast();
        // SAFETY: the words are inside the memory just taken.
        unsafe { fault.write_volatile([0; fault::WORDS]) };
        // cuDNN stores what it computes as it is, and is fastest with its channels last where tensor cores work. Own kernels take 32-bit floats in full precision and few channels.
        let has_dnn = dnn::is_there();
        let limits = [(&[DType::F32][..], &[DType::F16, DType::BF16][..]), (&[], &[DType::F16, DType::BF16, DType::F32])].map(|(own, last)| Limits {
            conv_epilogues: if has_dnn { own } else { &DType::ALL },
            short_conv_epilogues: crate::render::few::MOST_TAPS,
            channels_last: if has_dnn { last } else { &[] },
            ..gpu.chip.limits()
        });
        let blas = match Blas::new(&gpu.name) {
            Ok(blas) => Some(blas),
            Err(e) => {
                eprintln!("kiln: {e}; matrix products use a slower kernel");
                None
            }
        };
        let has_blas = AtomicBool::new(blas.is_some());
        let queue = Queue { arena: None, arena_bytes: 0, blas, dnn: None, workspace: None, staging: None, profile: Profile::default() };
        Ok(Arc::new(CudaRuntime {
            limits,
            is_high: AtomicBool::new(false),
            pool: Arc::new(Pool::new(context.clone())),
            kernels: Kernels::new(context.clone(), gpu.chip.sm),
            context,
            fault,
            queue: Mutex::new(queue),
            poisoned: Mutex::new(None),
            has_blas,
            has_dnn: AtomicBool::new(has_dnn),
            gpu,
        }))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters the context, unless an earlier error has ended the device.
    fn enter(&self) -> Result<(), RuntimeError> {
        match &*self.poisoned.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(e) => Err(e.clone()),
            None => self.context.enter(),
        }
    }

    /// Remembers an error that the device does not survive.
    fn watch<T>(&self, result: Result<T, RuntimeError>) -> Result<T, RuntimeError> {
        if let Err(e @ RuntimeError::Poisoned(_)) = &result {
            self.poisoned.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| e.clone());
        }
        result
    }

    fn block(buffer: &Buffer) -> Result<&Block, RuntimeError> {
        match buffer.storage().as_any().downcast_ref::<Held>() {
            Some(held) => Ok(&held.0),
            None => Err(RuntimeError::Unsupported("a buffer of another device".into())),
        }
    }

    /// Waits, and reports what kernels left in the fault word.
    fn wait(&self) -> Result<(), RuntimeError> {
        self.context.wait()?;
        // SAFETY: the word is pinned memory of ours, and no kernel runs now.
        let words = unsafe {
            let words = self.fault.read_volatile();
            self.fault.write_volatile([0; fault::WORDS]);
            words
        };
        fault::message(&words).map_or(Ok(()), |m| Err(RuntimeError::Kernel(m)))
    }

    /// A program as works. Convolutions start cuDNN and ask it for engines.
    fn lower(&self, program: &Program) -> Result<Lowered, RuntimeError> {
        let precision = if self.is_high.load(Ordering::Relaxed) { MatmulPrecision::High } else { MatmulPrecision::Highest };
        let (chip, blas) = (&Chip { precision, ..self.gpu.chip.clone() }, self.has_blas.load(Ordering::Relaxed));
        if !self.has_dnn.load(Ordering::Relaxed) || !program.kernels().any(|k| matches!(k, Kernel::Conv(_))) {
            return Lowered::new(program, chip, blas, None);
        }
        let queue = &mut *self.queue();
        if queue.dnn.is_none() {
            match Dnn::new(&self.gpu.name, &self.context) {
                Ok(dnn) => queue.dnn = Some(dnn),
                Err(e) => {
                    eprintln!("kiln: {e}; convolutions use slower kernels");
                    self.has_dnn.store(false, Ordering::Relaxed);
                }
            }
        }
        match &mut queue.dnn {
            Some(dnn) => Lowered::new(program, chip, blas, Some(&mut |shape| dnn.workspace(shape))),
            None => Lowered::new(program, chip, blas, None),
        }
    }

    fn copy_in(&self, queue: &mut Queue, to: Address, bytes: &[u8]) -> Result<(), RuntimeError> {
        let driver = self.context.driver;
        let stream = self.context.stream;
        if bytes.len() <= SMALL {
            // SAFETY: the destination has room; the driver has copied such a small source when the call returns.
            return driver.check("an upload", unsafe { (driver.cuMemcpyHtoDAsync_v2)(to, bytes.as_ptr(), bytes.len(), stream) });
        }
        if queue.staging.is_none() {
            let mut events = [std::ptr::null_mut(); 2];
            const NO_TIMING: u32 = 2;
            for e in &mut events {
                // SAFETY: the place is valid for the call.
                driver.check("cuEventCreate", unsafe { (driver.cuEventCreate)(e, NO_TIMING) })?;
            }
            queue.staging = Some(Staging { halves: [self.context.pinned(STAGE)?, self.context.pinned(STAGE)?], events, used: [false; 2] });
        }
        let Some(staging) = &mut queue.staging else { return Ok(()) };
        for (n, chunk) in bytes.chunks(STAGE).enumerate() {
            let half = n % 2;
            // SAFETY: the half is free once its event has happened; it holds `STAGE` bytes; the destination has room.
            unsafe {
                if staging.used[half] {
                    driver.check("an upload", (driver.cuEventSynchronize)(staging.events[half]))?;
                }
                std::ptr::copy_nonoverlapping(chunk.as_ptr(), staging.halves[half], chunk.len());
                let place = to + (n * STAGE) as u64;
                driver.check("an upload", (driver.cuMemcpyHtoDAsync_v2)(place, staging.halves[half], chunk.len(), stream))?;
                driver.check("an upload", (driver.cuEventRecord)(staging.events[half], stream))?;
            }
            staging.used[half] = true;
        }
        Ok(())
    }

    fn copy_out(&self, from: Address, out: &mut [u8]) -> Result<(), RuntimeError> {
        let driver = self.context.driver;
        // SAFETY: the source holds as many bytes, and the wait keeps `out` valid until the copy is done.
        driver.check("a download", unsafe { (driver.cuMemcpyDtoHAsync_v2)(out.as_mut_ptr(), from, out.len(), self.context.stream) })?;
        self.wait()
    }

    /// Runs every work of a program in order; the kernels of a launch may run side by side.
    fn works(&self, prepared: &Prepared, places: &Places<'_>, queue: &mut Queue, args: &[u64], captured: bool) -> Result<(), RuntimeError> {
        let context = &*self.context;
        let profiled = profile::is_wanted();
        if profiled {
            queue.profile.begin(context)?;
        }
        // Whether the last work in the main stream is a kernel that lets the next one start early. Nothing is known of what another program left there.
        let mut before = false;
        for kernels in &prepared.launches {
            let light = |k: &[Ready]| k.iter().all(|w| matches!(w, Ready::Launch(_)));
            let sides = if captured { kernels.iter().filter(|k| light(k)).count().saturating_sub(1).min(context.sides.len()) } else { 0 };
            if sides > 0 {
                self.fork(sides)?;
            }
            let mut turn = 0;
            for kernel in kernels {
                let stream = if sides > 0 && light(kernel) {
                    turn += 1;
                    if turn > sides { context.stream } else { context.sides[turn - 1] }
                } else {
                    context.stream
                };
                for work in kernel {
                    let chained = matches!(work, Ready::Launch(call) if call.chained) && sides == 0;
                    let overlap = before && chained && !profiled;
                    before = chained;
                    self.work(work, prepared, places, queue, args, (stream, captured, overlap))?;
                    if profiled {
                        queue.profile.after(context, work.label())?;
                    }
                }
            }
            if sides > 0 {
                self.join(sides)?;
            }
        }
        if profiled { queue.profile.end(context) } else { Ok(()) }
    }

    /// Lets side streams begin after what the main stream has so far.
    fn fork(&self, sides: usize) -> Result<(), RuntimeError> {
        let (context, driver) = (&*self.context, self.context.driver);
        // SAFETY: streams and events live as long as the process.
        unsafe {
            driver.check("cuEventRecord", (driver.cuEventRecord)(context.events[0], context.stream))?;
            for side in &context.sides[..sides] {
                driver.check("cuStreamWaitEvent", (driver.cuStreamWaitEvent)(*side, context.events[0], 0))?;
            }
        }
        Ok(())
    }

    /// Lets the main stream go on after the side streams.
    fn join(&self, sides: usize) -> Result<(), RuntimeError> {
        let (context, driver) = (&*self.context, self.context.driver);
        for (side, event) in context.sides[..sides].iter().zip(&context.events[1..]) {
            // SAFETY: as in `fork`.
            unsafe {
                driver.check("cuEventRecord", (driver.cuEventRecord)(*event, *side))?;
                driver.check("cuStreamWaitEvent", (driver.cuStreamWaitEvent)(context.stream, *event, 0))?;
            }
        }
        Ok(())
    }

    fn work(
        &self,
        work: &Ready,
        prepared: &Prepared,
        places: &Places<'_>,
        queue: &mut Queue,
        args: &[u64],
        (stream, captured, overlap): (Handle, bool, bool),
    ) -> Result<(), RuntimeError> {
        let (context, program) = (&*self.context, &prepared.program);
        match work {
            Ready::Launch(call) => launch(context, stream, call, places, overlap),
            Ready::Other(Work::Product(p)) => {
                let workspace = queue.workspace.as_ref().map_or(0, Block::address);
                let Some(blas) = &mut queue.blas else { return Err(RuntimeError::Unsupported("cuBLASLt is missing".into())) };
                blas.run(p, &|b| places.buf(b), workspace, context, captured)
            }
            Ready::Other(Work::Convolution(c)) => match &mut queue.dnn {
                Some(dnn) => dnn.run(c, &|b| places.buf(b), context, captured),
                None => Err(RuntimeError::Unsupported("cuDNN is missing".into())),
            },
            Ready::Other(Work::Copy { from, to }) => {
                let (from, to, bytes) = (places.buf(*from), places.buf(*to), program.buf(*to).bytes());
                if bytes == 0 || from == to {
                    return Ok(());
                }
                // SAFETY: both buffers have this many bytes.
                context.driver.check("a copy", unsafe { (context.driver.cuMemcpyDtoDAsync_v2)(to, from, bytes, stream) })
            }
            Ready::Other(Work::Host(kernel)) => {
                let download = |b, out: &mut [u8]| if out.is_empty() { Ok(()) } else { self.copy_out(places.buf(b), out) };
                host::run(
                    kernel,
                    program,
                    args,
                    download,
                    |b, bytes: &[u8]| {
                        if bytes.is_empty() { Ok(()) } else { self.copy_in(queue, places.buf(b), bytes) }
                    },
                )
            }
            Ready::Other(Work::Launch { .. }) => Err(RuntimeError::Unsupported("a launch without a function".into())),
        }
    }

    fn run_prepared(&self, prepared: &Prepared, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError> {
        let program = &prepared.program;
        if inputs.len() != program.inputs || outputs.len() != program.outputs.len() || args.len() != program.args {
            return Err(RuntimeError::Kernel(format!(
                "the program takes {} inputs, {} outputs and {} scalars, not {}, {} and {}",
                program.inputs,
                program.outputs.len(),
                program.args,
                inputs.len(),
                outputs.len(),
                args.len()
            )));
        }
        self.enter()?;
        let queue = &mut *self.queue();
        if queue.arena_bytes < prepared.arena {
            queue.arena = None;
            queue.arena_bytes = 0;
            queue.arena = Some(self.pool.allocate(prepared.arena)?);
            queue.arena_bytes = prepared.arena;
        }
        if queue.blas.is_some() && queue.workspace.is_none() {
            queue.workspace = Some(self.pool.allocate(WORKSPACE)?);
        }
        let mut state = prepared.state();
        if !args.is_empty() {
            if state.args.is_none() {
                state.args = Some(self.pool.allocate(args.len() * 8)?);
            }
            let place = state.args.as_ref().map_or(0, Block::address);
            if state.uploaded.as_deref() != Some(args) {
                let bytes: Vec<u8> = args.iter().flat_map(|a| a.to_ne_bytes()).collect();
                self.copy_in(queue, place, &bytes)?;
                state.uploaded = Some(args.to_vec());
            }
        }
        let mut outside = Vec::with_capacity(inputs.len() + outputs.len());
        for b in inputs.iter().chain(outputs) {
            outside.push(Self::block(b)?.address());
        }
        let arena = queue.arena.as_ref().map_or(0, Block::address);
        let places =
            Places { outside, inputs: inputs.len(), arena, args: state.args.as_ref().map_or(0, Block::address), fault: self.fault as u64, program };
        if !prepared.capturable {
            return self.works(prepared, &places, queue, args, false);
        }
        let key: Vec<Address> = places.outside.iter().copied().chain([arena]).collect();
        if let Some(done) = state.replay(&self.context, &key) {
            return done;
        }
        if state.is_due(&key) {
            return state.capture(&self.context, &key, || self.works(prepared, &places, queue, args, true));
        }
        self.works(prepared, &places, queue, args, false)
    }
}

impl Runtime for CudaRuntime {
    fn limits(&self) -> &Limits {
        &self.limits[self.is_high.load(Ordering::Relaxed) as usize]
    }

    fn set_matmul_precision(&self, precision: MatmulPrecision) {
        self.is_high.store(precision == MatmulPrecision::High, Ordering::Relaxed);
    }

    fn info(&self) -> DeviceInfo {
        let (major, minor) = (self.gpu.chip.sm / 10, self.gpu.chip.sm % 10);
        DeviceInfo { kind: "cuda", name: format!("{}, compute capability {major}.{minor}", self.gpu.name), memory: self.gpu.memory }
    }

    fn supports(&self, kernel: &Kernel) -> bool {
        render::has_family(kernel)
    }

    fn supports_dtype(&self, _: DType) -> bool {
        true
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        self.enter()?;
        let block = self.watch(self.pool.allocate(bytes))?;
        Ok(Buffer::new(Arc::new(Held(block)), bytes))
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        self.enter()?;
        let block = self.watch(self.pool.allocate(bytes.len()))?;
        if !bytes.is_empty() {
            let mut queue = self.queue();
            self.watch(self.copy_in(&mut queue, block.address(), bytes))?;
        }
        Ok(Buffer::new(Arc::new(Held(block)), bytes.len()))
    }

    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.enter()?;
        let block = Self::block(buffer)?;
        if buffer.bytes() < out.len() {
            return Err(RuntimeError::Kernel(format!("cannot read {} bytes of a buffer of {}", out.len(), buffer.bytes())));
        }
        let _queue = self.queue();
        if out.is_empty() { self.watch(self.wait()) } else { self.watch(self.copy_out(block.address(), out)) }
    }

    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        self.enter()?;
        let lowered = self.lower(&program)?;
        let sources: Vec<_> = (lowered.works())
            .filter_map(|w| match w {
                Work::Launch { source, shared, .. } => Some((source.clone(), *shared)),
                Work::Host(kernel) => {
                    if !matches!(**kernel, Kernel::Host(_)) {
                        host::tell(kernel.family());
                    }
                    None
                }
                Work::Product(_) | Work::Convolution(_) | Work::Copy { .. } => None,
            })
            .collect();
        let mut functions = self.watch(self.kernels.functions(&sources))?.into_iter();
        let (mut on_host, mut count) = (false, 0);
        let mut ready = |work: Work| {
            on_host |= matches!(work, Work::Host(_));
            count += 1;
            match work {
                Work::Launch { source, grid, block, shared, params } => match functions.next() {
                    Some(function) => {
                        let chained = self.gpu.chip.sm >= 90 && source.own().contains("chain();");
                        Ready::Launch(Call { name: source.entry.clone(), function, grid, block, shared, params, chained })
                    }
                    None => unreachable!("every launch has a source"),
                },
                other => Ready::Other(other),
            }
        };
        let launches: Vec<Vec<Vec<Ready>>> =
            (lowered.launches.into_iter()).map(|l| l.into_iter().map(|k| k.into_iter().map(&mut ready).collect()).collect()).collect();
        let capturable = !on_host && count >= GRAPH_FROM && !profile::is_wanted();
        Ok(Arc::new(Prepared { program: lowered.program, launches, arena: lowered.arena, capturable, state: Mutex::default() }))
    }

    fn run(&self, executable: &dyn Executable, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError> {
        let Some(prepared) = executable.as_any().downcast_ref::<Prepared>() else {
            return Err(RuntimeError::Unsupported("a program prepared for another device".into()));
        };
        self.watch(self.run_prepared(prepared, inputs, outputs, args))
    }

    fn sync(&self) -> Result<(), RuntimeError> {
        self.enter()?;
        let _queue = self.queue();
        self.watch(self.wait())
    }

    fn memory(&self) -> MemoryUse {
        self.pool.usage()
    }

    fn cleanup(&self) {
        if self.enter().is_err() {
            return;
        }
        let mut queue = self.queue();
        if self.watch(self.context.wait()).is_err() {
            return;
        }
        queue.arena = None;
        queue.arena_bytes = 0;
        queue.workspace = None;
        if let Some(blas) = &mut queue.blas {
            blas.clear();
        }
        self.pool.cleanup();
    }
}
