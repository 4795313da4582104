//! The schedule of a program: prepared kernels, and how the kernels of a launch share the thread pool.
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use kiln_ir::{Kernel, Program, RuntimeError};

use crate::kernels::{Frame, Prepared, attention, contraction, conv, copy, fused, gather, host, pool, scan, scatter, sort};
use crate::pool::{Pool, tasks_for};

/// Prepared launches in order.
pub(crate) struct Schedule {
    launches: Vec<Launch>,
    #[cfg(feature = "std")]
    profile: Option<crate::profile::Profile>,
}

/// One launch.
enum Launch {
    /// A single kernel, which splits itself.
    One(Box<dyn Prepared>),
    /// Independent kernels.
    Many {
        /// Kernels that use the whole pool, one after the other.
        alone: Vec<Box<dyn Prepared>>,
        /// Kernels whose pieces are mixed.
        mixed: Vec<Box<dyn Prepared>>,
        /// Tasks: ranges of `segments`.
        tasks: Vec<Range<usize>>,
        /// Pieces of a mixed kernel.
        segments: Vec<(usize, Range<usize>)>,
    },
}

impl Schedule {
    /// Prepares every kernel of a program for a pool of `threads` threads.
    pub fn new(program: &Program, threads: usize) -> Result<Self, RuntimeError> {
        let mut launches = Vec::with_capacity(program.launches.len());
        for launch in &program.launches {
            let mut kernels = Vec::with_capacity(launch.kernels.len());
            for kernel in &launch.kernels {
                kernels.push(prepare(kernel, program)?);
            }
            launches.push(match kernels.len() {
                1 => match kernels.pop() {
                    Some(kernel) => Launch::One(kernel),
                    None => continue,
                },
                _ => mix(kernels, threads),
            });
        }
        Ok(Schedule {
            launches,
            #[cfg(feature = "std")]
            profile: crate::profile::Profile::of(program),
        })
    }

    /// Runs every launch. Stops after a launch that failed.
    ///
    /// # Safety
    /// The frame is one of the program the schedule was made from.
    pub unsafe fn run(&self, frame: &Frame<'_>, pool: &Pool) {
        #[cfg(feature = "std")]
        let mut timing = self.profile.as_ref().map(|profile| profile.begin());
        for launch in &self.launches {
            // SAFETY: as the caller's; kernels of a launch are independent.
            unsafe {
                match launch {
                    Launch::One(kernel) => kernel.run_all(frame, pool),
                    Launch::Many { alone, mixed, tasks, segments } => {
                        alone.iter().for_each(|k| k.run_all(frame, pool));
                        pool.run(tasks.len(), &|t| {
                            for (k, pieces) in &segments[tasks[t].clone()] {
                                mixed[*k].run(frame, pieces.clone());
                            }
                        });
                    }
                }
            }
            #[cfg(feature = "std")]
            if let Some(timing) = &mut timing {
                timing.after();
            }
            if frame.failure.is_set() {
                return;
            }
        }
    }
}

/// Deals the pieces of independent kernels out to tasks of about equal work.
fn mix(kernels: Vec<Box<dyn Prepared>>, threads: usize) -> Launch {
    let (alone, mixed): (Vec<_>, Vec<_>) = kernels.into_iter().partition(|k| k.is_alone());
    let total: usize = mixed.iter().map(|k| k.work()).sum();
    let wanted = tasks_for(total, threads);
    let share = (total / wanted).max(1);
    let (mut tasks, mut segments) = (Vec::new(), Vec::new());
    let (mut first, mut filled) = (0, 0);
    for (k, kernel) in mixed.iter().enumerate() {
        let (pieces, mut done) = (kernel.pieces(), 0);
        let each = kernel.work().div_ceil(pieces.max(1)).max(1);
        while done < pieces {
            let room = if tasks.len() + 1 == wanted { usize::MAX } else { share.saturating_sub(filled).div_ceil(each).max(1) };
            let n = room.min(pieces - done);
            segments.push((k, done..done + n));
            done += n;
            filled += n * each;
            if filled >= share && tasks.len() + 1 < wanted {
                tasks.push(first..segments.len());
                (first, filled) = (segments.len(), 0);
            }
        }
    }
    if first < segments.len() {
        tasks.push(first..segments.len());
    }
    Launch::Many { alone, mixed, tasks, segments }
}

/// Prepares one kernel.
fn prepare(kernel: &Kernel, program: &Program) -> Result<Box<dyn Prepared>, RuntimeError> {
    Ok(match kernel {
        Kernel::Fused(k) => fused::prepare(k, program)?,
        Kernel::Dot(k) => contraction::prepare_dot(k, program)?,
        Kernel::Conv(k) => conv::prepare(k, program)?,
        Kernel::Attention(k) => attention::prepare(k, program, false),
        Kernel::AttentionGrad(k) => attention::prepare(k, program, true),
        Kernel::Pool(k) => pool::prepare(k),
        Kernel::Gather(k) => Box::new(gather::Gather::new(k, program)),
        Kernel::Scatter(k) => Box::new(scatter::Scatter::new(k, program)),
        Kernel::Scan(k) => Box::new(scan::Scan::new(k)),
        Kernel::Sort(k) => Box::new(sort::Sort::new(k)),
        Kernel::Host(k) => Box::new(host::Host::new(k, program)),
        Kernel::Copy { from, to } => Box::new(copy::Copy { from: *from, to: *to, bytes: program.buf(*to).bytes() }),
    })
}
