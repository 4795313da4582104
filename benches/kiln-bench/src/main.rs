//! Times Kiln on the workloads its peers are timed on. usage: kiln-bench [--list] [--paper] [WORKLOAD-PREFIX ...]
//!
//! `--paper` (with feature `cuda`) needs no GPU: it prints the launches that each workload's step becomes on one, and the host's time for a step; with `KILN_SOURCES` set, their texts too (`whole`: with what every kernel may use).
//! Prints one JSON line per workload: framework, workload, dtype, median_s, min_s, n, extra.
//! The models are those of the peers, written as a user would write them; nothing here knows Kiln's inside.

#[cfg(feature = "cuda")]
mod accelerator;
#[cfg(feature = "cuda")]
mod amp;
#[cfg(not(feature = "cuda"))]
mod clocked;
#[cfg(not(feature = "cuda"))]
mod files;
#[cfg(not(feature = "cuda"))]
mod gpt;
#[cfg(not(feature = "cuda"))]
mod harness;
#[cfg(not(feature = "cuda"))]
mod inference;
#[cfg(feature = "cuda")]
mod llama;
#[cfg(not(feature = "cuda"))]
mod operations;
#[cfg(feature = "cuda")]
mod paper;
#[cfg(not(feature = "cuda"))]
mod quantized;
mod random;
#[cfg(not(feature = "cuda"))]
mod resnet;
#[cfg(feature = "cuda")]
mod resnet50;
mod training;

#[cfg(not(feature = "cuda"))]
use harness::Bench;
use kiln::tensor::Device;

fn main() {
    let mut filter = Vec::new();
    let mut list = false;
    #[cfg(feature = "cuda")]
    let mut on_paper = false;
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--list" => list = true,
            #[cfg(feature = "cuda")]
            "--paper" => on_paper = true,
            prefix => filter.push(prefix.to_string()),
        }
    }
    // The GPU's workloads are others: those of the PyTorch program that they are compared with.
    #[cfg(feature = "cuda")]
    return match on_paper {
        true => accelerator::run(&filter, list, true, &paper::device()),
        false => accelerator::run(&filter, list, false, &Device::cuda(0)),
    };
    #[cfg(not(feature = "cuda"))]
    on_cpu(filter, list);
}

#[cfg(not(feature = "cuda"))]
fn on_cpu(filter: Vec<String>, list: bool) {
    let device = Device::default();
    let mut bench = Bench::new(filter, list);
    operations::run(&mut bench, &device);
    training::run(&mut bench, &device);
    inference::run(&mut bench, &device);
    quantized::run(&mut bench, &device);
    files::run(&mut bench, &device);
}
