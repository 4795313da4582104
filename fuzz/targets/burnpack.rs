//! Fuzzes the reader of burnpack files.
#![no_main]

use kiln_module::record::burnpack::Reader;
use kiln_tensor::Bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(reader) = Reader::from_bytes("fuzzed", Bytes::from_bytes_vec(data.to_vec())) {
        for tensor in reader.tensors() {
            let _ = tensor.to_bytes();
        }
    }
});
