//! The model of the samples, with modules of the names that Burn's have.

use kiln_module::module::{Module, Param};
use kiln_tensor::{Bool, Device, Int, Tensor};

/// Weight `[in, out]` and bias.
#[derive(Module, Debug)]
pub struct Linear {
    pub weight: Param<Tensor<2>>,
    pub bias: Option<Param<Tensor<1>>>,
}

/// Weight `[out, in, height, width]` and bias.
#[derive(Module, Debug)]
pub struct Conv2d {
    pub weight: Param<Tensor<4>>,
    pub bias: Option<Param<Tensor<1>>>,
}

/// Gain, shift and running statistics.
#[derive(Module, Debug)]
pub struct BatchNorm {
    pub gamma: Param<Tensor<1>>,
    pub beta: Param<Tensor<1>>,
    pub running_mean: Param<Tensor<1>>,
    pub running_var: Param<Tensor<1>>,
}

/// A module that is one of several.
#[derive(Module, Debug)]
pub enum Head {
    Lin(Linear),
    Conv(Conv2d),
}

/// Every kind of part that a module can have.
#[derive(Module, Debug)]
pub struct Model {
    pub conv: Conv2d,
    pub norm: BatchNorm,
    pub linear: Linear,
    pub layers: Vec<Linear>,
    pub pair: [Linear; 2],
    pub tup: (Linear, Conv2d),
    pub head: Head,
    pub maybe_some: Option<Linear>,
    pub maybe_none: Option<Linear>,
    pub scale: Param<Tensor<1>>,
    pub ints: Param<Tensor<1, Int>>,
    pub mask: Param<Tensor<1, Bool>>,
    pub size: usize,
}

pub fn linear(inputs: usize, outputs: usize, bias: bool, device: &Device) -> Linear {
    let weight = Param::from_tensor(Tensor::zeros([inputs, outputs], device));
    Linear { weight, bias: bias.then(|| Param::from_tensor(Tensor::zeros([outputs], device))) }
}

fn conv(shape: [usize; 4], bias: bool, device: &Device) -> Conv2d {
    let weight = Param::from_tensor(Tensor::zeros(shape, device));
    Conv2d { weight, bias: bias.then(|| Param::from_tensor(Tensor::zeros([shape[0]], device))) }
}

impl Model {
    /// The model of the samples, all zeros.
    pub fn new(device: &Device) -> Self {
        let vector = |len| Param::from_tensor(Tensor::zeros([len], device));
        Self {
            conv: conv([3, 2, 3, 3], true, device),
            norm: BatchNorm { gamma: vector(3), beta: vector(3), running_mean: vector(3), running_var: vector(3) },
            linear: linear(4, 2, true, device),
            layers: vec![linear(2, 3, true, device), linear(3, 2, false, device)],
            pair: [linear(2, 2, false, device), linear(2, 2, false, device)],
            tup: (linear(2, 2, true, device), conv([1, 1, 2, 2], false, device)),
            head: Head::Lin(linear(3, 2, true, device)),
            maybe_some: Some(linear(2, 2, false, device)),
            maybe_none: None,
            scale: vector(6),
            ints: Param::initialized(kiln_module::module::ParamId::new(), Tensor::zeros([4], device)),
            mask: Param::initialized(kiln_module::module::ParamId::new(), Tensor::from_data([false, false, false], device)),
            size: 7,
        }
    }
}
