//! The JSON lines that bench programs print, ours and the peers' alike.

use serde_json::Value;
use std::process::{Command, Stdio};

/// One measured workload.
#[derive(Clone, Debug)]
pub struct Line {
    /// Who ran it.
    pub framework: String,
    /// What ran.
    pub workload: String,
    /// Seconds of one run.
    pub median: f64,
    /// For a part of a workload: its share of the whole's time.
    pub share: Option<f64>,
    /// Share of the cores that other processes used meanwhile.
    pub foreign: f64,
    /// The line as printed.
    pub text: String,
}

impl Line {
    /// Reads one line; other output gives nothing.
    pub fn read(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            framework: value["framework"].as_str()?.into(),
            workload: value["workload"].as_str()?.into(),
            median: value["median_s"].as_f64()?,
            share: value["extra"]["share"].as_f64(),
            foreign: value["extra"]["foreign_cpu"].as_f64().unwrap_or(0.0),
            text: text.into(),
        })
    }
}

/// Runs a program with `threads` threads and returns the lines that it printed.
pub fn collect(command: &mut Command, threads: usize) -> Vec<Line> {
    const COUNTS: [&str; 6] = ["KILN_NUM_THREADS", "RAYON_NUM_THREADS", "MATMUL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS", "THREADS"];
    // These override what OpenBLAS finds out about the machine.
    for name in ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"] {
        command.env_remove(name);
    }
    command.envs(COUNTS.map(|name| (name, threads.to_string())));
    match command.stdin(Stdio::null()).stderr(Stdio::null()).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).lines().filter_map(Line::read).collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn a_line_is_read_and_other_output_is_not() {
        let text = r#"{"framework": "kiln", "workload": "sgemm_256", "dtype": "f32", "median_s": 1.5e-4, "min_s": 1e-4, "n": 10, "extra": {"foreign_cpu": 0.2}}"#;
        let line = Line::read(text).expect("this is a line");
        assert_eq!((line.framework.as_str(), line.workload.as_str()), ("kiln", "sgemm_256"));
        assert_eq!((line.median, line.foreign), (1.5e-4, 0.2));
        assert!(Line::read("warming up").is_none());
    }
}
