//! Reads golden files made by `scripts/golden/make.py`: values that PyTorch computed, as text.
//!
//! A test crate includes this file with `#[path = "../../../scripts/golden/golden.rs"] mod golden;`.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::Path;

/// One case of a golden file: attributes and named tensors.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// What the case is called in its file.
    pub name: String,
    attrs: BTreeMap<String, Vec<f64>>,
    tensors: BTreeMap<String, Golden>,
}

/// A stored tensor: its shape and its values in row-major order, f64 whatever it was stored as.
#[derive(Clone, Debug, PartialEq)]
pub struct Golden {
    /// The values of a tensor of integers or booleans.
    integers: Vec<i64>,
    /// The sizes; empty for a scalar.
    pub shape: Vec<usize>,
    /// The values.
    pub values: Vec<f64>,
}

/// Reads every case of `FILE` below `tests/golden` of the crate whose `CARGO_MANIFEST_DIR` is given.
pub fn read(manifest_dir: &str, file: &str) -> Vec<Case> {
    let path = Path::new(manifest_dir).join("tests/golden").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut cases: Vec<Case> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let fail = |what: &str| -> ! { panic!("{}:{}: {what}", path.display(), i + 1) };
        let mut words = line.split(' ');
        match words.next().unwrap_or_default() {
            "#" | "" => {}
            "case" => {
                let name = words.next().unwrap_or_else(|| fail("a case has a name")).into();
                cases.push(Case { name, ..Case::default() });
            }
            "attr" => {
                let case = cases.last_mut().unwrap_or_else(|| fail("an attribute belongs to a case"));
                let name = words.next().unwrap_or_else(|| fail("an attribute has a name"));
                case.attrs.insert(name.into(), numbers(words));
            }
            name => {
                let case = cases.last_mut().unwrap_or_else(|| fail("a tensor belongs to a case"));
                let (head, values) = line.split_once(" :").unwrap_or_else(|| fail("a tensor has a colon"));
                let whole = head.split(' ').nth(1) != Some("f32");
                let integers = if whole { numbers(values.split_whitespace()) } else { Vec::new() };
                let shape: Vec<usize> = head.split(' ').skip(2).map(|s| s.parse().expect("sizes are numbers")).collect();
                let values: Vec<f64> = numbers(values.split_whitespace());
                if values.len() != shape.iter().product::<usize>() {
                    fail("the values do not fill the shape");
                }
                case.tensors.insert(name.into(), Golden { integers, shape, values });
            }
        }
    }
    assert!(!cases.is_empty(), "{}: no case", path.display());
    cases
}

fn numbers<'a, T: std::str::FromStr>(words: impl Iterator<Item = &'a str>) -> Vec<T> {
    words.map(|word| word.parse().unwrap_or_else(|_| panic!("{word:?} is no number"))).collect()
}

impl Case {
    /// The tensor called `name`.
    #[track_caller]
    pub fn tensor(&self, name: &str) -> &Golden {
        self.tensors.get(name).unwrap_or_else(|| panic!("case {} has no tensor {name}", self.name))
    }

    /// The tensor called `name` if the case has it (an optional bias, a gradient).
    pub fn get(&self, name: &str) -> Option<&Golden> {
        self.tensors.get(name)
    }

    /// All numbers of an attribute.
    #[track_caller]
    pub fn attr(&self, name: &str) -> &[f64] {
        self.attrs.get(name).unwrap_or_else(|| panic!("case {} has no attribute {name}", self.name))
    }

    /// Whether the case has the attribute.
    pub fn has_attr(&self, name: &str) -> bool {
        self.attrs.contains_key(name)
    }

    /// The attribute as one number.
    #[track_caller]
    pub fn number(&self, name: &str) -> f64 {
        self.attr(name)[0]
    }

    /// The attribute as one size.
    #[track_caller]
    pub fn size(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// The attribute as `N` sizes.
    #[track_caller]
    pub fn sizes<const N: usize>(&self, name: &str) -> [usize; N] {
        std::array::from_fn(|i| self.attr(name)[i] as usize)
    }

    /// The attribute as a switch.
    #[track_caller]
    pub fn flag(&self, name: &str) -> bool {
        self.number(name) != 0.0
    }
}

impl Golden {
    /// The values as `f32`.
    pub fn f32(&self) -> Vec<f32> {
        self.values.iter().map(|&v| v as f32).collect()
    }

    /// The values of a tensor that was stored as integers, exactly.
    #[track_caller]
    pub fn i64(&self) -> Vec<i64> {
        assert_eq!(self.integers.len(), self.values.len(), "the values were not stored as integers");
        self.integers.clone()
    }

    /// The values as `bool`.
    pub fn bool(&self) -> Vec<bool> {
        self.values.iter().map(|&v| v != 0.0).collect()
    }

    /// Fails unless `got` has this shape and every value is within `tolerance` (absolute plus relative) of the stored one.
    #[track_caller]
    pub fn assert_close(&self, what: &str, shape: &[usize], got: &[f32], tolerance: f64) {
        assert_eq!(shape, self.shape, "{what}: shape");
        for (i, (&got, &want)) in got.iter().zip(&self.values).enumerate() {
            let same = f64::from(got) == want || (got.is_nan() && want.is_nan());
            let error = (f64::from(got) - want).abs();
            let bound = tolerance * (1.0 + want.abs());
            assert!(same || error <= bound, "{what}: value {i} is {got}, PyTorch has {want} (error {error:e}, bound {bound:e})");
        }
    }
}
