//! cuDNN: convolutions by its graph interface, with the engine that is fastest for each shape. What was measured is kept on disk.
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::null_mut;

use kiln_ir::dims::{channels_last, row_major};
use kiln_ir::kernel::ConvMode;
use kiln_ir::{BufId, DType, MatmulPrecision, RuntimeError};

use crate::cache::{Cache, hash};
use crate::convolution::{Convolution, Shape};
use crate::device::{Context, fastest_times, first_of_the_fastest};
use crate::driver::{Address, Handle};
use crate::library::{MissingLibrary, functions};

functions! {
    /// The functions of cuDNN that are used.
    Library, "cuDNN", ["libcudnn.so.9", "libcudnn.so"] {
        fn cudnnGetVersion();
        fn cudnnCreate(*mut Handle);
        fn cudnnSetStream(Handle, Handle);
        fn cudnnBackendCreateDescriptor(i32, *mut Handle);
        fn cudnnBackendDestroyDescriptor(Handle);
        fn cudnnBackendSetAttribute(Handle, i32, i32, i64, *const c_void);
        fn cudnnBackendGetAttribute(Handle, i32, i32, i64, *mut i64, *mut c_void);
        fn cudnnBackendFinalize(Handle);
        fn cudnnBackendExecute(Handle, Handle, Handle);
    }
}

/// Kinds of descriptors.
mod kind {
    pub const CONVOLUTION: i32 = 1;
    pub const ENGINE: i32 = 2;
    pub const ENGINE_CONFIG: i32 = 3;
    pub const HEURISTICS: i32 = 4;
    pub const PLAN: i32 = 5;
    pub const FORWARD: i32 = 10;
    pub const WEIGHT_GRAD: i32 = 11;
    pub const INPUT_GRAD: i32 = 12;
    pub const GRAPH: i32 = 15;
    pub const VARIANT_PACK: i32 = 16;
    pub const TENSOR: i32 = 17;
}

/// Types of attributes.
mod ty {
    pub const HANDLE: i32 = 0;
    pub const DATA_TYPE: i32 = 1;
    pub const I64: i32 = 3;
    pub const F32: i32 = 4;
    pub const F64: i32 = 5;
    pub const POINTER: i32 = 6;
    pub const CONVOLUTION_MODE: i32 = 7;
    pub const HEURISTIC_MODE: i32 = 8;
    pub const NUMERICAL_NOTE: i32 = 11;
    pub const DESCRIPTOR: i32 = 15;
    pub const CHAR: i32 = 24;
}

/// Heuristics that are asked in turn: the better ones, then those that know an engine for anything.
const HEURISTICS: [i32; 2] = [3, 2];
/// Notes on an engine's arithmetic.
mod note {
    pub const TENSOR_CORE: i32 = 0;
    pub const DOWN_CONVERTS: i32 = 1;
    pub const NARROW_SUMS: i32 = 2;
    pub const NOT_DETERMINISTIC: i32 = 4;
    pub const WINOGRAD_13: i32 = 8;
}

/// Engines that are measured when a shape runs for the first time: the heuristics know those of half floats well, while in plain arithmetic engines far
/// down their list have been twice as fast as the first.
fn candidates(dtype: DType) -> usize {
    if matches!(dtype, DType::F16 | DType::BF16) { 5 } else { 16 }
}
/// The attribute that describes a plan as text.
const PLAN_AS_TEXT: i32 = 405;
/// The kind of files that hold such texts.
const KIND: &str = "plan";
/// Most bytes of workspace.
const WORKSPACE: usize = 1 << 30;

/// A descriptor, destroyed at the end.
struct Descriptor {
    library: &'static Library,
    handle: Handle,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and nothing refers to it any more: the library keeps what it needs of a finished one.
        unsafe { (self.library.cudnnBackendDestroyDescriptor)(self.handle) };
    }
}

fn check(what: &str, status: i32) -> Result<(), RuntimeError> {
    if status == 0 { Ok(()) } else { Err(RuntimeError::Kernel(format!("cuDNN: {what} says status {status}"))) }
}

