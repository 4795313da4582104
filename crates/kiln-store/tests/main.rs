//! Tests of weight files through their public interface.

mod adapters;
mod allocations;
mod codec;
mod contents;
mod mapped;
mod model;
mod mutations;
mod names;
mod pytorch;
mod safetensors;
mod stores;

use kiln_store::burn_pack::Tensor;
use kiln_tensor::TensorData;

/// A stored tensor of these values.
fn tensor<const N: usize>(name: &str, values: [f32; N]) -> Tensor {
    kiln_store::bridge::from_data(TensorData::from(values), name.into(), None)
}

/// The path of a burnpack sample.
fn burnpack_sample(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-module/tests/data/burnpack").join(name)
}
