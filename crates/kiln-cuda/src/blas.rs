//! cuBLASLt: matrix products, with the algorithm its heuristics choose for each shape.
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::null_mut;

use kiln_ir::{DType, MatmulPrecision, RuntimeError};

use crate::choices::{Algorithm, Choices};
use crate::device::{Context, fastest_times, first_of_the_fastest};
use crate::driver::{Address, Handle};
use crate::library::{MissingLibrary, functions};
use crate::product::{Activation, Matrix, Product};

functions! {
    /// The functions of cuBLASLt that are used.
    Lt, "cuBLASLt", ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"] {
        fn cublasLtCreate(*mut Handle);
        fn cublasLtMatmulDescCreate(*mut Handle, i32, i32);
        fn cublasLtMatmulDescSetAttribute(Handle, i32, *const c_void, usize);
        fn cublasLtMatmulDescDestroy(Handle);
        fn cublasLtMatrixLayoutCreate(*mut Handle, i32, u64, u64, i64);
        fn cublasLtMatrixLayoutSetAttribute(Handle, i32, *const c_void, usize);
        fn cublasLtMatrixLayoutDestroy(Handle);
        fn cublasLtMatmulPreferenceCreate(*mut Handle);
        fn cublasLtMatmulPreferenceSetAttribute(Handle, i32, *const c_void, usize);
        fn cublasLtMatmulPreferenceDestroy(Handle);
        fn cublasLtGetVersion();
        fn cublasLtMatmulAlgoCheck(Handle, Handle, Handle, Handle, Handle, Handle, *const [u64; 8], *mut Choice);
        fn cublasLtMatmulAlgoGetHeuristic(Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Choice, *mut i32);
        fn cublasLtMatmul(
            Handle, Handle, *const c_void, Address, Handle, Address, Handle, *const c_void, Address, Handle, Address, Handle, *const [u64; 8], Address, usize, Handle
        );
    }
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Choice {
    algorithm: [u64; 8],
    workspace: usize,
    state: i32,
    waves: f32,
    reserved: [i32; 4],
}

/// Bytes of workspace.
pub const WORKSPACE: usize = 32 << 20;

const TRANSPOSED: [i32; 2] = [3, 4];
const EPILOGUE: i32 = 7;
const BIAS_POINTER: i32 = 8;
const BIAS_TYPE: i32 = 26;
const BATCH_COUNT: i32 = 5;
const BATCH_STRIDE: i32 = 6;
const PREFERENCE_WORKSPACE: i32 = 1;
const PREFERENCE_ALIGNMENT: [i32; 4] = [5, 6, 7, 8];
const EPILOGUE_BIAS: i32 = 4;
const EPILOGUE_GELU_AUX: i32 = 160;
const EPILOGUE_GELU_GRAD: i32 = 192;
const ASIDE_POINTER: i32 = 11;
const ASIDE_LEADING: i32 = 12;

/// A product that is ready to run: descriptors and an algorithm.
struct Plan {
    description: Handle,
    layouts: [Handle; 3],
    algorithm: [u64; 8],
    workspace: usize,
}

/// The library with its plans.
pub struct Blas {
    lt: &'static Lt,
    handle: Handle,
    plans: HashMap<(Product, u32), Plan>,
    /// Measured choices of earlier processes.
    choices: Choices,
    /// Two events that measure candidates.
    clock: Option<[Handle; 2]>,
}

/// Addresses of one repetition: factors, the matrix that is added, the result.
struct Operands {
    first: Address,
    second: Address,
    added: Address,
    result: Address,
}

/// Algorithms that are measured when a product runs for the first time.
const CANDIDATES: usize = 8;

// SAFETY: the handle and the plans are used under the queue's lock only.
unsafe impl Send for Blas {}

/// The library's number of a dtype.
fn data_type(dtype: DType) -> i32 {
    match dtype {
        DType::F64 => 1,
        DType::F16 => 2,
        DType::BF16 => 14,
        _ => 0,
    }
}

fn check(what: &str, status: i32) -> Result<(), RuntimeError> {
    if status == 0 { Ok(()) } else { Err(RuntimeError::Kernel(format!("cuBLASLt: {what} says status {status}"))) }
}

