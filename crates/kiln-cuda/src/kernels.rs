//! Functions of a GPU: sources compiled in parallel where neither this process nor the cache on disk has them, loaded once.
use std::collections::HashMap;
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_ir::RuntimeError;

use crate::cache::Cache;
use crate::device::Context;
use crate::driver::Handle;
use crate::nvrtc;
use crate::steps::Source;

/// A loaded function.
#[derive(Clone, Copy)]
pub struct Function(pub Handle);

// SAFETY: a function belongs to the primary context, which lives as long as the process.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// Machine code, or why there is none.
type Code = Result<Vec<u8>, RuntimeError>;

/// The functions loaded so far.
pub struct Kernels {
    context: Arc<Context>,
    cache: Cache,
    sm: u32,
    loaded: Mutex<HashMap<Arc<Source>, Function>>,
}

impl Kernels {
    /// None loaded yet.
    pub fn new(context: Arc<Context>, sm: u32) -> Self {
        Kernels { context, cache: Cache::of_user(), sm, loaded: Mutex::default() }
    }

    /// The functions of sources, in order. The calling thread has entered the context. `shared`: bytes of dynamic shared memory that each is launched with.
    ///
    /// # Errors
    /// No compiler, or a source that it or the driver refuses.
    pub fn functions(&self, sources: &[(Arc<Source>, u32)]) -> Result<Vec<Function>, RuntimeError> {
        let lock = || self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing: Vec<(Arc<Source>, u32)> = Vec::new();
        {
            let loaded = lock();
            for (source, shared) in sources {
                if !loaded.contains_key(source) && !missing.iter().any(|(s, _)| s == source) {
                    missing.push((source.clone(), *shared));
                }
            }
        }
        // Other threads compile meanwhile; what two compile at once is loaded once.
        let compiled = self.compile(&missing)?;
        let mut loaded = lock();
        for ((source, shared), cubin) in missing.iter().zip(compiled) {
            if let std::collections::hash_map::Entry::Vacant(place) = loaded.entry(source.clone()) {
                place.insert(self.load(source, &cubin, *shared)?);
            }
        }
        Ok(sources.iter().map(|(s, _)| loaded[s]).collect())
    }

    /// Machine code of sources, from the cache or the compiler.
    fn compile(&self, sources: &[(Arc<Source>, u32)]) -> Result<Vec<Vec<u8>>, RuntimeError> {
        if sources.is_empty() {
            return Ok(Vec::new());
        }
        let version = nvrtc::version().map_err(|e| RuntimeError::Unsupported(e.to_string()))?;
        let options = nvrtc::options(self.sm);
        let next = std::sync::atomic::AtomicUsize::new(0);
        let found: Vec<Mutex<Option<Code>>> = sources.iter().map(|_| Mutex::new(None)).collect();
        let compiled = std::sync::atomic::AtomicUsize::new(0);
        let work = || {
            loop {
                let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some((source, _)) = sources.get(n) else { break };
                let code = match self.cache.read(source, &options, version) {
                    Some(code) => Ok(code),
                    None => {
                        compiled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let code = nvrtc::compile(source, self.sm).map_err(|e| RuntimeError::Unsupported(e.to_string()));
                        if let Ok(code) = &code {
                            self.cache.write(source, &options, version, code);
                        }
                        code
                    }
                };
                *found[n].lock().unwrap_or_else(PoisonError::into_inner) = Some(code);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(sources.len());
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        if compiled.into_inner() > 0 {
            self.cache.trim();
        }
        let lost = || RuntimeError::Poisoned("a compiler thread ended early".into());
        found.into_iter().map(|f| f.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_else(|| Err(lost()))).collect()
    }

    fn load(&self, source: &Source, cubin: &[u8], shared: u32) -> Result<Function, RuntimeError> {
        let driver = self.context.driver;
        let name = CString::new(source.entry.as_str()).map_err(|_| RuntimeError::Unsupported("a kernel's name holds a zero byte".into()))?;
        let (mut module, mut function) = (null_mut(), null_mut());
        const MAX_DYNAMIC_SHARED: i32 = 8;
        // SAFETY: the code is a whole cubin of NVRTC; every place is valid for its call.
        unsafe {
            driver.check("cuModuleLoadData", (driver.cuModuleLoadData)(&mut module, cubin.as_ptr()))?;
            driver.check("cuModuleGetFunction", (driver.cuModuleGetFunction)(&mut function, module, name.as_ptr()))?;
            if shared > 48 << 10 {
                driver.check("cuFuncSetAttribute", (driver.cuFuncSetAttribute)(function, MAX_DYNAMIC_SHARED, shared as i32))?;
            }
        }
        Ok(Function(function))
    }
}
