//! The compiler that tests use, where there is one.
use kiln_cuda::nvrtc::{compile, version};
use kiln_cuda::steps::{Source, Steps};

/// Whether kernels can be compiled here; says so once when they can't.
pub fn is_here() -> bool {
    static SAID: std::sync::Once = std::sync::Once::new();
    match version() {
        Ok(_) => true,
        Err(e) => {
            SAID.call_once(|| eprintln!("skipped: {e}"));
            false
        }
    }
}

/// Compiles a source for an architecture, or fails with the compiler's message and the text.
#[track_caller]
pub fn must_compile(source: &Source, sm: u32) {
    if let Err(e) = compile(source, sm) {
        let own = source.code.find("extern \"C\"").map_or(&source.code[..], |at| &source.code[at..]);
        panic!("sm_{sm}: {e}\n{own}");
    }
}

/// Compiles every source of some steps.
#[track_caller]
pub fn all_compile(steps: &Steps, sm: u32) {
    steps.steps.iter().for_each(|s| must_compile(&s.source, sm));
}
