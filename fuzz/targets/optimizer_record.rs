//! Fuzzes the reader of records of optimizers.
#![no_main]

use kiln_optim::OptimizerRecord;
use kiln_tensor::Bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(data.to_vec()));
});
