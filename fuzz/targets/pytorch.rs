//! Fuzzes the reader of files that `torch.save` wrote, and that of optimizers' states in them.
#![no_main]

use kiln_store::pytorch::{PytorchOptimizer, PytorchReader};
use kiln_tensor::Bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::from_bytes_vec(data.to_vec());
    let _ = PytorchOptimizer::from_bytes("fuzzed", bytes.clone(), Some("optimizer"));
    if let Ok(reader) = PytorchReader::from_bytes("fuzzed", bytes, None) {
        // A tensor that was expanded may be larger than its storage.
        for tensor in reader.tensors().filter(|tensor| tensor.byte_len() < 1 << 20) {
            let _ = tensor.to_bytes();
        }
    }
});
