//! Every option of every configuration: that a test sets it, and that the starts of parameters, layouts and number types are followed.

use std::path::Path;

use kiln_module::module::{Initializer, Module, ModuleMapper, ModuleVisitor, Param};
use kiln_nn::activation::{PReluConfig, SwiGluConfig};
use kiln_nn::attention::{CrossAttentionConfig, MhaInput, MultiHeadAttentionConfig};
use kiln_nn::conv::*;
use kiln_nn::transformer::*;
use kiln_nn::*;
use kiln_tensor::{DType, Device, Distribution, FloatDType, Tensor, Tolerance};

use crate::graded::device;

/// The optional fields of the configurations in a source file.
fn options(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut config: Option<String> = None;
    let mut default = false;
    for line in source.lines() {
        if let Some(rest) = line.strip_prefix("pub struct ") {
            config = rest.strip_suffix(" {").filter(|name| name.ends_with("Config")).map(str::to_owned);
        } else if line == "}" {
            config = None;
        } else if line.trim_start().starts_with("#[config(default") {
            default = true;
        } else if let (Some(config), Some((field, kind))) = (&config, line.trim_start().strip_prefix("pub ").and_then(|rest| rest.split_once(": "))) {
            if default || kind.starts_with("Option<") {
                found.push((config.clone(), field.to_owned()));
            }
            default = false;
        }
    }
    found
}

/// All sources below a folder.
fn sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("readable").path());
    let each = |path: std::path::PathBuf| match path.is_dir() {
        true => sources(&path),
        false if path.extension().is_some_and(|extension| extension == "rs") => vec![std::fs::read_to_string(&path).expect("readable")],
        false => Vec::new(),
    };
    entries.flat_map(each).collect()
}

#[test]
fn every_option_is_set_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = sources(&root.join("tests"));
    let functions: Vec<&str> = tests.iter().flat_map(|test| test.split("\nfn ")).collect();
    let options: Vec<(String, String)> = sources(&root.join("src")).iter().flat_map(|source| options(source)).collect();
    assert!(options.len() > 150, "only {} options were found", options.len());
    let is_set = |(config, field): &(String, String)| {
        let (named, setter) = (format!("{config}::"), format!("with_{field}("));
        functions.iter().any(|function| function.contains(&named) && function.contains(&setter))
    };
    let unset: Vec<_> = options.iter().filter(|option| !is_set(option)).collect();
    assert!(unset.is_empty(), "no test sets {unset:?}");
}

/// Counts parameters that are this value everywhere.
struct Starts(f32, usize);

impl ModuleVisitor for Starts {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let values = param.val().into_data().try_to_vec::<f32>().expect("floats");
        self.1 += usize::from(values.iter().all(|value| *value == self.0));
    }
}

/// Fails unless `expected` parameters start at the value that the initializer gives.
#[track_caller]
fn check_start<M: Module>(module: &M, expected: usize) {
    let mut starts = Starts(0.375, 0);
    module.visit(&mut starts);
    assert_eq!(starts.1, expected, "{}", std::any::type_name::<M>());
}

#[test]
fn parameters_start_as_their_initializer_says() {
    let start = || Initializer::Constant { value: 0.375 };
    let on = &Device::default();
    check_start(&LinearConfig::new(2, 3).with_initializer(start()).init(on), 2);
    check_start(&LinearConfig::new(2, 3).with_bias(false).with_initializer(start()).init(on), 1);
    check_start(&EmbeddingConfig::new(2, 3).with_initializer(start()).init(on), 1);
    check_start(&SwiGluConfig::new(2, 3).with_bias(true).with_initializer(start()).with_layout(LinearLayout::Col).init(on), 4);
    check_start(&MultiHeadAttentionConfig::new(4, 2).with_initializer(start()).init(on), 8);
    check_start(&Conv1dConfig::new(2, 2, 2).with_initializer(start()).init(on), 2);
    check_start(&Conv2dConfig::new([2, 2], [2, 2]).with_initializer(start()).init(on), 2);
    check_start(&Conv3dConfig::new([2, 2], [2, 2, 2]).with_initializer(start()).init(on), 2);
    check_start(&ConvTranspose1dConfig::new([2, 2], 2).with_initializer(start()).init(on), 2);
    check_start(&ConvTranspose2dConfig::new([2, 2], [2, 2]).with_initializer(start()).init(on), 2);
    check_start(&ConvTranspose3dConfig::new([2, 2], [2, 2, 2]).with_initializer(start()).init(on), 2);
    check_start(&DeformConv2dConfig::new([2, 2], [2, 2]).with_initializer(start()).init(on), 2);
    check_start(&RnnConfig::new(2, 2, true).with_initializer(start()).init(on), 4);
    check_start(&BiRnnConfig::new(2, 2, true).with_initializer(start()).init(on), 8);
    check_start(&GruConfig::new(2, 2, true).with_initializer(start()).init(on), 12);
    check_start(&BiGruConfig::new(2, 2, true).with_initializer(start()).init(on), 24);
    check_start(&LstmConfig::new(2, 2, true).with_initializer(start()).init(on), 16);
    check_start(&BiLstmConfig::new(2, 2, true).with_initializer(start()).init(on), 32);
    // Scales and shifts of norms start at one and zero.
    check_start(&TransformerEncoderConfig::new(4, 6, 2, 2).with_initializer(start()).init(on), 24);
    check_start(&TransformerDecoderConfig::new(4, 6, 2, 2).with_initializer(start()).init(on), 40);
    check_start(&PositionWiseFeedForwardConfig::new(4, 6).with_initializer(start()).init(on), 4);
}

