//! Traces: what a thread has asked of a device and the device has not done yet.
//!
//! Each (device, thread) has a [`TraceCell`]. Recording an op appends a node to the cell's [`Recording`]; a flush takes the recording, finds or
//! compiles its program and runs it. Start reading at [`TraceCell::record`], then [`run`].
//!
//! Two locks: `trace` guards the recording and is held for an append only; `running` is held while a recording runs, so that whoever needs
//! one of its results can wait for it.
mod cache;
mod hash;
mod recording;
mod run;
mod slot;

use alloc::sync::Arc;

use kiln_ir::{DType, Dims, NodeId, Op, OpInputs, RuntimeError};
use smallvec::SmallVec;

pub(crate) use cache::ProgramCache;
#[cfg(feature = "std")]
pub(crate) use recording::bound_nodes;
pub(crate) use recording::{Operand, Recording, ScalarWord};
pub(crate) use slot::Slot;

use crate::device::DeviceState;
use crate::lock::Mutex;
use crate::raw::RawTensor;

/// What a thread does while another one appends to the trace that it wants.
struct Relax;

impl spin::RelaxStrategy for Relax {
    #[inline]
    fn relax() {
        #[cfg(feature = "std")]
        std::thread::yield_now();
        #[cfg(not(feature = "std"))]
        core::hint::spin_loop();
    }
}

/// The trace of one device and one thread. Cells live as long as the process and are handed on when their thread ends.
pub(crate) struct TraceCell {
    /// The device.
    pub device: &'static DeviceState,
    /// A spin lock: it is held for an append, and nearly always by the cell's own thread.
    trace: spin::mutex::SpinMutex<Recording, Relax>,
    /// Held during a run; keeps the emptied recording for its capacity.
    running: Mutex<Option<Recording>>,
}

impl TraceCell {
    /// A cell of a device.
    pub fn new(device: &'static DeviceState) -> Self {
        TraceCell { device, trace: spin::mutex::SpinMutex::new(Recording::new(device.memory)), running: Mutex::new(None) }
    }

    /// Appends a node and returns the slot of its result. `stated` tells that the operands don't determine `dims` and `dtype`, so that these enter the key.
    pub fn record(&'static self, op: &Op, operands: &[Operand<'_>], dims: Dims, dtype: DType, stated: bool) -> Arc<Slot> {
        let mut trace = match self.resolve(operands) {
            Ok(trace) => trace,
            Err(e) => return Slot::settled(dims, dtype, self, Err(e)),
        };
        let mut inputs = OpInputs::new();
        for o in operands {
            inputs.push(trace.operand(o));
        }
        let slot = trace.slot(dims, dtype, self);
        trace.push(op, inputs, &slot, stated);
        if trace.is_full() {
            drop(trace);
            self.flush_full();
        }
        slot
    }

    /// Appends a node with several results and returns their slots.
    pub fn record_results(&'static self, op: &Op, operands: &[Operand<'_>], results: &[(Dims, DType)]) -> SmallVec<[Arc<Slot>; 3]> {
        let mut trace = match self.resolve(operands) {
            Ok(trace) => trace,
            Err(e) => return results.iter().map(|(dims, dtype)| Slot::settled(dims.clone(), *dtype, self, Err(e.clone()))).collect(),
        };
        let inputs: OpInputs = operands.iter().map(|o| trace.operand(o)).collect();
        let node = trace.len();
        let mut slots = SmallVec::new();
        for (i, (dims, dtype)) in results.iter().enumerate() {
            let slot = trace.slot(dims.clone(), *dtype, self);
            match i {
                0 => trace.push(op, inputs.clone(), &slot, true),
                _ => trace.push(&Op::Get(i as u32), OpInputs::from_slice(&[NodeId(node)]), &slot, true),
            }
            slots.push(slot);
        }
        if trace.is_full() {
            drop(trace);
            self.flush_full();
        }
        slots
    }

    /// Locks the recording when every operand is pending in it or ready. Operands that wait for another thread's trace, or for a run of this one, are awaited without
    /// the lock.
    #[inline]
    fn resolve(&self, operands: &[Operand<'_>]) -> Result<spin::mutex::SpinMutexGuard<'_, Recording>, RuntimeError> {
        let mut trace = self.trace.lock();
        'all: loop {
            for o in operands {
                if let Operand::Tensor(RawTensor { slot, .. }) = o
                    && slot.node_in(trace.number).is_none()
                {
                    match slot.value() {
                        Some(Ok(_)) => {}
                        Some(Err(e)) => return Err(e.clone()),
                        None => {
                            drop(trace);
                            slot.wait()?;
                            trace = self.trace.lock();
                            continue 'all;
                        }
                    }
                }
            }
            return Ok(trace);
        }
    }

    /// Runs a trace that has reached a bound, unless most of it is wanted by nobody and can be left out. Failures are kept in the slots and reported by the device's
    /// next sync.
    #[cold]
    fn flush_full(&self) {
        if self.trace.lock().make_room() {
            return;
        }
        if let Err(e) = self.flush() {
            self.device.remember(e);
        }
    }

    /// Runs what has been recorded. An error is also left in the slots that it concerns.
    pub fn flush(&self) -> Result<(), RuntimeError> {
        let mut running = self.running.lock();
        let mut recording = {
            let mut trace = self.trace.lock();
            if trace.len() == 0 {
                return Ok(());
            }
            let fresh = running.take().unwrap_or_else(|| Recording::new(self.device.memory));
            core::mem::replace(&mut *trace, fresh)
        };
        let result = run::run(self.device, &mut recording);
        recording.reset();
        *running = Some(recording);
        result
    }

    /// Number of nodes recorded and not run yet.
    pub fn pending(&self) -> usize {
        self.trace.lock().len() as usize
    }

    #[cfg(feature = "std")]
    /// For a cell whose thread has ended: forgets what nobody can ask for any more.
    pub fn retire(&self) {
        let mut trace = self.trace.lock();
        if !trace.has_live() {
            trace.reset();
        }
    }
}

