//! Times Kiln and its installed peers on the same workloads in one run, and prints ratios.

mod builds;
mod lines;
mod peers;
mod table;

use crate::{Outcome, workspace};
use lines::Line;
use peers::Group;
use std::path::PathBuf;
use std::process::Command;

/// What was asked for on the command line.
struct Request {
    only: Vec<String>,
    json: Option<PathBuf>,
    threads: usize,
    with_peers: bool,
}

impl Request {
    fn read(args: &[String]) -> Result<Self, String> {
        let mut request = Self { only: Vec::new(), json: None, threads: 2, with_peers: true };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            match arg.as_str() {
                "--only" => request.only = value()?.split(',').map(String::from).collect(),
                "--json" => request.json = Some(value()?.into()),
                "--threads" => {
                    request.threads = value()?.parse().map_err(|_| "--threads takes a number".to_string())?;
                }
                "--no-peers" => request.with_peers = false,
                other => {
                    return Err(format!("unknown argument {other:?}; see `cargo xtask help`"));
                }
            }
        }
        Ok(request)
    }

    /// Whether a workload is asked for: names given are prefixes.
    fn wants(&self, workload: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|prefix| workload.starts_with(prefix.as_str()))
    }
}

/// Builds and runs the bench program and the peers' programs, group by group.
pub fn run(args: &[String]) -> Outcome {
    let request = Request::read(args)?;
    let status = Command::new(workspace::cargo())
        .args(["build", "--release", "-p", "kiln-bench"])
        .current_dir(workspace::root())
        .status()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    if !status.success() {
        return Err("the bench program does not build".into());
    }
    let program = workspace::target().join("release/kiln-bench");
    let mut all: Vec<Line> = Vec::new();
    for group in Group::ALL {
        let workloads: Vec<&str> = group.workloads().iter().copied().filter(|w| request.wants(w)).collect();
        if workloads.is_empty() {
            continue;
        }
        all.extend(lines::collect(Command::new(&program).args(&workloads), request.threads));
        if request.with_peers && group.has_peers() {
            for (name, mut command) in peers::commands(group, &workloads) {
                let found = lines::collect(&mut command, request.threads);
                if found.is_empty() {
                    eprintln!("{name} printed nothing for {}", workloads.join(", "));
                }
                all.extend(found);
            }
        }
    }
    // Building takes minutes, so it is timed only when asked for by name.
    let builds: Vec<&str> = builds::WORKLOADS.into_iter().filter(|w| !request.only.is_empty() && request.wants(w)).collect();
    if !builds.is_empty() {
        all.extend(builds::run(&builds, request.threads)?);
    }
    if all.is_empty() {
        return Err("no workload ran; `--only` takes prefixes of workload names".into());
    }
    if let Some(path) = &request.json {
        let text: String = all.iter().map(|line| format!("{}\n", line.text)).collect();
        std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    print!("{}", table::render(&all));
    Ok(())
}
