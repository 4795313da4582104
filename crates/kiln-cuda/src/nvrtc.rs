//! NVRTC: from CUDA C++ text to machine code for one architecture.
use std::ffi::{CStr, CString, c_char};
use std::ptr::null;

use crate::library::{MissingLibrary, functions};
use crate::steps::Source;

type Program = *mut std::ffi::c_void;

functions! {
    /// The functions of NVRTC that are used.
    Nvrtc, "the CUDA run-time compiler (NVRTC)", ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"] {
        fn nvrtcVersion(*mut i32, *mut i32);
        fn nvrtcCreateProgram(*mut Program, *const c_char, *const c_char, i32, *const *const c_char, *const *const c_char);
        fn nvrtcCompileProgram(Program, i32, *const *const c_char);
        fn nvrtcGetCUBINSize(Program, *mut usize);
        fn nvrtcGetCUBIN(Program, *mut u8);
        fn nvrtcGetProgramLogSize(Program, *mut usize);
        fn nvrtcGetProgramLog(Program, *mut c_char);
        fn nvrtcDestroyProgram(*mut Program);
    }
}

/// Why a source has no machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// There is no compiler.
    Missing(MissingLibrary),
    /// The compiler's own message.
    Failed(String),
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompileError::Missing(missing) => missing.fmt(f),
            CompileError::Failed(log) => write!(f, "NVRTC does not compile a kernel: {log}"),
        }
    }
}

impl std::error::Error for CompileError {}

/// The compiler's version, or that there is none.
pub fn version() -> Result<(i32, i32), MissingLibrary> {
    let nvrtc = Nvrtc::get()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both places are valid for the call.
    unsafe { (nvrtc.nvrtcVersion)(&mut major, &mut minor) };
    Ok((major, minor))
}

/// The options for a compute capability (times ten). `sm_90` and `sm_100` kernels may use the instructions of exactly that chip.
pub fn options(sm: u32) -> Vec<String> {
    let suffix = if matches!(sm, 90 | 100 | 103) { "a" } else { "" };
    vec![format!("--gpu-architecture=sm_{sm}{suffix}"), "--std=c++17".into(), "--device-as-default-execution-space".into()]
}

/// Whether `KILN_LOG` contains `kernels`: each source that is compiled is printed with the assembler's report of registers and spills.
fn is_reported() -> bool {
    static WANTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *WANTED.get_or_init(|| std::env::var("KILN_LOG").is_ok_and(|v| v.split(',').any(|w| w == "kernels")))
}

/// What the compiler has to say of a program.
///
/// # Safety
/// The program is alive.
unsafe fn log(nvrtc: &Nvrtc, program: Program) -> String {
    let mut size = 0;
    // SAFETY: the program is alive and the buffer has the size that the compiler asks for.
    let bytes = unsafe {
        (nvrtc.nvrtcGetProgramLogSize)(program, &mut size);
        let mut bytes = vec![0u8; size.max(1)];
        (nvrtc.nvrtcGetProgramLog)(program, bytes.as_mut_ptr().cast());
        bytes
    };
    CStr::from_bytes_until_nul(&bytes).map(|l| l.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Compiles a source for a compute capability.
///
/// # Errors
/// No compiler, or a source that it refuses.
pub fn compile(source: &Source, sm: u32) -> Result<Vec<u8>, CompileError> {
    let nvrtc = Nvrtc::get().map_err(CompileError::Missing)?;
    let text = |s: &str| CString::new(s).map_err(|_| CompileError::Failed("the source holds a zero byte".into()));
    let (code, name) = (text(&source.code)?, text(&format!("{}.cu", source.entry))?);
    let mut options = options(sm).iter().map(|o| text(o)).collect::<Result<Vec<_>, _>>()?;
    if is_reported() {
        options.push(text("--ptxas-options=-v")?);
    }
    let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let mut program: Program = std::ptr::null_mut();
    // SAFETY: every pointer lives through its call; the program is destroyed once, at the end.
    unsafe {
        let status = (nvrtc.nvrtcCreateProgram)(&mut program, code.as_ptr(), name.as_ptr(), 0, null(), null());
        if status != 0 {
            return Err(CompileError::Failed(format!("nvrtcCreateProgram says {status}")));
        }
        let status = (nvrtc.nvrtcCompileProgram)(program, pointers.len() as i32, pointers.as_ptr());
        let result = if status == 0 {
            let mut size = 0;
            (nvrtc.nvrtcGetCUBINSize)(program, &mut size);
            let mut cubin = vec![0; size];
            (nvrtc.nvrtcGetCUBIN)(program, cubin.as_mut_ptr());
            if is_reported() {
                eprintln!("{}{}", source.own(), log(nvrtc, program));
            }
            Ok(cubin)
        } else {
            Err(CompileError::Failed(format!("{} (status {status})", log(nvrtc, program).trim())))
        };
        (nvrtc.nvrtcDestroyProgram)(&mut program);
        result
    }
}
