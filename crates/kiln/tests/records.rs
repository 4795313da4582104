//! Records: what is saved is what is loaded, and files that cannot be read say so.

use kiln::nn::conv::{Conv2d, Conv2dConfig};
use kiln::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use kiln::prelude::*;
use std::path::PathBuf;

#[derive(Module, Debug)]
struct Net {
    conv: Conv2d,
    norm: BatchNorm,
    layers: Vec<Linear>,
}

impl Net {
    fn new(device: &Device) -> Self {
        let linear = |_| LinearConfig::new(4, 4).init(device);
        Self {
            conv: Conv2dConfig::new([1, 4], [3, 3]).init(device),
            norm: BatchNormConfig::new(4).init(device),
            layers: (0..2).map(linear).collect(),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let x = self.norm.forward(self.conv.forward(x)).mean_dim(3).mean_dim(2).flatten::<2>(1, 3);
        self.layers.iter().fold(x, |x, layer| layer.forward(x))
    }
}

/// A file of this test run that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("kiln-{}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The file may be gone already; nothing depends on it.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_saved_module_loads_into_a_fresh_one() {
    let device = Device::default();
    let file = Scratch::new("module.bpk");
    let x = Tensor::<4>::random([2, 1, 6, 6], kiln::tensor::Distribution::Default, &device);
    let model = Net::new(&device);
    let before = model.forward(x.clone()).into_data();
    model.save_file(&file.0).expect("the folder can be written");
    let fresh = Net::new(&device);
    assert_ne!(fresh.forward(x.clone()).into_data(), before);
    let loaded = fresh.try_load_file(&file.0).expect("the file was just written");
    loaded.forward(x).into_data().assert_eq(&before, true);
}

#[test]
fn a_truncated_file_is_an_error_that_names_it() {
    let device = Device::default();
    let file = Scratch::new("truncated.bpk");
    Net::new(&device).save_file(&file.0).expect("the folder can be written");
    let bytes = std::fs::read(&file.0).expect("the file was just written");
    for length in [0, 5, 60, bytes.len() - 1] {
        std::fs::write(&file.0, &bytes[..length]).expect("the folder can be written");
        let error = Net::new(&device).try_load_file(&file.0).expect_err("part of the file is gone").to_string();
        assert!(error.contains("truncated.bpk"), "cut to {length} bytes: {error}");
    }
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let error = Net::new(&Device::default()).try_load_file("no-such-file.bpk").expect_err("there is no such file");
    assert!(error.to_string().contains("no-such-file.bpk"), "{error}");
}