/// Whether a product is long enough for its time to be told from a launch's.
fn is_long(p: &Product) -> bool {
    2 * p.size.iter().product::<usize>() * p.batch >= 1 << 32
}

fn bytes<T>(value: &T) -> (*const c_void, usize) {
    ((value as *const T).cast(), size_of::<T>())
}

impl Blas {
    /// The library, in the context that the calling thread has entered.
    pub fn new(gpu: &str) -> Result<Self, MissingLibrary> {
        let lt = Lt::get()?;
        let mut handle = null_mut();
        // SAFETY: `handle` is valid for the call.
        match unsafe { (lt.cublasLtCreate)(&mut handle) } {
            0 => {
                // SAFETY: the function takes nothing; the low half of what it gives back is the version.
                let version = unsafe { (lt.cublasLtGetVersion)() };
                Ok(Blas { lt, handle, plans: HashMap::new(), choices: Choices::of_user(gpu, version), clock: None })
            }
            status => Err(MissingLibrary { what: format!("cuBLASLt does not start: status {status}") }),
        }
    }

    fn layout(&self, dtype: DType, rows: usize, columns: usize, m: &Matrix, batch: usize) -> Result<Handle, RuntimeError> {
        let mut layout = null_mut();
        let (rows, columns) = if m.transposed { (columns, rows) } else { (rows, columns) };
        // SAFETY: `layout` is valid for the call.
        check("a layout", unsafe {
            (self.lt.cublasLtMatrixLayoutCreate)(&mut layout, data_type(dtype), rows as u64, columns as u64, m.leading as i64)
        })?;
        let (count, stride) = (batch as i32, m.stride as i64);
        for (attribute, (value, size)) in [(BATCH_COUNT, bytes(&count)), (BATCH_STRIDE, bytes(&stride))] {
            // SAFETY: the value lives through the call.
            check("a layout", unsafe { (self.lt.cublasLtMatrixLayoutSetAttribute)(layout, attribute, value, size) })?;
        }
        Ok(layout)
    }

    /// `alignment` holds the log2 of the byte alignments of first, second, added and result factors, four bits each.
    /// `aside`: where an activation's other buffer is.
    fn plan(&self, p: &Product, alignment: u32, aside: Address) -> Result<(Plan, Vec<Choice>), RuntimeError> {
        let lt = self.lt;
        let (compute, scale) = match p.dtype {
            DType::F64 => (70, 1),
            DType::F32 if p.precision == MatmulPrecision::High => (77, 0),
            _ => (68, 0),
        };
        let mut description = null_mut();
        let [rows, columns, depth] = p.size;
        // SAFETY: every place is valid for its call and every value lives through it.
        unsafe {
            check("a description", (lt.cublasLtMatmulDescCreate)(&mut description, compute, scale))?;
            let set = |attribute: i32, (value, size): (*const c_void, usize)| {
                check("a description", (lt.cublasLtMatmulDescSetAttribute)(description, attribute, value, size))
            };
            for (attribute, m) in TRANSPOSED.into_iter().zip([&p.first, &p.second]) {
                set(attribute, bytes(&(m.transposed as i32)))?;
            }
            let bias = if p.bias.is_some() { EPILOGUE_BIAS } else { 0 };
            let epilogue = match p.activation {
                None => bias,
                Some(Activation::Gelu { .. }) => EPILOGUE_GELU_AUX | bias,
                Some(Activation::GeluGrad { .. }) => EPILOGUE_GELU_GRAD,
            };
            if epilogue != 0 {
                set(EPILOGUE, bytes(&epilogue))?;
            }
            if p.bias.is_some() {
                set(BIAS_TYPE, bytes(&data_type(p.out)))?;
            }
            if p.activation.is_some() {
                set(ASIDE_POINTER, bytes(&aside))?;
                set(ASIDE_LEADING, bytes(&(p.result.leading as i64)))?;
            }
            let layouts = [
                self.layout(p.dtype, rows, depth, &p.first, p.batch)?,
                self.layout(p.dtype, depth, columns, &p.second, p.batch)?,
                self.layout(p.out, rows, columns, &p.result, p.batch)?,
            ];
            let mut preference = null_mut();
            check("a preference", (lt.cublasLtMatmulPreferenceCreate)(&mut preference))?;
            let (value, size) = bytes(&WORKSPACE);
            check("a preference", (lt.cublasLtMatmulPreferenceSetAttribute)(preference, PREFERENCE_WORKSPACE, value, size))?;
            for (n, attribute) in PREFERENCE_ALIGNMENT.into_iter().enumerate() {
                let least = 1u32 << (alignment >> (4 * n) & 15);
                let (value, size) = bytes(&least);
                check("a preference", (lt.cublasLtMatmulPreferenceSetAttribute)(preference, attribute, value, size))?;
            }
            let mut choices = [Choice { algorithm: [0; 8], workspace: 0, state: 0, waves: 0.0, reserved: [0; 4] }; CANDIDATES];
            let mut found = 0;
            let status = (lt.cublasLtMatmulAlgoGetHeuristic)(
                self.handle,
                description,
                layouts[0],
                layouts[1],
                layouts[2],
                layouts[2],
                preference,
                CANDIDATES as i32,
                choices.as_mut_ptr(),
                &mut found,
            );
            (lt.cublasLtMatmulPreferenceDestroy)(preference);
            check("the choice of an algorithm", status)?;
            let usable: Vec<Choice> = choices[..found.max(0) as usize].iter().filter(|c| c.state == 0).copied().collect();
            let Some(first) = usable.first() else {
                return Err(RuntimeError::Kernel(format!("cuBLASLt has no algorithm for {p:?}")));
            };
            Ok((Plan { description, layouts, algorithm: first.algorithm, workspace: first.workspace }, usable))
        }
    }

