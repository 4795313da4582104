//! Host memory that buffers borrow: read where it lies, never written, with an owner that lives as long as the buffers do.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kiln_compiler::compile;
use kiln_cpu::CpuRuntime;
use kiln_ir::{DType, Elementwise, Graph, HostMemory, Op, Runtime, RuntimeError};

#[cfg(target_os = "linux")]
pub use guarded::Guarded;

#[cfg(target_os = "linux")]
mod guarded {
    //! Memory whose pages may only be read and are followed by one that may not even be read.
    use core::ptr::null_mut;

    use kiln_ir::HostMemory;

    /// A copy of some bytes that ends with its last page: a write to it, or a read past its end, stops the process.
    pub struct Guarded {
        base: *mut u8,
        mapped: usize,
        len: usize,
    }

    // SAFETY: the memory has one owner and is only read.
    unsafe impl Send for Guarded {}
    // SAFETY: as above.
    unsafe impl Sync for Guarded {}

    const PAGE: usize = 4096;

    impl Guarded {
        /// A guarded copy of `bytes`.
        pub fn new(bytes: &[u8]) -> Self {
            let room = bytes.len().next_multiple_of(PAGE);
            let mapped = room + PAGE;
            let (all, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a fresh mapping; the copy and the protection stay inside it.
            unsafe {
                let base = libc::mmap(null_mut(), mapped, all, private, -1, 0);
                assert_ne!(base, libc::MAP_FAILED);
                let start = base.cast::<u8>().add(room - bytes.len());
                start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                // Miri has no protection of pages; it sees every access by itself.
                if !cfg!(miri) {
                    if room > 0 {
                        assert_eq!(libc::mprotect(base, room, libc::PROT_READ), 0);
                    }
                    assert_eq!(libc::mprotect(base.cast::<u8>().add(room).cast(), PAGE, libc::PROT_NONE), 0);
                }
                Self { base: base.cast(), mapped, len: bytes.len() }
            }
        }
    }

    impl HostMemory for Guarded {
        fn bytes(&self) -> &[u8] {
            // SAFETY: the bytes lie before the guard page and live until the drop.
            unsafe { core::slice::from_raw_parts(self.base.add(self.mapped - PAGE - self.len), self.len) }
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            // SAFETY: the mapping is this one's own.
            unsafe { libc::munmap(self.base.cast(), self.mapped) };
        }
    }
}

static DROPPED: AtomicBool = AtomicBool::new(false);

/// Ten numbers that tell when they go.
struct Owner([f32; 10]);

impl HostMemory for Owner {
    fn bytes(&self) -> &[u8] {
        // SAFETY: floats are plain bytes.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), size_of_val(&self.0)) }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        DROPPED.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_buffer_borrows_memory_and_keeps_its_owner() {
    let cpu = CpuRuntime::global();
    let owner = Arc::new(Owner([1.5; 10]));
    let address = owner.0.as_ptr().cast::<u8>();
    let buffer = cpu.adopt(owner).unwrap();
    assert_eq!(cpu.host_bytes(&buffer).unwrap().as_ptr(), address);
    assert!(!buffer.is_unique(), "borrowed memory could be donated");
    let again = buffer.clone();
    drop(buffer);
    assert!(!DROPPED.load(Ordering::SeqCst));
    let mut read = [0; 40];
    cpu.download(&again, &mut read).unwrap();
    assert_eq!(read[..4], 1.5f32.to_ne_bytes());
    drop(again);
    assert!(DROPPED.load(Ordering::SeqCst));
}

/// Bytes that start between two floats.
struct Odd(Vec<u64>);

impl HostMemory for Odd {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies inside the vector's words.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast::<u8>().add(1), 16) }
    }
}

#[test]
fn memory_that_is_not_aligned_for_its_elements_is_refused() {
    let cpu = CpuRuntime::global();
    let mut graph = Graph::new();
    let x = graph.input(&[4], DType::F32);
    let y = graph.add(Op::Elementwise(Elementwise::Neg), &[x]).unwrap();
    graph.outputs = vec![y];
    let executable = cpu.compile(Arc::new(compile(&graph, cpu.limits()))).unwrap();
    let input = cpu.adopt(Arc::new(Odd(vec![0; 3]))).unwrap();
    let error = cpu.run(&*executable, &[input], &[cpu.alloc(16).unwrap()], &[]).unwrap_err();
    assert_eq!(error, RuntimeError::Kernel("an input that is not aligned for f32".into()));
}
