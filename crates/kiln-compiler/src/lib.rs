//! Kiln's compiler: from a graph to a program of fused kernels with a memory plan.
//!
//! Pure functions, no device: [`simplify`](simplify::simplify) the graph, [order](layout::order_channels) the channels of convolutions, [`schedule`](schedule::schedule) nodes into kernels, [`lower`](kernels::lower) them to kernels as data,
//! [`plan`](plan::plan) their order and memory. A [verifier](verify::verify) checks every program in debug builds.
//!
//! Start reading at [`compile_with`].
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod groups;
pub mod index;
pub mod kernels;
pub mod layout;
pub mod lower;
pub mod null;
pub mod observed;
pub mod plan;
pub mod print;
pub mod relation;
pub mod schedule;
pub mod simplify;
pub mod split;
pub mod verify;

use kiln_ir::{Graph, Limits, Program};

/// What the compiler may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Put several nodes into one kernel. Without it every computing node has a kernel of its own (for tests: fused = unfused).
    pub fuse: bool,
    /// Let dots compute cheap operands while they pack them.
    pub prologues: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { fuse: true, prologues: true }
    }
}

/// Compiles a graph with the default options.
pub fn compile(graph: &Graph, limits: &Limits) -> Program {
    compile_with(graph, limits, &Options::default())
}

/// Compiles a graph. `KILN_LOG=schedule` prints the program.
pub fn compile_with(graph: &Graph, limits: &Limits, options: &Options) -> Program {
    let mut graph = layout::order_channels(simplify::simplify(graph), limits);
    if options.fuse {
        graph = split::split_reductions(graph, limits);
    }
    let mut lessons = schedule::Lessons::default();
    let lowered = loop {
        let schedule = schedule::schedule(&graph, limits, options, &lessons);
        if let Some(lowered) = kernels::lower(&graph, &schedule, &mut lessons) {
            break lowered;
        }
    };
    let program = plan::plan(&graph, lowered);
    #[cfg(debug_assertions)]
    if let Err(e) = verify::verify(&program) {
        panic!("the compiler made a wrong program: {e}\n{}\n{}", graph.print(), print::print(&program));
    }
    #[cfg(feature = "std")]
    log(&program);
    program
}

/// Prints programs to standard error when `KILN_LOG` contains `schedule`.
#[cfg(feature = "std")]
fn log(program: &Program) {
    static WANTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    if *WANTED.get_or_init(|| std::env::var("KILN_LOG").is_ok_and(|v| v.split(',').any(|w| w == "schedule"))) {
        std::eprintln!("{}", print::print(program));
    }
}
