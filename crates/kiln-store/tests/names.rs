//! Filters and renaming.

use kiln_store::{KeyRemapper, PathFilter, map_indices_contiguous, map_indices_contiguous_except};

use crate::tensor;

#[test]
fn a_filter_chooses_what_any_of_its_criteria_chooses() {
    let filter = PathFilter::new()
        .with_regexes([r"^encoder\.", r"\.scale$"])
        .with_full_paths(["head.bias"])
        .with_predicate(|path, container| path.starts_with("norm") && container.ends_with("LayerNorm"));
    assert_eq!(filter.criteria_count(), 4);
    for (path, chosen) in [("encoder.0.weight", true), ("a.scale", true), ("head.bias", true), ("head.bias2", false), ("the.encoder.x", false)] {
        assert_eq!(filter.matches(path), chosen, "{path}");
    }
    assert!(!filter.matches("norm.gamma"));
    assert!(filter.matches_with_container("norm.gamma", "Struct:LayerNorm"));
    let path = ["norm", "gamma"].map(String::from);
    assert!(filter.matches_with_container_path(&path, &["Struct:Model", "Struct:LayerNorm"].map(String::from)));
    assert!(!filter.matches_with_container_path_str("norm.gamma", "Struct:Model.Struct:BatchNorm"));
    assert_eq!(filter.to_string(), r"/^encoder\./ or /\.scale$/ or `head.bias` or a predicate");
}

#[test]
fn a_filter_without_criteria_chooses_nothing() {
    let mut filter = PathFilter::new();
    assert!(filter.is_empty() && !filter.matches("x"));
    assert!(!PathFilter::none().matches("x"));
    assert!(PathFilter::all().matches("x") && !PathFilter::all().is_empty());
    filter = filter.or(PathFilter::from_paths(["x"])).or(PathFilter::from_regex_patterns(["^y"])).or(PathFilter::from_predicate(|_, _| false));
    assert!(filter.matches("x") && filter.matches("yes"));
    filter.clear_regex().clear_predicates();
    assert!(filter.matches("x") && !filter.matches("yes"));
    assert!(filter.clear_paths().is_empty());
    assert_eq!(PathFilter::all().clear().to_string(), "nothing");
    assert_eq!(PathFilter::all().to_string(), "everything");
}

fn renamed(tensors: (Vec<kiln_store::burn_pack::Tensor>, Vec<(String, String)>)) -> Vec<String> {
    let names: Vec<String> = tensors.0.into_iter().map(|tensor| tensor.name).collect();
    assert_eq!(names, tensors.1.into_iter().map(|(new, _)| new).collect::<Vec<_>>());
    names
}

#[test]
fn patterns_rename_one_after_another() {
    let remapper = KeyRemapper::from_patterns(vec![(r"^h\.(\d+)\.", "layers.$1."), ("layers", "blocks")]).expect("valid patterns");
    let remapper = remapper.add_pattern("^drop$", "kept").expect("a valid pattern");
    let tensors = vec![tensor("h.3.weight", [1.0]), tensor("drop", [2.0]), tensor("drop2", [2.0])];
    let (tensors, names) = remapper.remap(tensors);
    assert_eq!(names[0], ("blocks.3.weight".into(), "h.3.weight".into()));
    assert_eq!(names[2], ("drop2".into(), "drop2".into()));
    assert_eq!(renamed((tensors, names)), ["blocks.3.weight", "kept", "drop2"]);
    assert!(KeyRemapper::new().is_empty() && !remapper.is_empty());
    assert_eq!(remapper.to_regex_pairs().len(), 3);
    assert!(KeyRemapper::new().add_pattern("(", "").is_err());
}

#[test]
fn indices_are_renumbered_without_gaps_at_every_level() {
    let tensors =
        || ["fc.0.weight", "fc.2.weight", "fc.2.bias", "fc.10.weight", "b.5.c.3.x", "b.7.c.1.x", "b.7.c.9.x"].map(|name| tensor(name, [0.0]));
    let expected = ["fc.0.weight", "fc.1.weight", "fc.1.bias", "fc.2.weight", "b.0.c.0.x", "b.1.c.0.x", "b.1.c.1.x"];
    assert_eq!(renamed(map_indices_contiguous(tensors().into())), expected);
    let except = renamed(map_indices_contiguous_except(tensors().into(), |path| path.starts_with("fc.")));
    assert_eq!(except[..4], ["fc.0.weight", "fc.2.weight", "fc.2.bias", "fc.10.weight"]);
    assert_eq!(except[4..], expected[4..]);
}
