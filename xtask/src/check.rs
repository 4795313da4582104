//! What CI runs: every step, cheapest first, with one summary at the end.

use crate::{Outcome, api, tidy, workspace};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Crates that must build without the standard library.
const NO_STD: [&str; 7] = ["kiln-ir", "kiln-compiler", "kiln-cpu", "kiln-tensor", "kiln-module", "kiln-nn", "kiln-optim"];

/// Targets without an operating system, built for when the toolchain has them.
const BARE_TARGETS: [&str; 3] = ["wasm32-unknown-unknown", "thumbv7em-none-eabihf", "aarch64-unknown-none"];

/// One step: what the summary calls it and what it does.
struct Step {
    name: String,
    work: Work,
}

enum Work {
    Tidy,
    Api,
    Cargo { args: Vec<String>, env: Vec<(&'static str, String)> },
}

/// Runs all steps, also after one has failed unless `--fail-fast` is given; fails if any did.
pub fn run(args: &[String]) -> Outcome {
    let (mut fail_fast, mut list) = (false, false);
    for arg in args {
        match arg.as_str() {
            "--fail-fast" => fail_fast = true,
            "--list" => list = true,
            other => {
                return Err(format!("unknown argument {other:?}; there are --fail-fast and --list"));
            }
        }
    }
    let steps = steps(list);
    if list {
        steps.iter().for_each(|step| println!("{}", step.name));
        return Ok(());
    }
    let mut lines = Vec::new();
    let mut failed = 0;
    for step in &steps {
        println!("\n==> {}", step.name);
        let start = Instant::now();
        let outcome = perform(&step.work);
        let seconds = start.elapsed().as_secs_f64();
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        lines.push(format!("{verdict:>6}  {seconds:6.1} s  {}", step.name));
        if let Err(message) = outcome {
            failed += 1;
            eprintln!("{}: {message}", step.name);
            if fail_fast {
                break;
            }
        }
    }
    println!("\n{}", lines.join("\n"));
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} steps failed", steps.len())) }
}

fn perform(work: &Work) -> Outcome {
    match work {
        Work::Tidy => tidy::run(),
        Work::Api => api::run(&["--summary".into(), "--check-floor".into()]),
        Work::Cargo { args, env } => {
            let status = Command::new(workspace::cargo())
                .args(args)
                .envs(env.iter().map(|(key, value)| (key, value)))
                .current_dir(workspace::root())
                .stdin(Stdio::null())
                .status()
                .map_err(|error| format!("cargo did not start: {error}"))?;
            if status.success() { Ok(()) } else { Err(format!("cargo {} ended with {status}", args.join(" "))) }
        }
    }
}

fn steps(list: bool) -> Vec<Step> {
    let mut steps = vec![
        cargo("rustfmt", &["fmt", "--all", "--", "--check"]),
        Step { name: "tidy".into(), work: Work::Tidy },
        cargo("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ];
    for package in NO_STD {
        steps.push(cargo(&format!("no_std {package}"), &["build", "-p", package, "--no-default-features"]));
    }
    // Linking a panic handler next to the crates fails if any of them, or of what they use, brings the standard library.
    let probe = ["build", "--manifest-path", "xtask/no-std-probe/Cargo.toml", "--target-dir", "target/no-std-probe"];
    if workspace::root().join("xtask/no-std-probe/Cargo.toml").exists() {
        steps.push(cargo("no_std link", &probe));
        for target in BARE_TARGETS.into_iter().filter(|target| is_installed(target)) {
            let args = [&probe[..], &["--target", target]].concat();
            steps.push(cargo(&format!("no_std {target}"), &args));
        }
    }
    let mut docs = cargo("docs", &["doc", "--workspace", "--no-deps"]);
    if let Work::Cargo { env, .. } = &mut docs.work {
        env.push(("RUSTDOCFLAGS", "-D warnings".into()));
    }
    steps.push(docs);
    if api::list_is_here() {
        steps.push(Step { name: "api".into(), work: Work::Api });
    }
    steps.push(cargo("feature cuda", &["check", "-p", "kiln-bench", "--no-default-features", "--features", "cuda"]));
    let mut tests = cargo("tests", &["test", "--workspace"]);
    if let (Work::Cargo { env, .. }, Some(folder)) = (&mut tests.work, if list { None } else { nvrtc() }) {
        env.push(("KILN_CUDA_LIBS", folder.display().to_string()));
    }
    steps.push(tests);
    // The tests above run plain code where the facade's features `linalg` and `signal` turn on libraries.
    let libraries =
        ["test", "-p", "kiln-tensor", "--features", "cpu,faer,rustfft", "--test", "main", "--", "linalg", "signal", "host_operations", "second"];
    steps.push(cargo("linalg and signal by libraries", &libraries));
    steps.push(cargo("a migrated program with libraries", &["test", "-p", "migrated", "--features", "libraries"]));
    steps
}

/// The folder with NVIDIA's run-time compiler, with which tests compile CUDA sources: installed once from PyPI below `target`. Without pip or network those tests
/// say that they were skipped.
fn nvrtc() -> Option<PathBuf> {
    let root = workspace::target().join("nvrtc");
    let find = || {
        let libs = std::fs::read_dir(root.join("nvidia")).ok()?.flatten().map(|entry| entry.path().join("lib"));
        libs.into_iter()
            .find(|lib| std::fs::read_dir(lib).is_ok_and(|files| files.flatten().any(|f| f.file_name().to_string_lossy().starts_with("libnvrtc.so"))))
    };
    if let Some(found) = find() {
        return Some(found);
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--timeout", "30", "--retries", "1", "--target"]).arg(&root);
    let installed = pip.arg("nvidia-cuda-nvrtc").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !installed.is_ok_and(|status| status.success()) {
        println!("nvidia-cuda-nvrtc could not be installed: CUDA sources are rendered, not compiled");
    }
    find()
}

fn cargo(name: &str, args: &[&str]) -> Step {
    let args = args.iter().map(|arg| arg.to_string()).collect();
    Step { name: name.into(), work: Work::Cargo { args, env: Vec::new() } }
}

/// Whether the toolchain can build for `target`.
fn is_installed(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    output.is_ok_and(|output| {
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        output.status.success() && path.exists()
    })
}
