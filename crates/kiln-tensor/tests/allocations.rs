//! What a steady training step allocates: its outputs, and nothing else.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use kiln_ir::DType;
use kiln_tensor::Device;
use kiln_tensor::raw::RawTensor;

use crate::counting::counting_on;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting the calls of each thread.
struct CountingAllocator;

// SAFETY: every method hands its arguments on to the system's allocator; counting touches a thread-local that needs no allocation and no destructor.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promises are those of this method.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Calls of the allocator on this thread while `f` runs.
fn calls(f: impl FnOnce()) -> usize {
    let before = CALLS.get();
    f();
    CALLS.get() - before
}

/// Weights and momenta of a network of two layers.
struct Training {
    device: Device,
    x: RawTensor,
    state: [RawTensor; 4],
}

impl Training {
    fn new(device: &Device) -> Self {
        let made = |dims: &[usize]| {
            let x = RawTensor::random_normal(device, dims, DType::F32, 0.0, 0.1);
            x.realize().unwrap();
            x
        };
        let state = [made(&[32, 64]), made(&[64, 8]), made(&[32, 64]), made(&[64, 8])];
        Training { device: device.clone(), x: made(&[16, 32]), state }
    }

    /// Records a step of momentum descent; the loss, if it is to be read.
    fn record(&mut self, keep_loss: bool) -> Option<RawTensor> {
        let [w1, w2, m1, m2] = core::mem::replace(&mut self.state, core::array::from_fn(|_| self.x.clone()));
        let (l1, l2) = (w1.autodiff().require_grad(), w2.autodiff().require_grad());
        let loss = self.x.matmul(&l1).gelu().matmul(&l2).log_softmax(1).square().mean(&[0, 1]);
        let mut gradients = loss.backward();
        let mut update = |w: RawTensor, m: RawTensor| {
            let g = gradients.remove(&w).unwrap();
            let m = m.mul_scalar(0.9).add(&g);
            (w.without_autodiff().sub(&m.mul_scalar(0.01)), m)
        };
        let ((w1, m1), (w2, m2)) = (update(l1, m1), update(l2, m2));
        self.state = [w1, w2, m1, m2];
        keep_loss.then(|| loss.without_autodiff())
    }
}

#[test]
fn a_steady_step_makes_no_buffers_beyond_its_outputs() {
    let (device, counts) = counting_on(kiln_cpu::CpuRuntime::global());
    let mut training = Training::new(&device);
    for step in 0..20 {
        let keep = step % 2 == 0;
        let before = counts.buffers();
        let loss = training.record(keep);
        training.device.flush().unwrap();
        let made = counts.buffers() - before;
        // Weights and momenta are overwritten in place; the loss is the only new tensor.
        if step >= 2 {
            assert_eq!(made, keep as usize, "step {step}");
        }
        drop(loss);
    }
    let stats = device.trace_stats();
    assert!(stats.compiles <= 8, "{stats:?}");
}

/// Set in the process that runs one test alone.
const ALONE: &str = "KILN_TEST_ALONE";

/// The blocks of freed memory are all devices' of the process together, so that another test's thread may take the block that the next step would have
/// used again. The steps run in a process of their own.
#[test]
fn a_steady_flush_calls_the_allocator_for_its_outputs_only() {
    if std::env::var_os(ALONE).is_none() {
        let name = "allocations::a_steady_flush_calls_the_allocator_for_its_outputs_only";
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let output = alone.args([name, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let (device, _) = counting_on(kiln_cpu::CpuRuntime::global());
    let mut training = Training::new(&device);
    for step in 0..60 {
        let keep = step % 2 == 0;
        let loss = training.record(keep);
        let made = calls(|| training.device.flush().unwrap());
        // A new output is a handle that is counted, around a block that was freed; everything else is reused.
        if step >= 10 {
            assert_eq!(made, keep as usize, "step {step}");
        }
        drop(loss);
    }
}
