//! The kiln command.

mod convert;
mod devices;
mod inspect;
mod layout;
mod statistics;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: kiln COMMAND

  devices                  list the devices that Kiln finds on this machine
  convert FILE NEW         write the tensors of a weight file to a new one: NEW ends in .bpk or .safetensors
  inspect FILE [--stats]   list the tensors of a weight file (burnpack, safetensors, records of Burn 0.21): path, shape, dtype, bytes;
                           with --stats also minimum, maximum, mean and standard deviation
  help                     this text";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["devices"] => Ok(devices::list()),
        ["convert", file, new] => convert::convert(file, new),
        ["inspect", file] => inspect::inspect(file, false),
        ["inspect", file, "--stats"] | ["inspect", "--stats", file] => inspect::inspect(file, true),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("kiln: {error}");
            ExitCode::FAILURE
        }
    }
}
