//! Times Kiln on the workloads its peers are timed on. usage: kiln-bench [--list] [WORKLOAD-PREFIX ...]
//!
//! Prints one JSON line per workload: framework, workload, dtype, median_s, min_s, n, extra.
//! The models are those of the peers, written as a user would write them; nothing here knows Kiln's inside.

mod gpt;
mod harness;
mod inference;
mod operations;
mod random;
mod resnet;
mod training;

use harness::Bench;
use kiln::tensor::Device;

fn main() {
    let mut filter = Vec::new();
    let mut list = false;
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--list" => list = true,
            prefix => filter.push(prefix.to_string()),
        }
    }
    let device = Device::default();
    let mut bench = Bench::new(filter, list);
    operations::run(&mut bench, &device);
    training::run(&mut bench, &device);
    inference::run(&mut bench, &device);
}
