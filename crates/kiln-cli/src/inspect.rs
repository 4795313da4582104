//! `kiln inspect`: what is in a weight file.

use std::error::Error;
use std::fmt::Write;

use kiln_store::burn_pack::{DType, Scalar, Tensor};
use kiln_store::{Contents, bridge};

use crate::layout::{size, table};
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
        table(&rows, 3, &mut text);
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