impl Descriptor {
    fn new(library: &'static Library, kind: i32) -> Result<Self, RuntimeError> {
        let mut handle = null_mut();
        // SAFETY: the place is valid for the call.
        check("a descriptor", unsafe { (library.cudnnBackendCreateDescriptor)(kind, &mut handle) })?;
        Ok(Descriptor { library, handle })
    }

    fn set<T>(&self, attribute: i32, ty: i32, values: &[T]) -> Result<(), RuntimeError> {
        // SAFETY: the values have the type that the attribute wants and live through the call.
        let status = unsafe { (self.library.cudnnBackendSetAttribute)(self.handle, attribute, ty, values.len() as i64, values.as_ptr().cast()) };
        check(&format!("attribute {attribute}"), status)
    }

    fn finish(self) -> Result<Self, RuntimeError> {
        // SAFETY: the descriptor is alive.
        check("the end of a descriptor", unsafe { (self.library.cudnnBackendFinalize)(self.handle) })?;
        Ok(self)
    }

    /// Reads up to `values.len()` values and says how many there are.
    fn get<T>(&self, attribute: i32, ty: i32, values: &mut [T]) -> Result<usize, RuntimeError> {
        let mut count = 0i64;
        // The library counts what it would write only when it has no place to write to.
        let place: *mut T = if values.is_empty() { null_mut() } else { values.as_mut_ptr() };
        // SAFETY: there is room for as many values of the attribute's type as are asked for.
        let status = unsafe { (self.library.cudnnBackendGetAttribute)(self.handle, attribute, ty, values.len() as i64, &mut count, place.cast()) };
        check(&format!("attribute {attribute}"), status)?;
        Ok(count.max(0) as usize)
    }
}

/// A convolution that is ready to run.
struct Plan {
    plan: Descriptor,
    workspace: usize,
}

/// The plans of a shape: several until they have been measured.
struct Plans {
    plans: Vec<Plan>,
    measured: bool,
}

/// The library with its plans.
pub struct Dnn {
    library: &'static Library,
    handle: Handle,
    /// Plans of each shape; none where the library has no engine.
    plans: HashMap<Shape, Plans>,
    /// Two events that measure candidates.
    clock: Option<[Handle; 2]>,
    /// Fastest plans of earlier processes.
    cache: Cache,
    /// What a plan holds for: the GPU and the library's version.
    platform: String,
}

// SAFETY: the handle and the plans are used under the queue's lock only.
unsafe impl Send for Dnn {}

/// Whether the library is there and wanted: `KILN_CUDNN=off` leaves it alone.
pub fn is_there() -> bool {
    std::env::var("KILN_CUDNN").as_deref() != Ok("off") && Library::get().is_ok()
}

/// The library's number of a dtype.
fn data_type(dtype: DType) -> Option<i32> {
    match dtype {
        DType::F32 => Some(0),
        DType::F64 => Some(1),
        DType::F16 => Some(2),
        DType::BF16 => Some(9),
        _ => None,
    }
}

/// Numbers of the tensors of a convolution: x, weight, y.
const X: i64 = 1;
const W: i64 = 2;
const Y: i64 = 3;

impl Dnn {
    /// The library, in the context that the calling thread has entered.
    pub fn new(gpu: &str, context: &Context) -> Result<Self, MissingLibrary> {
        let library = Library::get()?;
        let mut handle = null_mut();
        // SAFETY: the place is valid for the call; the stream lives as long as the process.
        let status = unsafe {
            match (library.cudnnCreate)(&mut handle) {
                0 => (library.cudnnSetStream)(handle, context.stream),
                status => status,
            }
        };
        if status != 0 {
            return Err(MissingLibrary { what: format!("cuDNN does not start: status {status}") });
        }
        // SAFETY: the function takes nothing; the low half of what it gives back is the version.
        let version = unsafe { (library.cudnnGetVersion)() };
        Ok(Dnn { library, handle, plans: HashMap::new(), clock: None, cache: Cache::of_user(), platform: format!("{gpu}, cuDNN {version}") })
    }

