//! Weight files: a module of a gibibyte loaded from a safetensors file and saved to one, beside plain writing and reading of the same bytes.
//!
//! `KILN_BENCH_FOLDER` names where the files lie (default: the system's temporary folder), `KILN_BENCH_MIB` their size.

use crate::harness::{Bench, Work};
use kiln::module::{Module, Param, ParamId};
use kiln::store::{ModuleSnapshot, SafetensorsStore};
use kiln::tensor::{Device, Tensor};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Edge of a parameter: 16 MiB of `f32`.
const EDGE: usize = 2048;

#[derive(Module, Debug)]
struct Weights {
    layers: Vec<Param<Tensor<2>>>,
}

impl Weights {
    /// A module of as many parameters, each of another value.
    fn filled(count: usize, device: &Device) -> Self {
        let layer = |index| Param::from_tensor(Tensor::full([EDGE, EDGE], index as f32 + 1.0, device));
        Self { layers: (0..count).map(layer).collect() }
    }

    /// A module whose parameters have not been made yet.
    fn lazy(count: usize, device: &Device) -> Self {
        let make = |device: &Device, _: bool| Tensor::zeros([EDGE, EDGE], device);
        let layer = |_| Param::uninitialized(ParamId::new(), make, device.clone(), false, [EDGE, EDGE].into());
        Self { layers: (0..count).map(layer).collect() }
    }

    fn save(&self, path: &Path) {
        self.save_into(&mut SafetensorsStore::from_file(path).overwrite(true)).expect("the folder is writable");
    }

    fn loaded(path: &Path, count: usize, device: &Device) -> Self {
        let mut weights = Self::lazy(count, device);
        weights.load_from(&mut SafetensorsStore::from_file(path)).expect("the file fits");
        device.sync().expect("the CPU does not fail");
        weights
    }

    /// Adds up every element, so that every byte is read.
    fn total(&self) -> f32 {
        self.layers.iter().map(|layer| layer.val().sum().into_scalar::<f32>()).sum()
    }
}

/// Files that go when the run ends.
struct Files([PathBuf; 2]);

impl Drop for Files {
    fn drop(&mut self) {
        for path in &self.0 {
            // It may not have been made.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes the bytes to a file of another name, brings them to the disk and moves it to `path`: what an atomic save cannot do without.
fn write_plain(path: &Path, block: &[u8], count: usize) {
    let scratch = path.with_extension("tmp");
    let mut file = File::create(&scratch).expect("the folder is writable");
    for _ in 0..count {
        file.write_all(block).expect("the disk has room");
    }
    file.sync_all().expect("the disk does not fail");
    std::fs::rename(&scratch, path).expect("the folder is writable");
}

/// Runs the wanted workloads.
pub fn run(bench: &mut Bench, device: &Device) {
    let names = ["save_plain", "save_safetensors", "read_plain", "load_safetensors", "load_and_sum", "sum_loaded"];
    let [save_plain, save, read_plain, load, load_and_sum, sum] = names.map(|name| bench.wants(name));
    if !(save_plain || save || read_plain || load || load_and_sum || sum) {
        return;
    }
    let folder = std::env::var_os("KILN_BENCH_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from);
    let mib = std::env::var("KILN_BENCH_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(1024);
    let (count, bytes) = (mib / 16, Work::Bytes((mib << 20) as f64));
    let path = |kind: &str| folder.join(format!("kiln-bench-{}.{kind}", std::process::id()));
    let files = Files([path("plain"), path("safetensors")]);
    let [plain, safetensors] = &files.0;
    let block: Vec<u8> = (0..EDGE * EDGE).flat_map(|index| (index as f32).to_ne_bytes()).collect();
    write_plain(plain, &block, count);
    Weights::filled(count, device).save(safetensors);
    if save_plain {
        bench.run("save_plain", 1, bytes, || write_plain(plain, &block, count));
    }
    if save {
        let weights = Weights::filled(count, device);
        weights.total();
        bench.run("save_safetensors", 1, bytes, || weights.save(safetensors));
    }
    if read_plain {
        let mut buffer = vec![0; 1 << 20];
        bench.run("read_plain", 1, bytes, || {
            let mut file = File::open(plain).expect("the file is there");
            while file.read(&mut buffer).expect("the disk does not fail") > 0 {}
        });
    }
    if load {
        bench.run("load_safetensors", 1, bytes, || drop(Weights::loaded(safetensors, count, device)));
    }
    if load_and_sum {
        bench.run("load_and_sum", 1, bytes, || assert!(Weights::loaded(safetensors, count, device).total() > 0.0));
    }
    if sum {
        let weights = Weights::filled(count, device);
        bench.run("sum_loaded", 1, bytes, || assert!(weights.total() > 0.0));
    }
}
