//! Quantization of a module's parameters, and the training of a quantized module by updates of low rank.

use alloc::string::String;
use alloc::vec::Vec;

use kiln_tensor::Tensor;
use kiln_tensor::quantization::{BlockLayout, Calibration, QuantScheme, compute_q_params, compute_range};

use super::reparam::CONTAINER;
use super::{Lora, LoraAdapter, ModuleMapper, Param, ParamGroup, Reparameterizer};

/// Quantizes float parameters, of which codes and scales are then kept: a model of 8-bit weights takes about a quarter of the memory, in files too. Layers compute as
/// before, with the values that the codes stand for. Quantized parameters are not trained; parts of a reparameterization, such as the updates of [`Lora`], stay
/// as they are.
///
/// By default every float parameter is quantized, also biases and running statistics, so a group is usually what one wants.
///
/// ```
/// use kiln_module::module::{Module, Param, ParamGroup, Quantizer};
/// use kiln_tensor::quantization::{Calibration, QuantScheme, QuantValue, ScaleDtype};
/// use kiln_tensor::{Device, Distribution, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Layer {
///     weight: Param<Tensor<2>>,
///     bias: Param<Tensor<1>>,
/// }
///
/// let device = Device::default();
/// let weight = Tensor::random([64, 32], Distribution::Default, &device);
/// let layer = Layer { weight: Param::from_tensor(weight.clone()), bias: Param::from_data([0.5; 32], &device) };
/// let scheme = QuantScheme::default().with_value(QuantValue::Q4S).per_block([32], ScaleDtype::F16);
/// let mut quantizer = Quantizer::new(Calibration::MinMax, scheme);
/// quantizer.set_param_group(ParamGroup::from_path("weight"));
/// let layer = layer.quantize_weights(&mut quantizer);
///
/// assert_eq!((layer.weight.dtype().name(), layer.bias.dtype().name()), ("qfloat", "f32"));
/// let error = (layer.weight.val().dequantize() - weight).abs().max().into_scalar::<f32>();
/// assert!(error < 0.5 / 7.0 + 0.001);
/// ```
pub struct Quantizer {
    /// How the ranges of the weights are found.
    pub calibration: Calibration,
    /// How the quantized weights are represented.
    pub scheme: QuantScheme,
    /// Which parameters are quantized. By default all.
    pub group: ParamGroup,
    path: Vec<String>,
    /// How many reparameterizations the walk is inside of.
    inside: usize,
}

impl Quantizer {
    /// A quantizer of all parameters.
    #[must_use]
    pub fn new(calibration: Calibration, scheme: QuantScheme) -> Self {
        Self { calibration, scheme, group: ParamGroup::all(), path: Vec::new(), inside: 0 }
    }

    /// Sets which parameters are quantized.
    pub fn set_param_group(&mut self, group: ParamGroup) {
        self.group = group;
    }

    /// The parameter quantized. Panics when the scheme's blocks don't divide it.
    fn quantized<const D: usize>(&self, path: &str, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.lazy_shape();
        if let Some(block) = self.scheme.block_size() {
            let divides = block.len() <= D && BlockLayout::new(&shape, &block).divides();
            assert!(
                divides,
                "quantize_weights: blocks of {:?} do not divide parameter `{path}` of shape {:?}: choose a group without it",
                &block[..],
                &shape[..]
            );
        }
        param.map(|tensor| {
            let params = compute_q_params(&self.scheme, compute_range(&self.scheme, &tensor, &self.calibration));
            tensor.quantize(&self.scheme, params)
        })
    }
}

impl ModuleMapper for Quantizer {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.push(name.into());
        self.inside += usize::from(container_type == CONTAINER);
    }

    fn exit_module(&mut self, _name: &str, container_type: &str) {
        self.path.pop();
        self.inside -= usize::from(container_type == CONTAINER);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.inside > 0 || !self.group.matches_segments(&param.id, &self.path) {
            return param;
        }
        self.quantized(&self.path.join("."), param)
    }
}

/// Adapts quantized matrices by trained updates of low rank: the matrices of the [`Lora`]'s group get updates, and the parameters of the [`Quantizer`]'s group are
/// quantized. What is neither stays as it is.
///
/// Dettmers et al. 2023, [arXiv:2305.14314](https://arxiv.org/abs/2305.14314).
///
/// ```
/// use kiln_module::module::{Lora, Module, Param, QLora, Quantizer};
/// use kiln_tensor::quantization::{Calibration, QuantScheme, QuantValue};
/// use kiln_tensor::{Device, Distribution, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Layer {
///     weight: Param<Tensor<2>>,
/// }
///
/// let device = Device::default().autodiff();
/// let layer = Layer { weight: Param::from_tensor(Tensor::random([64, 32], Distribution::Default, &device)) };
/// let scheme = QuantScheme::default().with_value(QuantValue::Q4S);
/// let layer = layer.apply_qlora(QLora::new(Lora::new(4, 8.0), Quantizer::new(Calibration::MinMax, scheme)));
/// assert_eq!(layer.weight.base().dtype().name(), "qfloat");
/// let gradients = layer.weight.val().sum().backward();
/// assert!(layer.weight.adapter().unwrap().b.grad(&gradients).is_some());
/// ```
pub struct QLora {
    lora: Lora,
    quantizer: Quantizer,
}

impl QLora {
    /// These updates over matrices quantized so.
    #[must_use]
    pub fn new(lora: Lora, quantizer: Quantizer) -> Self {
        Self { lora, quantizer }
    }
}

impl Reparameterizer for QLora {
    type Reparam = LoraAdapter;

    fn reparameterize<const D: usize>(&mut self, path: &str, param: Param<Tensor<D>>) -> (Param<Tensor<D>>, Option<LoraAdapter>) {
        let (param, adapter) = self.lora.reparameterize(path, param);
        let param = if self.quantizer.group.matches(&param.id, Some(path)) { self.quantizer.quantized(path, param) } else { param };
        (param, adapter)
    }
}