    /// Bytes of workspace of a convolution, or `None` when the library cannot do it.
    pub fn workspace(&mut self, shape: &Shape) -> Option<usize> {
        if !self.plans.contains_key(shape) {
            let plans = match self.known(shape) {
                Some(plan) => vec![plan],
                None => self.candidates(shape).unwrap_or_default(),
            };
            self.plans.insert(shape.clone(), Plans { measured: plans.len() < 2, plans });
        }
        self.plans[shape].plans.iter().map(|p| p.workspace).max()
    }

    /// A tensor `[n, c, spatial...]`, of at least two spatial axes.
    fn tensor(&self, id: i64, dims: &[usize], shape: &Shape) -> Result<Descriptor, RuntimeError> {
        let Some(data_type) = data_type(shape.dtype) else { return Err(RuntimeError::Unsupported("a dtype of cuDNN".into())) };
        let mut strides: Vec<i64> = if shape.attrs.channels_last {
            let mut s = row_major(&channels_last(dims));
            s[1..].rotate_right(1);
            s.iter().map(|s| *s as i64).collect()
        } else {
            row_major(dims).iter().map(|s| *s as i64).collect()
        };
        let mut dims: Vec<i64> = dims.iter().map(|d| *d as i64).collect();
        if dims.len() == 3 {
            dims.insert(2, 1);
            strides.insert(2, strides[2] * dims[3]);
        }
        let tensor = Descriptor::new(self.library, kind::TENSOR)?;
        tensor.set(906, ty::I64, &[id])?;
        tensor.set(901, ty::DATA_TYPE, &[data_type])?;
        tensor.set(900, ty::I64, &[16i64])?;
        tensor.set(902, ty::I64, &dims)?;
        tensor.set(903, ty::I64, &strides)?;
        tensor.finish()
    }

    /// The graph of one convolution.
    fn graph(&self, shape: &Shape) -> Result<Descriptor, RuntimeError> {
        let library = self.library;
        let tensors = [self.tensor(X, &shape.x, shape)?, self.tensor(W, &shape.w, shape)?, self.tensor(Y, &shape.y, shape)?];
        let per_axis = |value: &dyn Fn(usize) -> usize, missing: i64| -> Vec<i64> {
            let own = (0..shape.attrs.stride.len()).map(|s| value(s) as i64);
            if shape.attrs.stride.len() == 1 { std::iter::once(missing).chain(own).collect() } else { own.collect() }
        };
        let attrs = &shape.attrs;
        let strides = per_axis(&|s| attrs.stride[s], 1);
        let wide = shape.dtype == DType::F64;
        let conv = Descriptor::new(library, kind::CONVOLUTION)?;
        conv.set(100, ty::DATA_TYPE, &[if wide { 1i32 } else { 0 }])?;
        const CROSS_CORRELATION: i32 = 1;
        conv.set(101, ty::CONVOLUTION_MODE, &[CROSS_CORRELATION])?;
        conv.set(106, ty::I64, &[strides.len() as i64])?;
        conv.set(102, ty::I64, &per_axis(&|s| attrs.dilation[s], 1))?;
        conv.set(103, ty::I64, &strides)?;
        conv.set(104, ty::I64, &per_axis(&|s| attrs.padding[s].1, 0))?;
        conv.set(105, ty::I64, &per_axis(&|s| attrs.padding[s].0, 0))?;
        let conv = conv.finish()?;
        // Attributes of x, weight, y, the convolution, alpha and beta.
        let (kind, [x, w, y, desc, alpha, beta]) = match shape.mode {
            ConvMode::Forward => (kind::FORWARD, [704, 703, 705, 702, 700, 701]),
            ConvMode::InputGrad => (kind::INPUT_GRAD, [710, 709, 711, 708, 706, 707]),
            ConvMode::WeightGrad => (kind::WEIGHT_GRAD, [716, 715, 717, 714, 712, 713]),
        };
        let operation = Descriptor::new(library, kind)?;
        for (attribute, tensor) in [x, w, y].into_iter().zip(&tensors) {
            operation.set(attribute, ty::DESCRIPTOR, &[tensor.handle])?;
        }
        operation.set(desc, ty::DESCRIPTOR, &[conv.handle])?;
        for (attribute, value) in [(alpha, 1.0f64), (beta, 0.0)] {
            if wide { operation.set(attribute, ty::F64, &[value])? } else { operation.set(attribute, ty::F32, &[value as f32])? }
        }
        let operation = operation.finish()?;
        let graph = Descriptor::new(library, kind::GRAPH)?;
        graph.set(800, ty::HANDLE, &[self.handle])?;
        graph.set(801, ty::DESCRIPTOR, &[operation.handle])?;
        graph.finish()
    }

