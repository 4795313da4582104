//! How the parameters of a layer start.

use alloc::vec::Vec;

use kiln_tensor::{Device, Distribution, Shape, Tensor, TensorData};

use super::{Param, ParamId, Parameter};
use crate::config::Config;

/// The distribution that a parameter's first value is drawn from.
///
/// *Fan-in* and *fan-out* are the numbers of inputs and outputs a unit of the layer has. Kaiming: He et al. 2015,
/// [arXiv:1502.01852](https://arxiv.org/abs/1502.01852); Xavier: Glorot and Bengio 2010; orthogonal: Saxe et al. 2013,
/// [arXiv:1312.6120](https://arxiv.org/abs/1312.6120).
#[derive(Config, Debug, PartialEq)]
pub enum Initializer {
    /// The same value everywhere.
    Constant {
        /// The value.
        value: f64,
    },
    /// Ones.
    Ones,
    /// Zeros.
    Zeros,
    /// Uniform in `[min, max)`.
    Uniform {
        /// The lower bound.
        min: f64,
        /// The upper bound.
        max: f64,
    },
    /// Normal.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        std: f64,
    },
    /// Uniform in `±gain · √(3 / fan)`.
    KaimingUniform {
        /// The gain of the activation that follows.
        gain: f64,
        /// Uses fan-out instead of fan-in.
        fan_out_only: bool,
    },
    /// Normal with standard deviation `gain / √fan`.
    KaimingNormal {
        /// The gain of the activation that follows.
        gain: f64,
        /// Uses fan-out instead of fan-in.
        fan_out_only: bool,
    },
    /// Uniform in `±gain · √(6 / (fan-in + fan-out))`.
    XavierUniform {
        /// The gain of the activation that follows.
        gain: f64,
    },
    /// Normal with standard deviation `gain · √(2 / (fan-in + fan-out))`.
    XavierNormal {
        /// The gain of the activation that follows.
        gain: f64,
    },
    /// Orthonormal rows or columns (whichever are fewer), times `gain`; all dimensions after the first are one.
    Orthogonal {
        /// The factor.
        gain: f64,
    },
}

impl Initializer {
    /// A parameter of the given shape, drawn when first used.
    ///
    /// # Panics
    ///
    /// For Kaiming and Xavier, which need [`Initializer::init_with`].
    #[track_caller]
    pub fn init<const D: usize, S: Into<Shape>>(&self, shape: S, device: &Device) -> Param<Tensor<D>> {
        self.init_with(shape, None, None, device)
    }

    /// A parameter of the given shape for a layer with the given fans, drawn when first used.
    ///
    /// # Panics
    ///
    /// When a fan that the distribution depends on is not given, or for an orthogonal parameter of rank below two.
    #[track_caller]
    pub fn init_with<const D: usize, S: Into<Shape>>(
        &self,
        shape: S,
        fan_in: Option<usize>,
        fan_out: Option<usize>,
        device: &Device,
    ) -> Param<Tensor<D>> {
        let shape: Shape = shape.into();
        let draw = self.drawing(fan_in, fan_out);
        if let Drawing::Orthogonal(_) = draw {
            assert!(D >= 2, "orthogonal initialisation: needs rank 2 or more, got shape {:?}", shape.as_slice());
        }
        let drawn = shape.clone();
        Param::uninitialized(
            ParamId::new(),
            move |device, require_grad| Parameter::set_require_grad(draw.tensor::<D>(drawn, device), require_grad),
            device.clone(),
            true,
            shape,
        )
    }

    #[track_caller]
    fn drawing(&self, fan_in: Option<usize>, fan_out: Option<usize>) -> Drawing {
        let kaiming = |gain: f64, fan_out_only: bool| {
            let (fan, name) = if fan_out_only { (fan_out, "fan-out") } else { (fan_in, "fan-in") };
            let Some(fan) = fan else { panic!("kaiming initialisation: depends on {name}, give it with `init_with`") };
            gain / libm::sqrt(fan as f64)
        };
        let xavier = |gain: f64| {
            let (Some(fan_in), Some(fan_out)) = (fan_in, fan_out) else {
                panic!("xavier initialisation: depends on fan-in and fan-out, give them with `init_with`")
            };
            gain * libm::sqrt(2.0 / (fan_in + fan_out) as f64)
        };
        let uniform = |std: f64| {
            let bound = libm::sqrt(3.0) * std;
            Drawing::From(Distribution::Uniform(-bound, bound))
        };
        match *self {
            Self::Constant { value } => Drawing::Fill(value),
            Self::Ones => Drawing::Fill(1.0),
            Self::Zeros => Drawing::Fill(0.0),
            Self::Uniform { min, max } => Drawing::From(Distribution::Uniform(min, max)),
            Self::Normal { mean, std } => Drawing::From(Distribution::Normal(mean, std)),
            Self::KaimingUniform { gain, fan_out_only } => uniform(kaiming(gain, fan_out_only)),
            Self::KaimingNormal { gain, fan_out_only } => Drawing::From(Distribution::Normal(0.0, kaiming(gain, fan_out_only))),
            Self::XavierUniform { gain } => uniform(xavier(gain)),
            Self::XavierNormal { gain } => Drawing::From(Distribution::Normal(0.0, xavier(gain))),
            Self::Orthogonal { gain } => Drawing::Orthogonal(gain),
        }
    }
}

/// An initializer with its numbers worked out.
enum Drawing {
    Fill(f64),
    From(Distribution),
    Orthogonal(f64),
}

impl Drawing {
    fn tensor<const D: usize>(self, shape: Shape, device: &Device) -> Tensor<D> {
        match self {
            Self::Fill(value) => Tensor::full(shape, value, device),
            Self::From(distribution) => Tensor::random(shape, distribution, device),
            Self::Orthogonal(gain) => orthogonal(&shape, gain, device),
        }
    }
}

/// Draws a normal matrix and orthonormalises its shorter side by Gram-Schmidt, twice for accuracy.
///
/// Signs follow the drawn vectors, so the result is uniform over the orthogonal matrices.
fn orthogonal<const D: usize>(shape: &Shape, gain: f64, device: &Device) -> Tensor<D> {
    let rows = shape.first().copied().unwrap_or(0);
    let columns = shape.iter().skip(1).product::<usize>();
    let (count, length) = if rows < columns { (rows, columns) } else { (columns, rows) };
    let drawn = Tensor::<2>::random([count, length], Distribution::Normal(0.0, 1.0), device);
    let mut basis: Vec<f64> = drawn.into_data().iter::<f64>().collect();
    for index in 0..count {
        let (done, rest) = basis.split_at_mut(index * length);
        let vector = &mut rest[..length];
        for _ in 0..2 {
            for other in done.chunks_exact(length) {
                let overlap: f64 = other.iter().zip(&*vector).map(|(a, b)| a * b).sum();
                for (value, along) in vector.iter_mut().zip(other) {
                    *value -= overlap * along;
                }
            }
        }
        let norm = libm::sqrt(vector.iter().map(|value| value * value).sum());
        for value in vector.iter_mut() {
            *value /= norm;
        }
    }
    let values: Vec<f32> = if rows < columns {
        basis.iter().map(|value| (value * gain) as f32).collect()
    } else {
        (0..rows * columns)
            .map(|position| {
                let (row, column) = (position / columns, position % columns);
                (basis[column * length + row] * gain) as f32
            })
            .collect()
    };
    let dtype = device.settings().float_dtype.into();
    Tensor::from_data(TensorData::new(values, shape.clone()), (device, dtype))
}
