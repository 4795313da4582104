//! What `#[derive(Config)]` makes of structs and enums.

use kiln_module::config::{Config, ConfigError};

#[derive(Config, Debug, PartialEq)]
enum Shape {
    Point,
    Circle(f64),
    Segment(f64, f64),
    Box { width: f64, height: f64 },
}

#[derive(Config, Debug, PartialEq)]
struct Inner {
    size: usize,
}

#[derive(Config, Debug, PartialEq)]
struct Outer {
    /// The name.
    name: String,
    #[config(default = 0.5)]
    rate: f64,
    #[config(default = "size * 2")]
    double: usize,
    size: usize,
    #[config(default = Shape::Circle(1.5))]
    shape: Shape,
    clip: Option<f32>,
    #[config(default = Some(3))]
    depth: Option<usize>,
    inner: Inner,
    #[config(default = "vec![1, 2]")]
    r#type: Vec<u8>,
}

fn outer() -> Outer {
    Outer::new("a".into(), 4, Inner::new(7))
}

#[test]
fn new_takes_what_has_no_default() {
    let config = outer();
    assert_eq!((config.rate, config.double, config.size), (0.5, 8, 4));
    assert_eq!((config.shape, config.clip, config.depth), (Shape::Circle(1.5), None, Some(3)));
    assert_eq!(config.r#type, [1, 2]);
}

#[test]
fn builders_set_what_has_a_default() {
    let config = outer().with_rate(0.1).with_double(1).with_shape(Shape::Point).with_clip(Some(2.0)).with_depth(None).with_type(vec![]);
    assert_eq!((config.rate, config.double, &config.shape, config.clip, config.depth), (0.1, 1, &Shape::Point, Some(2.0), None));
    assert!(config.r#type.is_empty());
}

#[test]
fn text_round_trips() {
    for shape in [Shape::Point, Shape::Circle(2.0), Shape::Segment(1.0, 2.0), Shape::Box { width: 3.0, height: 4.0 }] {
        let config = outer().with_shape(shape).with_depth(None);
        assert_eq!(Outer::load_binary(config.to_string().as_bytes()).unwrap(), config);
        assert_eq!(config.clone(), config);
    }
}

#[test]
fn text_is_indented_json_as_serde_derives_it() {
    let text = Outer::new("a".into(), 4, Inner::new(7)).with_shape(Shape::Box { width: 1.0, height: 2.0 }).to_string();
    let expected = r#"{
  "name": "a",
  "rate": 0.5,
  "double": 8,
  "size": 4,
  "shape": {
    "Box": {
      "width": 1.0,
      "height": 2.0
    }
  },
  "clip": null,
  "depth": 3,
  "inner": {
    "size": 7
  },
  "type": [
    1,
    2
  ]
}"#;
    assert_eq!(text, expected);
}

#[test]
fn fields_that_a_text_lacks_take_their_defaults() {
    let config = Outer::load_binary(br#"{"name": "b", "size": 5, "inner": {"size": 1}, "depth": null}"#).unwrap();
    assert_eq!(config, Outer::new("b".into(), 5, Inner::new(1)).with_depth(None));
    let error = Outer::load_binary(br#"{"name": "b", "inner": {"size": 1}}"#).unwrap_err();
    assert!(error.to_string().contains("missing field `size`"), "{error}");
}

#[test]
fn files_round_trip_and_errors_name_them() {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("kiln-config-{}.json", std::process::id()));
    outer().save(&path).unwrap();
    assert_eq!(Outer::load(&path).unwrap(), outer());
    std::fs::write(&path, "{").unwrap();
    let name = path.display().to_string();
    match Outer::load(&path).unwrap_err() {
        ConfigError::InvalidFormat(reason) => assert!(reason.starts_with(&name), "{reason}"),
        other => panic!("{other}"),
    }
    std::fs::remove_file(&path).unwrap();
    match Outer::load(&path).unwrap_err() {
        ConfigError::FileNotFound(reason) => assert!(reason.starts_with(&name), "{reason}"),
        other => panic!("{other}"),
    }
}
