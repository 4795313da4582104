//! A GPU that exists on paper: programs are lowered for it and printed, nothing runs. It shows what a workload becomes without a GPU.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kiln_cuda::lowered::{Lowered, Work};
use kiln_cuda::steps::Chip;
use kiln_ir::runtime::Storage;
use kiln_ir::{Buffer, DType, DeviceInfo, Executable, Kernel, Limits, MemoryUse, Program, Runtime, RuntimeError};

/// Whether programs are printed.
static PRINTS: AtomicBool = AtomicBool::new(false);

/// Whether what is compiled from now on is printed.
pub fn print(wanted: bool) {
    PRINTS.store(wanted, Ordering::Relaxed);
}

#[derive(Debug)]
struct Nothing;

impl Storage for Nothing {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Listed;

impl Executable for Listed {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The device: an H200 without memory.
pub struct Paper {
    limits: Limits,
    chip: Chip,
}

impl Paper {
    /// One of compute capability 9.0.
    pub fn new() -> Self {
        let chip = Chip::of(90);
        Paper { limits: chip.limits(), chip }
    }
}

impl Runtime for Paper {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo { kind: "paper", name: "a GPU on paper".into(), memory: 0 }
    }

    fn supports(&self, kernel: &Kernel) -> bool {
        !matches!(kernel, Kernel::Host(_))
    }

    fn supports_dtype(&self, _: DType) -> bool {
        true
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        Ok(Buffer::new(Arc::new(Nothing), bytes))
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        self.alloc(bytes.len())
    }

    fn download(&self, _: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        out.fill(0);
        Ok(())
    }

    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        if PRINTS.load(Ordering::Relaxed) {
            let lowered = Lowered::new(&program, &self.chip, true, None)?;
            println!("program of {} launches, {} bytes of arena", lowered.launches.len(), lowered.arena);
            let sources = std::env::var_os("KILN_SOURCES").is_some();
            for (n, launch) in lowered.launches.iter().enumerate() {
                for (k, works) in launch.iter().enumerate() {
                    for work in works {
                        match work {
                            Work::Launch { source, grid, block, shared, .. } => {
                                println!("{n}.{k} {} {grid:?} x {} ({shared} bytes)", source.entry, block[0]);
                                if sources {
                                    println!("{}", source.own());
                                }
                            }
                            other => println!("{n}.{k} {other:?}"),
                        }
                    }
                }
            }
        }
        Ok(Arc::new(Listed))
    }

    fn run(&self, _: &dyn Executable, _: &[Buffer], _: &[Buffer], _: &[u64]) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    fn cleanup(&self) {}
}
