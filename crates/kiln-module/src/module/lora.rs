//! Low-rank adaptation: a frozen matrix with a trained update of low rank.

use kiln_tensor::{DType, Device, Distribution, FloatDType, Shape, Tensor};

use super::{Content, Module, ModuleDisplay, Param, ParamGroup, ParamId, Parameter, Reparameterization, Reparameterizer};

/// Adapts matrices by trained updates of low rank: `W + alpha / rank · A · B`.
///
/// `A` is drawn from a normal distribution and `B` starts at zero, so that the module computes at first what it did before. The adapted matrices are
/// frozen; all other parameters are left as they are, so freeze them before ([`Module::no_grad`]) if only the updates are to be trained.
///
/// Hu et al. 2021, [arXiv:2106.09685](https://arxiv.org/abs/2106.09685).
///
/// ```
/// use kiln_module::module::{Lora, Module, Param, ParamGroup};
/// use kiln_tensor::{Device, Distribution, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Layer {
///     weight: Param<Tensor<2>>,
/// }
///
/// let device = Device::default().autodiff();
/// let layer = Layer { weight: Param::from_tensor(Tensor::random([64, 32], Distribution::Default, &device)) };
/// let adapted = layer.apply_lora(Lora::new(4, 8.0).set_param_group(ParamGroup::from_predicate("weight")));
/// assert_eq!(adapted.num_params(), 64 * 32 + 64 * 4 + 4 * 32);
/// assert!(!adapted.weight.base().is_require_grad());
/// let adapter = adapted.weight.adapter().unwrap();
/// assert!(adapter.a.is_require_grad() && adapter.b.is_require_grad());
/// // Only the update, for a small file.
/// let update = adapted.into_record_group(ParamGroup::from_predicate("lora"));
/// assert_eq!(update.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Lora {
    /// The rank of the updates.
    pub rank: usize,
    /// The update is multiplied by `alpha / rank`.
    pub alpha: f64,
    /// The standard deviation that `A` starts with. By default `1 / √rows`, for which `x · A` has the magnitude of `x`.
    pub init_std: Option<f64>,
    /// The element type of `A` and `B`. By default that of the adapted matrix.
    pub dtype: Option<FloatDType>,
    /// Which matrices are adapted. By default all.
    pub param_group: ParamGroup,
}

impl Lora {
    /// Updates of the given rank.
    ///
    /// # Panics
    ///
    /// When the rank is zero.
    #[must_use]
    #[track_caller]
    pub fn new(rank: usize, alpha: f64) -> Self {
        assert!(rank > 0, "lora: the rank must be positive");
        Self { rank, alpha, init_std: None, dtype: None, param_group: ParamGroup::all() }
    }

    /// Sets which matrices are adapted.
    #[must_use]
    pub fn set_param_group(mut self, group: ParamGroup) -> Self {
        self.param_group = group;
        self
    }

    /// Sets the element type of `A` and `B`.
    #[must_use]
    pub fn set_dtype(mut self, dtype: FloatDType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// The update of a matrix of the given shape; `dtype` is the matrix's, where it is known.
    fn adapter(&self, shape: &Shape, device: &Device, dtype: Option<DType>) -> LoraAdapter {
        let [rows, columns] = shape.dims();
        let std = self.init_std.unwrap_or(1.0 / libm::sqrt(rows as f64));
        let dtype = self.dtype.map(DType::from).or(dtype);
        let matrix = |shape: [usize; 2], distribution: Option<Distribution>| {
            let init = move |device: &Device, require_grad| {
                let dtype = dtype.unwrap_or_else(|| device.settings().float_dtype.into());
                let drawn = match distribution {
                    Some(distribution) => Tensor::<2>::random(shape, distribution, (device, dtype)),
                    None => Tensor::zeros(shape, (device, dtype)),
                };
                Parameter::set_require_grad(drawn, require_grad)
            };
            Param::uninitialized(ParamId::new(), init, device.clone(), true, Shape::from(shape))
        };
        LoraAdapter {
            a: matrix([rows, self.rank], Some(Distribution::Normal(0.0, std))),
            b: matrix([self.rank, columns], None),
            scale: self.alpha / self.rank as f64,
        }
    }
}

impl Reparameterizer for Lora {
    type Reparam = LoraAdapter;

    fn reparameterize<const D: usize>(&mut self, path: &str, param: Param<Tensor<D>>) -> (Param<Tensor<D>>, Option<LoraAdapter>) {
        if D != 2 || !self.param_group.matches(&param.id, Some(path)) {
            return (param, None);
        }
        // The update of a quantized matrix has the device's float type.
        let dtype = param.is_initialized().then(|| param.dtype()).filter(DType::is_float);
        let adapter = self.adapter(&param.lazy_shape(), &param.lazy_device(), dtype);
        (param.set_require_grad(false), Some(adapter))
    }
}

/// The update of a matrix: `scale · A · B`.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct LoraAdapter {
    /// `[rows, rank]`.
    pub a: Param<Tensor<2>>,
    /// `[rank, columns]`.
    pub b: Param<Tensor<2>>,
    /// What the product is multiplied by.
    pub scale: f64,
}

impl LoraAdapter {
    /// The update, `[rows, columns]`.
    pub fn delta(&self) -> Tensor<2> {
        self.a.val().matmul(self.b.val()) * self.scale
    }
}

impl ModuleDisplay for LoraAdapter {
    fn custom_content(&self, content: Content) -> Option<Content> {
        let [_, rank] = self.a.lazy_shape().dims();
        content.add("rank", &rank).add("scale", &self.scale).optional()
    }
}

impl Reparameterization for LoraAdapter {
    const NAME: &'static str = "lora";

    /// The matrix with its update, in the matrix's element type; of a quantized matrix, in the update's.
    ///
    /// # Panics
    ///
    /// When `base` is no matrix.
    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        assert!(D == 2, "lora: adapts matrices, got a tensor of rank {D}");
        let (shape, dtype) = (base.dims(), base.dtype());
        let delta = self.delta().reshape(shape);
        base + if dtype.is_float() { delta.cast(dtype) } else { delta }
    }
}
