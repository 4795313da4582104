//! What `#[derive(Module)]` makes of structs, enums, tuples and generics.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use kiln_module::module::{Content, DisplaySettings, Flag, Module, ModuleDisplay, ModuleMapper, ModuleVisitor, Param, ParamId, list_param_ids};
use kiln_tensor::{Bool, Device, Int, Tensor};

fn device() -> Device {
    Device::default()
}

#[derive(Module, Debug)]
struct Leaf {
    weight: Param<Tensor<2>>,
    scale: f64,
}

impl Leaf {
    fn new(value: f32) -> Self {
        Self { weight: Param::from_data([[value, value]], &device()), scale: f64::from(value) }
    }
}

#[derive(Module, Debug)]
enum Choice {
    First(Leaf),
    Second(Param<Tensor<1>>),
    Nothing,
}

#[derive(Module, Debug)]
struct Pair(Leaf, Option<Leaf>);

#[derive(Module, Debug, Default)]
struct Unit;

/// No module, and no `Default`.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    name: &'static str,
}

#[derive(Module, Debug)]
struct Wrapper<M, const N: usize> {
    inner: M,
    many: [M; N],
}

#[derive(Module, Debug)]
struct Tagged<T: Clone + std::fmt::Debug + Send> {
    tag: T,
    leaf: Leaf,
    _marker: PhantomData<T>,
}

#[derive(Module, Debug)]
struct All {
    leaf: Leaf,
    choice: Choice,
    nothing: Choice,
    pair: Pair,
    unit: Unit,
    layers: Vec<Leaf>,
    array: [Leaf; 2],
    tuple: (Leaf, Choice),
    ints: Param<Tensor<1, Int>>,
    mask: Param<Tensor<1, Bool>>,
    training: Param<Flag>,
    constant: Tensor<1>,
    r#type: usize,
    sizes: [usize; 2],
    names: Vec<String>,
    table: BTreeMap<String, (bool, f32)>,
    maybe: Option<usize>,
    #[module(skip)]
    settings: Settings,
}

impl All {
    fn new() -> Self {
        let device = device();
        Self {
            leaf: Leaf::new(1.0),
            choice: Choice::Second(Param::from_data([1.0], &device)),
            nothing: Choice::Nothing,
            pair: Pair(Leaf::new(2.0), None),
            unit: Unit,
            layers: vec![Leaf::new(3.0), Leaf::new(4.0)],
            array: [Leaf::new(5.0), Leaf::new(6.0)],
            tuple: (Leaf::new(7.0), Choice::First(Leaf::new(8.0))),
            ints: Param::initialized(ParamId::new(), Tensor::from_ints([1, 2], &device)),
            mask: Param::initialized(ParamId::new(), Tensor::from_bool([true], &device)),
            training: Param::from_bool(true),
            constant: Tensor::from_floats([9.0], &device),
            r#type: 3,
            sizes: [1, 2],
            names: vec!["a".into()],
            table: BTreeMap::new(),
            maybe: None,
            settings: Settings { name: "kept" },
        }
    }
}

#[derive(Default)]
struct Paths {
    path: Vec<String>,
    containers: Vec<String>,
    found: Vec<String>,
    flags: usize,
}

impl Paths {
    fn add(&mut self) {
        self.found.push(format!("{} ({})", self.path.join("."), self.containers.last().unwrap()));
    }
}

impl ModuleVisitor for Paths {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.push(name.into());
        self.containers.push(container_type.into());
    }

    fn exit_module(&mut self, name: &str, container_type: &str) {
        assert_eq!(self.path.pop().as_deref(), Some(name));
        assert_eq!(self.containers.pop().as_deref(), Some(container_type));
    }

    fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
        self.add();
    }

    fn visit_int<const D: usize>(&mut self, _param: &Param<Tensor<D, Int>>) {
        self.add();
    }

    fn visit_bool<const D: usize>(&mut self, _param: &Param<Tensor<D, Bool>>) {
        self.add();
    }

    fn visit_flag(&mut self, _flag: &Param<Flag>) {
        self.flags += 1;
    }
}

#[test]
fn parameters_are_visited_in_order_under_their_paths() {
    let mut paths = Paths::default();
    All::new().visit(&mut paths);
    let expected = [
        "leaf.weight (Struct:Leaf)",
        "choice.Second (Enum:Choice)",
        "pair.0.weight (Struct:Leaf)",
        "layers.0.weight (Struct:Leaf)",
        "layers.1.weight (Struct:Leaf)",
        "array.0.weight (Struct:Leaf)",
        "array.1.weight (Struct:Leaf)",
        "tuple.0.weight (Struct:Leaf)",
        "tuple.1.First.weight (Struct:Leaf)",
        "ints (Struct:All)",
        "mask (Struct:All)",
    ];
    assert_eq!(paths.found, expected);
    assert_eq!(paths.flags, 1);
    assert!(paths.path.is_empty());
}

