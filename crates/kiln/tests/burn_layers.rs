//! Layers compute what Burn 0.22.1's compute from the same record, and records go both ways.

use std::path::Path;

use burn::module::Module;
use burn::tensor::Device;

use crate::zoo::Zoo;

fn sample(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/burn").join(name)
}

/// What Burn's layers computed, by name.
fn expected() -> Vec<(String, Vec<f32>)> {
    let text = std::fs::read_to_string(sample("zoo.txt")).unwrap();
    let line = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap().to_owned();
        (name, words.map(|word| word.parse().unwrap()).collect())
    };
    text.lines().map(line).collect()
}

#[track_caller]
fn check(zoo: &Zoo) {
    let expected = expected();
    let outputs = zoo.outputs(&Device::default());
    assert_eq!(outputs.len(), expected.len());
    let mut wrong = Vec::new();
    for ((name, found), (listed, expected)) in outputs.iter().zip(&expected) {
        assert!(name == listed && found.len() == expected.len(), "{name} has {} values, {listed} {}", found.len(), expected.len());
        let error = found.iter().zip(expected).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f32::max);
        if error.is_nan() || error > 2e-5 {
            wrong.push(format!("{name} is off by {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn layers_compute_what_burns_compute_from_the_same_record() {
    check(&Zoo::blank(&Device::default()).load_file(sample("zoo")));
}

#[test]
fn the_same_model_saves_the_same_record() {
    let zoo = Zoo::new(&Device::default());
    check(&zoo);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("zoo.bpk");
    zoo.save_file(&path).unwrap();
    // The file differs from Burn's in the ids of parameters only.
    let read = |path: &Path| kiln::store::burn_pack::Reader::from_file(path).unwrap().into_tensors().unwrap();
    let (ours, theirs) = (read(&path), read(&sample("zoo.bpk")));
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.into_iter().zip(theirs) {
        assert_eq!((&ours.name, ours.dtype, &ours.shape), (&theirs.name, theirs.dtype, &theirs.shape));
        assert!(ours.to_bytes().unwrap() == theirs.to_bytes().unwrap(), "{}", ours.name);
    }
}
