//! Tensor data made from arrays and slices.

use alloc::vec::Vec;

use super::TensorData;
use crate::element::Element;
use crate::shape::Shape;

impl<E: Element> From<&[E]> for TensorData {
    fn from(values: &[E]) -> Self {
        Self::new(values.to_vec(), [values.len()])
    }
}

impl From<&[usize]> for TensorData {
    /// The sizes as `i64`.
    fn from(values: &[usize]) -> Self {
        let converted: Vec<i64> = values.iter().map(|value| *value as i64).collect();
        Self::new(converted, [values.len()])
    }
}

impl<const A: usize> From<[usize; A]> for TensorData {
    /// The sizes as `i64`.
    fn from(values: [usize; A]) -> Self {
        Self::from(values.as_slice())
    }
}

impl<E: Element, const A: usize> From<[E; A]> for TensorData {
    fn from(values: [E; A]) -> Self {
        Self::new(values.to_vec(), Shape::new([A]))
    }
}

impl<E: Element, const A: usize, const B: usize> From<[[E; B]; A]> for TensorData {
    fn from(values: [[E; B]; A]) -> Self {
        Self::new(values.as_flattened().to_vec(), Shape::new([A, B]))
    }
}

impl<E: Element, const A: usize, const B: usize, const C: usize> From<[[[E; C]; B]; A]> for TensorData {
    fn from(values: [[[E; C]; B]; A]) -> Self {
        let values = values.as_flattened().as_flattened().to_vec();
        Self::new(values, Shape::new([A, B, C]))
    }
}

impl<E: Element, const A: usize, const B: usize, const C: usize, const D: usize> From<[[[[E; D]; C]; B]; A]> for TensorData {
    fn from(values: [[[[E; D]; C]; B]; A]) -> Self {
        let values = (values.as_flattened().as_flattened()).as_flattened().to_vec();
        Self::new(values, Shape::new([A, B, C, D]))
    }
}

impl<Elem: Element, const A: usize, const B: usize, const C: usize, const D: usize, const E: usize> From<[[[[[Elem; E]; D]; C]; B]; A]>
    for TensorData
{
    fn from(values: [[[[[Elem; E]; D]; C]; B]; A]) -> Self {
        let values = (values.as_flattened().as_flattened()).as_flattened().as_flattened();
        Self::new(values.to_vec(), Shape::new([A, B, C, D, E]))
    }
}
