//! `kiln convert`: from one format of weight files to another.

use std::error::Error;
use std::path::Path;

use kiln_store::Contents;
use kiln_store::burn_pack::{EXTENSION, Writer};
use kiln_store::safetensors::SafetensorsWriter;

/// Writes the tensors of `file` to `new` and says so. A file that is there already is not replaced.
pub fn convert(file: &str, new: &str) -> Result<String, Box<dyn Error>> {
    let contents = Contents::open(file)?;
    if !contents.format.has_paths() {
        let message = format!("{file}: {} carries no names of parameters; load it into its module and save that", contents.format);
        return Err(message.into());
    }
    let count = contents.tensors.len();
    match Path::new(new).extension().and_then(|extension| extension.to_str()) {
        Some(EXTENSION) => {
            let mut writer = Writer::new(contents.tensors).overwrite(false);
            for (key, text) in &contents.metadata {
                writer = writer.with_metadata(key, text);
            }
            for (key, scalar) in &contents.scalars {
                writer = writer.with_scalar(key, *scalar);
            }
            writer.write_to_file(new)?;
        }
        Some("safetensors") if contents.scalars.is_empty() => {
            let mut writer = SafetensorsWriter::new(contents.tensors).overwrite(false);
            for (key, text) in &contents.metadata {
                writer = writer.with_metadata(key, text);
            }
            writer.write_to_file(new)?;
        }
        Some("safetensors") => return Err(format!("{file}: has numbers beside its tensors, which safetensors cannot hold").into()),
        _ => return Err(format!("{new}: ends in neither .{EXTENSION} nor .safetensors").into()),
    }
    Ok(format!("{new}: {count} tensors\n"))
}
