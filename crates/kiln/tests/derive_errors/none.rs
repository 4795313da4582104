//! A program without mistakes, which tells whether the library can be used.

use kiln::config::Config;
use kiln::module::{Module, Param};
use kiln::optim::RecordState;
use kiln::tensor::Tensor;

/// A module with fields of every sort.
#[derive(Module, Debug)]
pub struct Net<M: Module> {
    weight: Param<Tensor<2>>,
    inner: Option<M>,
    tuple: (M, M),
    size: usize,
    names: Vec<String>,
    #[module(skip)]
    mode: Mode,
}

/// A plain value.
#[derive(Debug, Clone)]
pub struct Mode;

/// A configuration.
#[derive(Config, Debug)]
pub struct NetConfig {
    size: usize,
    #[config(default = 2 * size)]
    hidden: usize,
    rate: Option<f64>,
}

/// A state.
#[derive(RecordState, Clone)]
pub struct State<const D: usize> {
    moment: Tensor<D>,
    step: usize,
    best: Option<f64>,
}