    /// The plans that the library's heuristics put first, of those whose arithmetic is allowed.
    fn candidates(&self, shape: &Shape) -> Result<Vec<Plan>, RuntimeError> {
        let graph = self.graph(shape)?;
        let mut plans = Vec::new();
        for mode in HEURISTICS {
            if plans.len() >= candidates(shape.dtype) || (!plans.is_empty() && shape.dtype != DType::F32) {
                break;
            }
            let heuristics = Descriptor::new(self.library, kind::HEURISTICS)?;
            heuristics.set(201, ty::DESCRIPTOR, &[graph.handle])?;
            heuristics.set(200, ty::HEURISTIC_MODE, &[mode])?;
            let Ok(heuristics) = heuristics.finish() else { continue };
            let count = heuristics.get::<Handle>(202, ty::DESCRIPTOR, &mut [])?;
            let configs = (0..count).map(|_| Descriptor::new(self.library, kind::ENGINE_CONFIG)).collect::<Result<Vec<_>, _>>()?;
            let mut handles: Vec<Handle> = configs.iter().map(|c| c.handle).collect();
            let found = heuristics.get(202, ty::DESCRIPTOR, &mut handles)?;
            for config in configs.iter().take(found) {
                if plans.len() < candidates(shape.dtype) && self.is_allowed(config, shape).unwrap_or(false) {
                    plans.extend(self.plan(config).ok().filter(|p| p.workspace <= WORKSPACE));
                }
            }
        }
        Ok(plans)
    }

    fn key(&self, shape: &Shape) -> u128 {
        hash(&[b"convolution", self.platform.as_bytes(), format!("{shape:?}").as_bytes()])
    }

    /// The fastest plan as an earlier process found it.
    fn known(&self, shape: &Shape) -> Option<Plan> {
        let text = self.cache.get(self.key(shape), KIND)?;
        let plan = Descriptor::new(self.library, kind::PLAN).ok()?;
        plan.set(400, ty::HANDLE, &[self.handle]).ok()?;
        plan.set(PLAN_AS_TEXT, ty::CHAR, &text).ok()?;
        Self::finished(plan).ok().filter(|p| p.workspace <= WORKSPACE)
    }

    /// Keeps a plan for later processes, as the library describes it.
    fn keep(&self, shape: &Shape, plan: &Plan) -> Result<(), RuntimeError> {
        let mut text = vec![0u8; plan.plan.get::<u8>(PLAN_AS_TEXT, ty::CHAR, &mut [])?];
        let length = plan.plan.get(PLAN_AS_TEXT, ty::CHAR, &mut text)?;
        text.truncate(length);
        self.cache.put(self.key(shape), KIND, &text);
        Ok(())
    }

    fn plan(&self, config: &Descriptor) -> Result<Plan, RuntimeError> {
        let plan = Descriptor::new(self.library, kind::PLAN)?;
        plan.set(400, ty::HANDLE, &[self.handle])?;
        plan.set(401, ty::DESCRIPTOR, &[config.handle])?;
        Self::finished(plan)
    }

    fn finished(plan: Descriptor) -> Result<Plan, RuntimeError> {
        let plan = plan.finish()?;
        let mut bytes = [0i64];
        plan.get(402, ty::I64, &mut bytes)?;
        Ok(Plan { plan, workspace: bytes[0].max(0) as usize })
    }