#[test]
fn mapping_replaces_every_parameter_and_nothing_else() {
    struct Double(usize);
    impl ModuleMapper for Double {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.0 += 1;
            param.map(|tensor| tensor * 2.0)
        }
    }
    let mut double = Double(0);
    let module = All::new();
    let ids = list_param_ids(&module);
    let mapped = module.map(&mut double);
    assert_eq!(double.0, 9);
    assert_eq!(list_param_ids(&mapped), ids);
    assert_eq!(mapped.layers[1].weight.val().sum().into_scalar::<f32>(), 16.0);
    assert_eq!(mapped.layers[1].scale, 4.0);
    assert_eq!(mapped.constant.into_scalar::<f32>(), 9.0);
    assert_eq!((mapped.r#type, mapped.sizes, mapped.settings), (3, [1, 2], Settings { name: "kept" }));
}

#[test]
fn clones_snapshots_and_moves_keep_the_content() {
    let module = All::new();
    let sum = |module: &All| -> f32 { module.tuple.0.weight.val().sum().into_scalar() };
    let expected = sum(&module);
    assert_eq!(sum(&module.clone()), expected);
    assert_eq!(sum(&module.valid()), expected);
    assert_eq!(sum(&module.clone().train()), expected);
    assert_eq!(sum(&module.clone().fork(&device())), expected);
    assert_eq!(sum(&module.clone().to_device(&device())), expected);
    assert_eq!(sum(&module.clone().materialize()), expected);
    assert_eq!(module.devices(), [device()]);
    assert_eq!(module.num_params(), 8 * 2 + 1 + 2 + 1);
    assert!(!module.valid().training.is_enabled());
    assert!(module.valid().train().training.is_enabled());
}

/// What shows itself in a form of its own.
#[derive(Module, Debug)]
#[module(custom_display)]
struct Shown {
    weight: Param<Tensor<2>>,
    rate: f64,
    #[module(skip)]
    log: Settings,
}

impl ModuleDisplay for Shown {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let [inputs, outputs] = self.weight.lazy_shape().dims();
        content.add("inputs", &inputs).add("outputs", &outputs).add_debug_attribute("rate", &self.rate).optional()
    }
}

#[test]
fn a_custom_display_is_shown_alone_and_within_other_modules() {
    let shown = Shown { weight: Param::from_data([[1.0, 2.0, 3.0]], &device()), rate: 0.5, log: Settings { name: "x" } };
    assert_eq!(shown.to_string(), "Shown {inputs: 1, outputs: 3, rate: 0.5, params: 3}");
    let wrapper = Wrapper { inner: shown.clone(), many: [shown] };
    assert!(wrapper.to_string().contains("  inner: Shown {inputs: 1, outputs: 3, rate: 0.5, params: 3}"), "{wrapper}");
}

#[test]
fn skipped_fields_are_kept_and_neither_visited_nor_recorded() {
    let shown = |value: f32, name| Shown { weight: Param::from_data([[value]], &device()), rate: 0.5, log: Settings { name } };
    let module = shown(1.0, "kept");
    let mut paths = Paths::default();
    module.visit(&mut paths);
    assert_eq!(paths.found, ["weight (Struct:Shown)"]);
    assert_eq!(module.num_params(), 1);
    let record = shown(2.0, "of the record").into_record();
    assert_eq!(record.len(), 1);
    let loaded = module.load_record(record);
    assert_eq!((loaded.weight.val().into_scalar::<f32>(), loaded.log.name), (2.0, "kept"));
    for copy in [loaded.clone(), loaded.valid(), loaded.clone().train(), loaded.clone().fork(&device()), loaded.clone().no_grad()] {
        assert_eq!(copy.log.name, "kept");
    }
}

#[test]
fn type_parameters_are_modules_unless_their_bounds_say_otherwise() {
    let wrapper = Wrapper { inner: Leaf::new(1.0), many: [Leaf::new(2.0), Leaf::new(3.0)] };
    assert_eq!(wrapper.num_params(), 6);
    assert_eq!(wrapper.clone().valid().many[1].weight.val().sum().into_scalar::<f32>(), 6.0);
    let tagged = Tagged { tag: "plain", leaf: Leaf::new(1.0), _marker: PhantomData };
    assert_eq!(tagged.num_params(), 2);
    assert_eq!(tagged.valid().tag, "plain");
}

#[test]
fn modules_print_as_trees() {
    let text = All::new().to_string();
    let expected = "All {
  leaf: Leaf {
    weight: Param {rank: 2, shape: [1, 2], kind: float}
    scale: 1
    params: 2
  }
  choice: Choice {
    Second: Param {rank: 1, shape: [1], kind: float}
    params: 1
  }
  nothing: Choice::Nothing
  pair: Pair {";
    assert!(text.starts_with(expected), "{text}");
    for line in [
        "  layers: Vec<0..2> {",
        "  array: [0..2] {",
        "  tuple: (0..2) {",
        "    1: None",
        "  training: true",
        "  constant: Tensor {rank: 1, shape: [1]}",
        "  type: 3",
        "  sizes: [1, 2]",
        "  names: [\"a\"]",
        "  maybe: None",
        "  settings: Settings { name: \"kept\" }",
        "  params: 20",
    ] {
        assert!(text.lines().any(|found| found == line), "no line `{line}` in\n{text}");
    }
    let leaf = Leaf::new(1.0);
    let settings =
        kiln_module::module::DisplaySettings::new().with_show_param_id(true).with_new_line_after_attribute(false).with_show_num_parameters(false);
    let id = leaf.weight.id;
    assert_eq!(leaf.format(settings), format!("Leaf {{weight: Param {{rank: 2, shape: [1, 2], kind: float, id: {id}}}, scale: 1}}"));
}