#[test]
fn layouts_of_weights_change_neither_results_nor_gradients() {
    let x = Tensor::<2>::random([5, 3], Distribution::Normal(0.0, 1.0), &device()).require_grad();
    let row = LinearConfig::new(3, 4).init(&device());
    let column = LinearConfig::new(3, 4).with_layout(LinearLayout::Col).init(&device());
    // What the column layout's record holds is the transposed weight.
    let mut tensors = row.clone().into_record().tensors().to_vec();
    for tensor in tensors.iter_mut().filter(|tensor| tensor.name == "weight") {
        let data = row.weight.val().transpose().into_data();
        *tensor = kiln_module::record::tensor_of("weight", tensor.param_id, data);
    }
    let column = column.load_record(kiln_module::record::ModuleRecord::from_tensors(tensors));
    let results = [row, column].map(|layer| {
        let y = layer.forward(x.clone());
        let gradients = (y.clone() * y.clone()).sum().backward();
        let slope = layer.weight.grad(&gradients).expect("it is trained");
        [y, x.grad(&gradients).expect("it is tracked"), slope].map(|tensor| tensor.into_data())
    });
    for (first, second) in results[0].iter().zip(&results[1]) {
        first.assert_approx_eq(second, Tolerance::<f32>::relative(1e-5));
    }
}

/// A layer norm without a shift has one parameter, and its result is that of a shift of zero.
#[test]
fn a_layer_norm_without_bias_does_not_shift() {
    let x = Tensor::<2>::random([5, 3], Distribution::Normal(1.0, 2.0), &Device::default());
    let plain = LayerNormConfig::new(3).with_bias(false).init(&Device::default());
    assert_eq!(plain.num_params(), 3);
    let whole = LayerNormConfig::new(3).init(&Device::default());
    plain.forward(x.clone()).into_data().assert_approx_eq(&whole.forward(x).into_data(), Tolerance::<f32>::relative(1e-5));
}

/// Casts parameters and running statistics.
struct CastTo(FloatDType);

impl ModuleMapper for CastTo {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dtype = self.0;
        param.map(|tensor| tensor.cast(dtype))
    }
}

/// Counts gradients, all of which have the dtype.
struct Slopes<'a>(&'a kiln_tensor::Gradients, DType, usize);

impl ModuleVisitor for Slopes<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = param.val().grad(self.0) {
            assert_eq!(gradient.dtype(), self.1);
            assert!(gradient.into_data().iter::<f32>().all(f32::is_finite));
            self.2 += 1;
        }
    }
}

/// Runs a layer in each float type beside single precision, on the same rounded parameters and input.
#[track_caller]
fn check_dtypes<M: Module + Clone, const D: usize, const E: usize>(
    module: M,
    shape: [usize; D],
    parameters: usize,
    forward: impl Fn(&M, Tensor<D>) -> Tensor<E>,
) {
    let name = std::any::type_name::<M>();
    let input = Tensor::<D>::random(shape, Distribution::Normal(0.0, 1.0), &device());
    for (dtype, tolerance) in [(FloatDType::F64, 1e-5), (FloatDType::F16, 1e-2), (FloatDType::BF16, 8e-2)] {
        let run = |module: &M, as_type: FloatDType| {
            let x = input.clone().cast(dtype).cast(as_type).detach().require_grad();
            let y = forward(module, x.clone());
            assert_eq!(y.dtype(), DType::from(as_type), "{name}");
            let gradients = y.clone().sum().backward();
            let slope = x.grad(&gradients).expect("it is tracked");
            assert_eq!(slope.dtype(), DType::from(as_type), "{name}");
            let mut slopes = Slopes(&gradients, DType::from(as_type), 0);
            module.visit(&mut slopes);
            assert_eq!(slopes.2, parameters, "{name}: parameters with gradients");
            (y.cast(FloatDType::F32).into_data(), slope.cast(FloatDType::F32).into_data())
        };
        let cast = module.clone().map(&mut CastTo(dtype));
        let whole = cast.clone().map(&mut CastTo(FloatDType::F32));
        let ((found, slope), (expected, expected_slope)) = (run(&cast, dtype), run(&whole, FloatDType::F32));
        found.assert_approx_eq(&expected, Tolerance::<f32>::rel_abs(tolerance, tolerance));
        slope.assert_approx_eq(&expected_slope, Tolerance::<f32>::rel_abs(2.0 * tolerance, 2.0 * tolerance));
    }
}

