//! Tests of modules and records through their public interface.

mod burnpack;
mod burnpack_files;
mod burnpack_hostile;
mod config;
mod derive;
mod legacy;
mod lora;
mod params;
mod records;

/// The message that `call` panics with.
#[track_caller]
fn panic_of<T>(call: impl FnOnce() -> T) -> String {
    let payload = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) {
        Ok(_) => panic!("a panic was expected"),
        Err(payload) => payload,
    };
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => (*payload.downcast::<&str>().expect("a message")).into(),
    }
}
