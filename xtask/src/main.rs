//! Repository tasks: `cargo xtask tidy`, `check`, `api` and `bench`.
//!
//! Start reading at the task's own module; this file only dispatches.

mod api;
mod bench;
mod check;
mod generate;
mod tidy;
mod workspace;

use std::process::ExitCode;

/// What a task ends with: nothing, or one line (or a few) for the person who ran it.
type Outcome = Result<(), String>;

const USAGE: &str = "\
usage: cargo xtask TASK

  tidy    house rules: module docs, file length and names, crate layering, unfinished code, fresh documents
  docs    writes the documents that are derived from source
  check   what CI runs, cheapest first: rustfmt, tidy, clippy, no_std builds, docs, tests
          [--fail-fast] stops at the first step that fails
          [--list] prints the steps
  bench   times Kiln and the peers that are installed on the same workloads, and prints ratios
          [--only WORKLOAD,..] prefixes of workload names; `build_cold` and `rebuild_user` run only when named
          [--json FILE] the figures as JSON lines
          [--threads N] of every program (default 2)
          [--no-peers] times Kiln alone
  api     compares the facade with the list of what a Burn 0.22 program may use
          [LIST] another list than KILN_API_LIST or ../shared/api/public-api.txt
          [--module burn::tensor] one module and what lies below it
          [--summary] figures only
          [--check-floor] fails if fewer entries match than xtask/api-floor.txt says";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let task = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let outcome = match task.as_str() {
        "tidy" => tidy::run(),
        "docs" => generate::run(),
        "check" => check::run(&rest),
        "bench" => bench::run(&rest),
        "api" => api::run(&rest),
        "" | "help" | "--help" | "-h" => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        other => Err(format!("no task is named {other:?}\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {task}: {message}");
            ExitCode::FAILURE
        }
    }
}