#[test]
fn layers_compute_in_the_dtype_of_their_parameters() {
    let on = &device();
    on.seed(3);
    check_dtypes(LinearConfig::new(6, 4).init(on), [3, 6], 2, |layer, x| layer.forward(x));
    check_dtypes(Conv1dConfig::new(4, 4, 3).with_groups(2).init(on), [2, 4, 7], 2, |layer, x| layer.forward(x));
    check_dtypes(Conv2dConfig::new([3, 4], [3, 2]).with_padding(PaddingConfig2d::Same).init(on), [2, 3, 5, 6], 2, |layer, x| layer.forward(x));
    check_dtypes(Conv3dConfig::new([2, 2], [2, 2, 2]).init(on), [1, 2, 3, 3, 4], 2, |layer, x| layer.forward(x));
    check_dtypes(ConvTranspose2dConfig::new([3, 2], [3, 2]).with_stride([2, 1]).init(on), [2, 3, 3, 4], 2, |layer, x| layer.forward(x));
    check_dtypes(LayerNormConfig::new(8).init(on), [3, 8], 2, |layer, x| layer.forward(x) * 0.5);
    check_dtypes(RmsNormConfig::new(8).init(on), [3, 8], 1, |layer, x| layer.forward(x));
    check_dtypes(GroupNormConfig::new(2, 4).init(on), [2, 4, 5], 2, |layer, x| layer.forward(x));
    check_dtypes(InstanceNormConfig::new(4).init(on), [2, 4, 5], 2, |layer, x| layer.forward(x));
    check_dtypes(BatchNormConfig::new(4).init(on), [6, 4, 3], 2, |layer, x| layer.forward(x));
    check_dtypes(RnnConfig::new(3, 4, true).init(on), [2, 3, 3], 4, |layer, x| layer.forward(x, None).0);
    check_dtypes(GruConfig::new(3, 4, true).init(on), [2, 3, 3], 12, |layer, x| layer.forward(x, None));
    check_dtypes(LstmConfig::new(3, 4, true).init(on), [2, 3, 3], 16, |layer, x| layer.forward(x, None).0);
    check_dtypes(BiLstmConfig::new(3, 4, true).init(on), [2, 3, 3], 32, |layer, x| layer.forward(x, None).0);
    let attention = MultiHeadAttentionConfig::new(4, 2).with_dropout(0.0);
    check_dtypes(attention.init(on), [2, 3, 4], 8, |layer, x| layer.forward(MhaInput::self_attn(x)).context);
    check_dtypes(attention.with_quiet_softmax(true).init(on), [2, 3, 4], 8, |layer, x| layer.forward(MhaInput::self_attn(x)).context);
    let cross = CrossAttentionConfig::new(4, 4, 2, 1, 3).with_dropout(0.0);
    check_dtypes(cross.init(on), [2, 3, 4], 8, |layer, x| layer.forward(x.clone(), x, None));
    let encoder = TransformerEncoderConfig::new(4, 6, 2, 2).with_dropout(0.0).with_norm_first(true);
    check_dtypes(encoder.init(on), [2, 3, 4], 32, |layer, x| layer.forward(TransformerEncoderInput::new(x)));
    check_dtypes(PositionalEncodingConfig::new(4).init(on), [2, 3, 4], 0, |layer, x| layer.forward(x));
    check_dtypes(RotaryEncodingConfig::new(8, 4).init(on), [2, 3, 4], 0, |layer, x| layer.forward(x));
    check_dtypes(PReluConfig::new().with_num_parameters(3).init(on), [2, 3, 4], 1, |layer, x| layer.forward(x));
    check_dtypes(SwiGluConfig::new(4, 4).with_bias(true).init(on), [2, 3, 4], 4, |layer, x| layer.forward(x));
}
