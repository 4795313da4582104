//! Command-line options of the examples: `--name value`, with a default.

use std::str::FromStr;

/// The value after `--name`, or `default`; an unreadable value ends the program with a message.
pub fn option<T: FromStr>(name: &str, default: T) -> T {
    given(name).unwrap_or(default)
}

/// The value after `--name`, if there is one.
pub fn given<T: FromStr>(name: &str) -> Option<T> {
    let flag = format!("--{name}");
    let mut args = std::env::args().skip_while(|arg| *arg != flag);
    args.next()?;
    let Some(value) = args.next() else { stop(&format!("{flag} needs a value")) };
    Some(value.parse().unwrap_or_else(|_| stop(&format!("{flag} does not take {value:?}"))))
}

fn stop(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2);
}
