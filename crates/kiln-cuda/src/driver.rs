//! The CUDA driver: its functions, and its errors as text.
use std::ffi::{CStr, c_char, c_void};

use kiln_ir::RuntimeError;

use crate::library::functions;

/// Address of device memory.
pub type Address = u64;
/// An opaque object of the driver.
pub type Handle = *mut c_void;

functions! {
    /// The functions of the driver that are used.
    Driver, "the NVIDIA driver", ["libcuda.so.1", "libcuda.so"] {
        fn cuInit(u32);
        fn cuGetErrorName(i32, *mut *const c_char);
        fn cuDeviceGetCount(*mut i32);
        fn cuDeviceGet(*mut i32, i32);
        fn cuDeviceGetName(*mut c_char, i32, i32);
        fn cuDeviceTotalMem_v2(*mut usize, i32);
        fn cuDeviceGetAttribute(*mut i32, i32, i32);
        fn cuDevicePrimaryCtxRetain(*mut Handle, i32);
        fn cuCtxSetCurrent(Handle);
        fn cuStreamCreate(*mut Handle, u32);
        fn cuStreamSynchronize(Handle);
        fn cuStreamWaitEvent(Handle, Handle, u32);
        fn cuStreamBeginCapture_v2(Handle, i32);
        fn cuStreamEndCapture(Handle, *mut Handle);
        fn cuEventCreate(*mut Handle, u32);
        fn cuEventRecord(Handle, Handle);
        fn cuEventSynchronize(Handle);
        fn cuEventElapsedTime(*mut f32, Handle, Handle);
        fn cuGraphInstantiateWithFlags(*mut Handle, Handle, u64);
        fn cuGraphLaunch(Handle, Handle);
        fn cuGraphDestroy(Handle);
        fn cuGraphExecDestroy(Handle);
        fn cuModuleLoadData(*mut Handle, *const u8);
        fn cuModuleGetFunction(*mut Handle, Handle, *const c_char);
        fn cuFuncSetAttribute(Handle, i32, i32);
        fn cuLaunchKernelEx(*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void);
        fn cuMemAlloc_v2(*mut Address, usize);
        fn cuMemFree_v2(Address);
        fn cuMemHostAlloc(*mut *mut u8, usize, u32);
        fn cuMemcpyHtoDAsync_v2(Address, *const u8, usize, Handle);
        fn cuMemcpyDtoHAsync_v2(*mut u8, Address, usize, Handle);
        fn cuMemcpyDtoDAsync_v2(Address, Address, usize, Handle);
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Where it runs.
    pub stream: Handle,
    /// Attributes.
    pub attributes: *const LaunchAttribute,
    /// Number of attributes.
    pub count: u32,
}

/// `CUlaunchAttribute` with a number as its value.
#[repr(C)]
pub struct LaunchAttribute {
    /// Which.
    pub id: i32,
    padding: i32,
    value: [i32; 16],
}

impl LaunchAttribute {
    /// The kernel may start before the one in front has finished, and waits for it itself.
    pub const OVERLAP: LaunchAttribute = LaunchAttribute { id: 6, padding: 0, value: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] };
}

/// Code of the driver for "no memory left".
pub const OUT_OF_MEMORY: i32 = 2;

impl Driver {
    /// The name of an error code.
    pub fn name(&self, code: i32) -> String {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the driver points `text` at a string of its own, or leaves it null.
        unsafe {
            (self.cuGetErrorName)(code, &mut text);
            if text.is_null() { format!("error {code}") } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        }
    }

    /// An error if the code says so: the device can't be trusted after it.
    pub fn check(&self, what: &str, code: i32) -> Result<(), RuntimeError> {
        if code == 0 { Ok(()) } else { Err(RuntimeError::Poisoned(format!("CUDA: {what} says {}", self.name(code)))) }
    }
}