    /// One call of the library.
    fn call(&self, p: &Product, plan: &Plan, at: &Operands, workspace: Address, stream: Handle) -> Result<(), RuntimeError> {
        let (one, zero, one64, zero64) = (1.0f32, 0.0f32, 1.0f64, 0.0f64);
        let scalar = |is_one: bool| -> *const c_void {
            match (p.dtype == DType::F64, is_one) {
                (true, true) => (&raw const one64).cast(),
                (true, false) => (&raw const zero64).cast(),
                (false, true) => (&raw const one).cast(),
                (false, false) => (&raw const zero).cast(),
            }
        };
        // SAFETY: descriptors are alive, the buffers have the sizes that the program states, and the workspace is as large as the preference said.
        let status = unsafe {
            (self.lt.cublasLtMatmul)(
                self.handle,
                plan.description,
                scalar(true),
                at.first,
                plan.layouts[0],
                at.second,
                plan.layouts[1],
                scalar(p.added.is_some()),
                at.added,
                plan.layouts[2],
                at.result,
                plan.layouts[2],
                &plan.algorithm,
                workspace,
                plan.workspace.min(WORKSPACE),
                stream,
            )
        };
        check("a product", status)
    }

    /// Measures the candidates on the product's own operands and keeps the fastest. The result is written again and again, so nothing may be added to it.
    fn measure(
        &mut self,
        p: &Product,
        plan: &mut Plan,
        choices: &[Choice],
        at: &Operands,
        workspace: Address,
        context: &Context,
    ) -> Result<(), RuntimeError> {
        let driver = context.driver;
        if self.clock.is_none() {
            let mut events = [null_mut(); 2];
            for e in &mut events {
                // SAFETY: the place is valid for the call.
                driver.check("cuEventCreate", unsafe { (driver.cuEventCreate)(e, 0) })?;
            }
            self.clock = Some(events);
        }
        let Some([start, end]) = self.clock else { return Ok(()) };
        let times = fastest_times(context, [start, end], choices.len(), |n| {
            (plan.algorithm, plan.workspace) = (choices[n].algorithm, choices[n].workspace);
            self.call(p, plan, at, workspace, context.stream)
        })?;
        let best = first_of_the_fastest(&times).map_or(choices[0], |n| choices[n]);
        (plan.algorithm, plan.workspace) = (best.algorithm, best.workspace);
        Ok(())
    }