    /// Whether an engine gives the same result every time, in the arithmetic of the dtype.
    fn is_allowed(&self, config: &Descriptor, shape: &Shape) -> Result<bool, RuntimeError> {
        let engine = Descriptor::new(self.library, kind::ENGINE)?;
        config.get(300, ty::DESCRIPTOR, &mut [engine.handle])?;
        let mut notes = [-1i32; 16];
        let count = engine.get(1303, ty::NUMERICAL_NOTE, &mut notes)?;
        let half = matches!(shape.dtype, DType::F16 | DType::BF16);
        Ok(notes.iter().take(count).all(|n| match *n {
            note::TENSOR_CORE => shape.dtype != DType::F32 || shape.precision == MatmulPrecision::High,
            note::DOWN_CONVERTS | note::NARROW_SUMS => false,
            // The largest tiles of Winograd's method lose digits.
            note::WINOGRAD_13 => half,
            note::NOT_DETERMINISTIC => false,
            _ => true,
        }))
    }

    fn call(&self, plan: &Plan, at: [Address; 3], workspace: Address) -> Result<(), RuntimeError> {
        let pack = Descriptor::new(self.library, kind::VARIANT_PACK)?;
        pack.set(1000, ty::I64, &[X, W, Y])?;
        pack.set(1001, ty::POINTER, &at)?;
        pack.set(1003, ty::POINTER, &[workspace])?;
        let pack = pack.finish()?;
        // SAFETY: the buffers have the sizes of the plan's tensors, and the workspace is as large as it asked for.
        check("a convolution", unsafe { (self.library.cudnnBackendExecute)(self.handle, plan.plan.handle, pack.handle) })
    }

    /// Measures the plans of a shape on its own operands and keeps the fastest. The result is written again and again.
    fn measure(&mut self, plans: Vec<Plan>, at: [Address; 3], workspace: Address, context: &Context) -> Result<Vec<Plan>, RuntimeError> {
        let driver = context.driver;
        if self.clock.is_none() {
            let mut events = [null_mut(); 2];
            for e in &mut events {
                // SAFETY: the place is valid for the call.
                driver.check("cuEventCreate", unsafe { (driver.cuEventCreate)(e, 0) })?;
            }
            self.clock = Some(events);
        }
        let Some([start, end]) = self.clock else { return Ok(plans) };
        let times = fastest_times(context, [start, end], plans.len(), |n| self.call(&plans[n], at, workspace))?;
        Ok(first_of_the_fastest(&times).and_then(|n| plans.into_iter().nth(n)).into_iter().collect())
    }

    /// Runs a convolution. `place` gives the address of a buffer. While a graph is `captured` nothing can be measured.
    ///
    /// # Errors
    /// A convolution that the library refuses.
    pub fn run(&mut self, c: &Convolution, place: &dyn Fn(BufId) -> Address, context: &Context, captured: bool) -> Result<(), RuntimeError> {
        let (a, b, out) = (place(c.a), place(c.b), place(c.out));
        let at = match c.shape.mode {
            ConvMode::Forward => [a, b, out],
            ConvMode::InputGrad => [out, b, a],
            ConvMode::WeightGrad => [a, out, b],
        };
        let workspace = c.workspace.map_or(0, place);
        self.workspace(&c.shape);
        if !captured
            && let Some(entry) = self.plans.get_mut(&c.shape)
            && !entry.measured
        {
            let plans = std::mem::take(&mut entry.plans);
            let plans = self.measure(plans, at, workspace, context)?;
            if let Some(plan) = plans.first() {
                // A library that cannot describe its plan is no reason to fail: it is measured again next time.
                let _ = self.keep(&c.shape, plan);
            }
            self.plans.insert(c.shape.clone(), Plans { plans, measured: true });
        }
        match self.plans.get(&c.shape).and_then(|p| p.plans.first()) {
            Some(plan) => self.call(plan, at, workspace),
            None => Err(RuntimeError::Kernel(format!("cuDNN has no engine for {:?}", c.shape))),
        }
    }
}