#[cfg(feature = "std")]
mod threads {
    //! Which cell a thread records to.
    use std::cell::{Cell, RefCell};
    use std::vec::Vec;

    use super::TraceCell;
    use crate::device::DeviceState;

    /// The cells a thread has taken; given back when it ends.
    struct Taken(RefCell<Vec<&'static TraceCell>>);

    impl Drop for Taken {
        fn drop(&mut self) {
            for cell in self.0.get_mut().drain(..) {
                cell.retire();
                cell.device.free_cells.lock().push(cell);
            }
        }
    }

    thread_local! {
        static LAST: Cell<Option<&'static TraceCell>> = const { Cell::new(None) };
        static TAKEN: Taken = const { Taken(RefCell::new(Vec::new())) };
    }

    /// The calling thread's cell of a device.
    #[inline]
    pub(crate) fn current(device: &'static DeviceState) -> &'static TraceCell {
        match LAST.get() {
            Some(cell) if core::ptr::eq(cell.device, device) => cell,
            _ => find(device),
        }
    }

    #[cold]
    fn find(device: &'static DeviceState) -> &'static TraceCell {
        let cell = TAKEN.try_with(|taken| {
            let mut taken = taken.0.borrow_mut();
            if let Some(cell) = taken.iter().find(|c| core::ptr::eq(c.device, device)) {
                return *cell;
            }
            let cell = take(device);
            taken.push(cell);
            cell
        });
        // A thread that is being torn down records to a cell that is not given back.
        let cell = cell.unwrap_or_else(|_| take(device));
        LAST.set(Some(cell));
        cell
    }

    /// Runs `f` with other cells than the calling thread's, which are handed on afterwards.
    pub(crate) fn apart<T>(f: impl FnOnce() -> T) -> T {
        /// Gives the cells of `f` back and the thread its own, also when `f` panics.
        struct Own(Option<Vec<&'static TraceCell>>);

        impl Drop for Own {
            fn drop(&mut self) {
                let own = self.0.take().unwrap_or_default();
                drop(swap(own).map(|cells| Taken(RefCell::new(cells))));
            }
        }

        let _own = Own(swap(Vec::new()));
        f()
    }

    /// Exchanges the cells the calling thread has taken; `None` in a thread that is being torn down.
    fn swap(cells: Vec<&'static TraceCell>) -> Option<Vec<&'static TraceCell>> {
        LAST.set(None);
        TAKEN.try_with(|taken| taken.0.replace(cells)).ok()
    }

    fn take(device: &'static DeviceState) -> &'static TraceCell {
        let free = device.free_cells.lock().pop();
        match free {
            Some(cell) => {
                // What its former thread left behind for others comes first; an error stays in the slots.
                let _ = cell.flush();
                cell
            }
            None => alloc::boxed::Box::leak(alloc::boxed::Box::new(TraceCell::new(device))),
        }
    }
}

#[cfg(not(feature = "std"))]
mod threads {
    //! Without threads every device has one cell.
    use super::TraceCell;
    use crate::device::DeviceState;

    /// The cell of a device.
    pub(crate) fn current(device: &'static DeviceState) -> &'static TraceCell {
        device.only_cell.call_once(|| alloc::boxed::Box::leak(alloc::boxed::Box::new(TraceCell::new(device))))
    }
}

#[cfg(feature = "std")]
pub(crate) use threads::apart;
pub(crate) use threads::current;