    /// Runs a product. `place` gives the address of a buffer. While a graph is `captured` nothing can be measured.
    ///
    /// # Errors
    /// A product that the library refuses.
    pub fn run(
        &mut self,
        p: &Product,
        place: &dyn Fn(kiln_ir::BufId) -> Address,
        workspace: Address,
        context: &Context,
        captured: bool,
    ) -> Result<(), RuntimeError> {
        let (size, out) = (p.dtype.size() as isize, p.out.size() as isize);
        for repeat in &p.repeats {
            let at = |m: &Matrix, size: isize, more: isize| place(m.buf).wrapping_add_signed(((m.offset + more) * size) as i64);
            let result = at(&p.result, out, repeat[2]);
            let operands = Operands {
                first: at(&p.first, size, repeat[0]),
                second: at(&p.second, size, repeat[1]),
                added: p.added.map_or(result, |b| place(b).wrapping_add_signed(((p.result.offset + repeat[2]) * out) as i64)),
                result,
            };
            let aligned = |address: Address| address.trailing_zeros().min(8);
            let alignment = aligned(operands.first) | aligned(operands.second) << 4 | aligned(operands.added) << 8 | aligned(operands.result) << 12;
            let key = (p.shape(), alignment);
            let bias = |plan: &Plan| {
                let Some((bias, offset)) = p.bias else { return Ok(()) };
                let pointer = place(bias).wrapping_add_signed((offset * out) as i64);
                let (value, bytes) = bytes(&pointer);
                // SAFETY: the value lives through the call.
                check("a bias", unsafe { (self.lt.cublasLtMatmulDescSetAttribute)(plan.description, BIAS_POINTER, value, bytes) })
            };
            let aside = p.activation.map_or(0, |a| place(a.aside()));
            let beside = |plan: &Plan| {
                if aside == 0 {
                    return Ok(());
                }
                let (value, bytes) = bytes(&aside);
                // SAFETY: the value lives through the call.
                check("an activation", unsafe { (self.lt.cublasLtMatmulDescSetAttribute)(plan.description, ASIDE_POINTER, value, bytes) })
            };
            if let Some(plan) = self.plans.get(&key) {
                bias(plan)?;
                beside(plan)?;
                self.call(p, plan, &operands, workspace, context.stream)?;
                continue;
            }
            let (mut plan, choices) = self.plan(p, alignment, aside)?;
            bias(&plan)?;
            // A gradient may lie where its factor was: it is computed once.
            let again = p.added.is_none() && !matches!(p.activation, Some(Activation::GeluGrad { .. }));
            let chosen = choices.len() > 1 && again && is_long(p);
            let name = if chosen { Choices::key(&format!("{key:?}")) } else { 0 };
            let known = if chosen { self.choices.get(name).and_then(|a| self.checked(&plan, a)) } else { None };
            if let Some((algorithm, workspace)) = known {
                (plan.algorithm, plan.workspace) = (algorithm, workspace);
            } else if chosen && !captured {
                self.measure(p, &mut plan, &choices, &operands, workspace, context)?;
                self.choices.put(name, (plan.algorithm, plan.workspace));
            }
            self.call(p, &plan, &operands, workspace, context.stream)?;
            if !captured || known.is_some() || choices.len() == 1 || !is_long(p) {
                self.plans.insert(key, plan);
            } else {
                // Measured when the product runs outside a graph.
                self.discard(&plan);
            }
        }
        Ok(())
    }

    /// An algorithm of an earlier process, if the library takes it for this product.
    fn checked(&self, plan: &Plan, (algorithm, _): Algorithm) -> Option<Algorithm> {
        let mut found = Choice { algorithm, workspace: 0, state: 0, waves: 0.0, reserved: [0; 4] };
        let [a, b, c] = plan.layouts;
        // SAFETY: descriptors are alive, and both places are valid for the call.
        let status = unsafe { (self.lt.cublasLtMatmulAlgoCheck)(self.handle, plan.description, a, b, c, c, &algorithm, &mut found) };
        (status == 0 && found.state == 0 && found.workspace <= WORKSPACE).then_some((algorithm, found.workspace))
    }

    fn discard(&self, plan: &Plan) {
        // SAFETY: nothing uses the plan any more: launches have copied what they need.
        unsafe {
            plan.layouts.iter().for_each(|l| {
                (self.lt.cublasLtMatrixLayoutDestroy)(*l);
            });
            (self.lt.cublasLtMatmulDescDestroy)(plan.description);
        }
    }

    /// Forgets every plan.
    pub fn clear(&mut self) {
        let plans = std::mem::take(&mut self.plans);
        plans.values().for_each(|plan| self.discard(plan));
    }
}
