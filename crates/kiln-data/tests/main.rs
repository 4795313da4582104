//! Tests of datasets and data loaders through their public interface.

mod in_memory;
mod loaders;
mod mnist;
mod transforms;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder of its own for one test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kiln-data-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a temporary file can be written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `call` and checks that it panics with a message that contains `message`.
#[track_caller]
fn check_panics(call: impl FnOnce() + std::panic::UnwindSafe, message: &str) {
    let panic = std::panic::catch_unwind(call).expect_err("the call should panic");
    let found = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
        .expect("a panic carries its message");
    assert!(found.contains(message), "panicked with {found:?}");
}
