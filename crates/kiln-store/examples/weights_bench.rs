//! Times saving and loading a large safetensors file, beside what the disk and the memory do without us.
//!
//! `cargo run --release -p kiln-store --example weights_bench -- FOLDER [MiB]`

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use kiln_module::module::{Module, Param};
use kiln_store::safetensors::{SafetensorsReader, SafetensorsWriter};
use kiln_store::{ModuleSnapshot, SafetensorsStore, burn_pack};
use kiln_tensor::{Bytes, DType, Device, Tensor};

/// Bytes of one tensor.
const TENSOR: usize = 16 << 20;

#[derive(Module, Debug)]
struct Weights {
    layers: Vec<Param<Tensor<2>>>,
}

fn timed<T>(what: &str, bytes: usize, call: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = call();
    let seconds = start.elapsed().as_secs_f64();
    println!("{what:<52} {seconds:8.3} s {:8.2} GB/s   resident {} MiB", bytes as f64 / seconds / 1e9, resident() >> 20);
    result
}

/// Bytes that the process holds in memory, without the pages of files.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap_or(0) << 10
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let count = arguments.next().and_then(|size| size.parse::<usize>().ok()).unwrap_or(1024) * (1 << 20) / TENSOR;
    let (path, plain) = (Path::new(&folder).join("weights_bench.safetensors"), Path::new(&folder).join("weights_bench.raw"));
    let total = count * TENSOR;
    let block: Vec<u8> = (0..TENSOR / 4).flat_map(|index| ((index % 1000) as f32).to_le_bytes()).collect();

    timed("write and sync the same bytes, plain file", total, || {
        let mut file = File::create(&plain).expect("writable");
        (0..count).for_each(|_| file.write_all(&block).expect("room"));
        file.sync_all().expect("synced");
    });
    let shared = Bytes::from_bytes_vec(block).shared();
    timed("save safetensors (atomic, synced)", total, || {
        let tensors = (0..count).map(|index| {
            let bytes = shared.clone();
            burn_pack::Tensor::deferred(format!("layers.{index}"), DType::F32, [2048, 2048], None, TENSOR, move || Ok(bytes.clone()))
        });
        SafetensorsWriter::new(tensors.collect()).write_to_file(&path).expect("writable");
    });
    timed("read the plain file through a buffer of 1 MiB", total, || {
        let (mut file, mut buffer) = (File::open(&plain).expect("there"), vec![0; 1 << 20]);
        while file.read(&mut buffer).expect("readable") > 0 {}
    });
    let tensors = timed("open safetensors, index only", total, || SafetensorsReader::open(&path).expect("readable").tensors());
    let sum = timed("touch every page of the mapped tensors", total, || {
        tensors
            .iter()
            .map(|tensor| tensor.to_bytes().expect("mapped").iter().skip(2).step_by(4096).map(|byte| u64::from(*byte)).sum::<u64>())
            .sum::<u64>()
    });
    timed("copy the mapped tensors into fresh memory", total, || {
        let copies: Vec<Vec<u8>> = tensors.iter().map(|tensor| tensor.to_bytes().expect("mapped").to_vec()).collect();
        assert_eq!(copies.len(), count);
    });
    drop(tensors);
    let device = Device::default();
    let layer = |_| {
        Param::uninitialized(
            kiln_module::module::ParamId::new(),
            |device: &Device, _| Tensor::zeros([2048, 2048], device),
            device.clone(),
            false,
            [2048, 2048].into(),
        )
    };
    let mut weights = Weights { layers: (0..count).map(layer).collect() };
    timed("load into a module", total, || {
        weights.load_from(&mut SafetensorsStore::from_file(&path)).expect("fits");
        device.sync().expect("done");
    });
    timed("add up every element of the module", total, || {
        let sums: Vec<f32> = weights.layers.iter().map(|layer| layer.val().sum().into_scalar()).collect();
        assert!(sums.iter().all(|found| *found == sums[0]) && sum > 0);
    });
    timed("save the module (atomic, synced)", total, || {
        weights.save_into(&mut SafetensorsStore::from_file(&path).overwrite(true)).expect("writable");
    });
    std::fs::remove_file(path).expect("there");
    std::fs::remove_file(plain).expect("there");
}
