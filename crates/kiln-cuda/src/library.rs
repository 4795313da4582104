//! Shared libraries of CUDA, found at run time: where they are looked for, and tables of their functions.
use std::path::PathBuf;

use libloading::Library;

/// Why a library or one of its functions is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingLibrary {
    /// What it is for, and the names under which it was looked for or the function it lacks.
    pub what: String,
}

impl std::fmt::Display for MissingLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for MissingLibrary {}

/// Folders that are searched after the system's own: those of `KILN_CUDA_LIBS` (separated by `:`), then the usual places of a CUDA toolkit.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os("KILN_CUDA_LIBS").map(|v| std::env::split_paths(&v).collect()).unwrap_or_default();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = std::env::var_os(variable) {
            folders.push(PathBuf::from(home).join("lib64"));
        }
    }
    folders.extend(["/usr/local/cuda/lib64", "/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/wsl/lib"].map(PathBuf::from));
    folders
}

/// Opens the first library of these names that there is. It stays open as long as the process.
pub fn open(purpose: &str, names: &[&str]) -> Result<Library, MissingLibrary> {
    let own: Vec<PathBuf> = folders();
    let places = own.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name))).filter(|path| path.exists());
    let listed = std::env::var_os("KILN_CUDA_LIBS").is_some();
    let (mut first, mut then): (Vec<PathBuf>, Vec<PathBuf>) = (places.collect(), names.iter().map(PathBuf::from).collect());
    if !listed {
        std::mem::swap(&mut first, &mut then);
    }
    for path in first.into_iter().chain(then) {
        // SAFETY: these are NVIDIA's own libraries, whose initialisers may run at any time and on any thread.
        if let Ok(library) = unsafe { Library::new(&path) } {
            return Ok(library);
        }
    }
    Err(MissingLibrary { what: format!("{purpose} is missing: none of {} could be loaded (KILN_CUDA_LIBS adds folders)", names.join(", ")) })
}

/// Declares a table of functions of a library.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident, $purpose:literal, [$($file:literal),*] { $(fn $name:ident($($arg:ty),*);)* }) => {
        $(#[$doc])*
        #[allow(non_snake_case, missing_docs)]
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($arg),*) -> i32,)*
        }

        impl $table {
            /// Loads the library and finds every function.
            fn load() -> Result<Self, crate::library::MissingLibrary> {
                let library = Box::leak(Box::new(crate::library::open($purpose, &[$($file),*])?));
                Ok($table {
                    $($name: {
                        let symbol = concat!(stringify!($name), "\0");
                        // SAFETY: the signature is that of the library's documentation, and the library is never closed.
                        match unsafe { library.get::<unsafe extern "C" fn($($arg),*) -> i32>(symbol.as_bytes()) } {
                            Ok(function) => *function,
                            Err(_) => return Err(crate::library::MissingLibrary { what: format!("{} has no function {}", $purpose, stringify!($name)) }),
                        }
                    },)*
                })
            }

            /// The process's table.
            pub fn get() -> Result<&'static Self, crate::library::MissingLibrary> {
                static TABLE: std::sync::OnceLock<Result<$table, crate::library::MissingLibrary>> = std::sync::OnceLock::new();
                TABLE.get_or_init(Self::load).as_ref().map_err(Clone::clone)
            }
        }
    };
}

pub(crate) use functions;
