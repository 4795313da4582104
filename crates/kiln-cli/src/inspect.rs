//! `kiln inspect`: what is in a weight file.

use std::error::Error;
use std::fmt::Write;

use kiln_store::burn_pack::{DType, Scalar, Tensor};
use kiln_store::{Contents, bridge};

use crate::statistics::Statistics;

/// The listing of a file.
pub fn inspect(file: &str, with_statistics: bool) -> Result<String, Box<dyn Error>> {
    let contents = Contents::open(file)?;
    let bytes: usize = contents.tensors.iter().map(Tensor::byte_len).sum();
    let elements: usize = contents.tensors.iter().map(|tensor| tensor.shape.num_elements()).sum();
    let mut text = format!("{file}: {}, {} tensors, {elements} elements, {}\n", contents.format, contents.tensors.len(), size(bytes));
    for (key, value) in &contents.metadata {
        writeln!(text, "  {key} = {value:?}")?;
    }
    for (key, scalar) in &contents.scalars {
        writeln!(text, "  {key} = {}", number(*scalar))?;
    }
    let mut head = vec!["path", "shape", "dtype", "bytes"];
    if with_statistics {
        head.extend(["min", "max", "mean", "std", "not finite"]);
    }
    let mut rows = vec![head.into_iter().map(String::from).collect()];
    for tensor in &contents.tensors {
        rows.push(row(tensor, with_statistics)?);
    }
    if rows.len() > 1 {
        write_table(&rows, &mut text);
    }
    Ok(text)
}

fn row(tensor: &Tensor, with_statistics: bool) -> Result<Vec<String>, Box<dyn Error>> {
    let shape = format!("{:?}", tensor.shape.as_slice());
    let mut row = vec![tensor.name.clone(), shape, dtype(tensor.dtype), size(tensor.byte_len())];
    // A quantized tensor's bytes are codes and scales, which have no statistics as numbers.
    if with_statistics && !matches!(tensor.dtype, DType::QFloat(_)) {
        let statistics = Statistics::of(&bridge::to_data(tensor)?);
        row.extend(
            [statistics.min, statistics.max, statistics.mean, statistics.std].map(|value| value.map_or("-".into(), |value| format!("{value:.6}"))),
        );
        row.push(statistics.not_finite.to_string());
    }
    Ok(row)
}

fn dtype(dtype: DType) -> String {
    match dtype {
        DType::QFloat(scheme) => format!("qfloat {:?}", scheme.value),
        dtype => dtype.name().into(),
    }
}

fn number(scalar: Scalar) -> String {
    match scalar {
        Scalar::Int(value) => value.to_string(),
        Scalar::UInt(value) => value.to_string(),
        Scalar::Float(value) => value.to_string(),
        Scalar::Bool(value) => value.to_string(),
    }
}

/// A number of bytes, such as `1.50 MiB`.
fn size(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut scaled = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if scaled < 1024.0 {
            break;
        }
        (scaled, unit) = (scaled / 1024.0, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{scaled:.2} {unit}"),
    }
}

/// Columns as wide as their widest cell; numbers to the right, names and shapes to the left.
fn write_table(rows: &[Vec<String>], text: &mut String) {
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = if column < 3 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            line.push_str("  ");
            line.push_str(&cell);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
