//! A GPU that exists on paper: programs are lowered for it and printed, nothing runs. It shows what a workload becomes without a GPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kiln_compiler::null::Null;
use kiln_compiler::observed::{Observed, Observer};
use kiln_cuda::lowered::{Lowered, Work};
use kiln_cuda::steps::Chip;
use kiln_ir::Program;
use kiln_tensor::Device;

/// Whether programs are printed.
static PRINTS: AtomicBool = AtomicBool::new(false);

/// Whether what is compiled from now on is printed.
pub fn print(wanted: bool) {
    PRINTS.store(wanted, Ordering::Relaxed);
}

/// Lists what programs become on a chip.
struct Paper(Chip);

/// The device: an H200 of compute capability 9.0, without memory.
pub fn device() -> Device {
    let chip = Chip::of(90);
    let null = Null::new(chip.limits()).with_zeros();
    Device::with_runtime("paper", Arc::new(Observed::new(Arc::new(null), Arc::new(Paper(chip)))))
}

impl Observer for Paper {
    fn compiling(&self, program: &Program) {
        if !PRINTS.load(Ordering::Relaxed) {
            return;
        }
        let lowered = Lowered::new(program, &self.0, true, None).unwrap_or_else(|e| panic!("{e}"));
        println!("program of {} launches, {} bytes of arena", lowered.launches.len(), lowered.arena);
        let wanted = std::env::var_os("KILN_SOURCES");
        let (sources, whole) = (wanted.is_some(), wanted.is_some_and(|v| v == "whole"));
        for (n, launch) in lowered.launches.iter().enumerate() {
            for (k, works) in launch.iter().enumerate() {
                for work in works {
                    match work {
                        Work::Launch { source, grid, block, shared, .. } => {
                            println!("{n}.{k} {} {grid:?} x {} ({shared} bytes)", source.entry, block[0]);
                            if sources {
                                println!("{}", if whole { &source.code } else { source.own() });
                            }
                        }
                        other => println!("{n}.{k} {other:?}"),
                    }
                }
            }
        }
    }
}
