//! Fuzzes the reader of records of schedulers.
#![no_main]

use kiln_optim::lr_scheduler::LrSchedulerRecord;
use kiln_tensor::Bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = LrSchedulerRecord::from_bytes(Bytes::from_bytes_vec(data.to_vec()));
});
