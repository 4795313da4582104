//! Fuzzes the reader of records that Burn 0.21 wrote.
#![no_main]

use kiln_module::record::legacy::LegacyRecord;
use kiln_tensor::Bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(record) = LegacyRecord::from_bytes("fuzzed", Bytes::from_bytes_vec(data.to_vec())) {
        for tensor in &record.tensors {
            let _ = tensor.to_bytes();
        }
    }
});
