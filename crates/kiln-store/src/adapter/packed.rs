//! Parameters that PyTorch packs into one tensor: the gates of recurrent layers and the projections of attention.

use super::ModuleContext;

/// Where a parameter lies inside of a stored tensor: one of equal parts along the first axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// The stored tensor.
    pub name: String,
    /// Which part it is.
    pub part: usize,
    /// How many parts there are.
    pub of: usize,
}

/// Gates in PyTorch's order, by the type of the layer.
const GATES: [(&str, &[&str]); 3] =
    [("Lstm", &["input_gate", "forget_gate", "cell_gate", "output_gate"]), ("Gru", &["reset_gate", "update_gate", "new_gate"]), ("Rnn", &["gate"])];

/// Projections in PyTorch's order.
const PROJECTIONS: [&str; 3] = ["query", "key", "value"];

/// Where PyTorch has the parameter at `path`, which stands at `context`.
pub(super) fn in_pytorch(path: &str, context: ModuleContext<'_>) -> Option<Packed> {
    let names: Vec<&str> = path.split('.').collect();
    let types: Vec<&str> = context.container_stack.iter().map(|container| super::type_name(container)).collect();
    if names.len() != types.len() {
        return None;
    }
    gate(&names, &types).or_else(|| projection(&names, &types))
}

/// `layer.input_gate.input_transform.weight` is the first quarter of `layer.weight_ih_l0`.
fn gate(names: &[&str], types: &[&str]) -> Option<Packed> {
    let ([outer @ .., gate, transform, param], [around @ .., layer, "GateController", "Linear"]) = (names, types) else { return None };
    let (_, gates) = GATES.iter().find(|(name, _)| name == layer)?;
    let part = gates.iter().position(|name| name == gate)?;
    let side = match *transform {
        "input_transform" => "ih",
        "hidden_transform" => "hh",
        _ => return None,
    };
    // One direction of two, and one layer of several.
    let (outer, around, direction) = match (outer, around) {
        ([outer @ .., "reverse"], [around @ .., "BiLstm" | "BiGru" | "BiRnn"]) => (outer, around, "_reverse"),
        ([outer @ .., "forward"], [around @ .., "BiLstm" | "BiGru" | "BiRnn"]) => (outer, around, ""),
        _ => (outer, around, ""),
    };
    let (outer, index) = match (outer, around) {
        ([outer @ .., index], [.., "Vec" | "Array"]) => (outer, *index),
        _ => (outer, "0"),
    };
    Some(Packed { name: joined(outer, &format!("{param}_{side}_l{index}{direction}")), part, of: gates.len() })
}

/// `attention.key.weight` is the second third of `attention.in_proj_weight`.
fn projection(names: &[&str], types: &[&str]) -> Option<Packed> {
    let ([outer @ .., linear, param], [.., "MultiHeadAttention", "Linear"]) = (names, types) else { return None };
    if *linear == "output" {
        return Some(Packed { name: joined(outer, &format!("out_proj.{param}")), part: 0, of: 1 });
    }
    let part = PROJECTIONS.iter().position(|name| name == linear)?;
    Some(Packed { name: joined(outer, &format!("in_proj_{param}")), part, of: PROJECTIONS.len() })
}

fn joined(outer: &[&str], last: &str) -> String {
    match outer.is_empty() {
        true => last.into(),
        false => format!("{}.{last}", outer.join(".")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Packed, in_pytorch};
    use crate::ModuleContext;

    #[track_caller]
    fn check(path: &str, containers: &[&str], expected: Option<(&str, usize, usize)>) {
        let stack: Vec<String> = containers.iter().map(|name| if *name == "Vec" { (*name).into() } else { format!("Struct:{name}") }).collect();
        let expected = expected.map(|(name, part, of)| Packed { name: name.into(), part, of });
        assert_eq!(in_pytorch(path, ModuleContext::new(&stack)), expected);
    }

    #[test]
    fn gates_and_projections_are_parts_of_pytorchs_tensors() {
        let lstm = ["Net", "Lstm", "GateController", "Linear"];
        check("rnn.cell_gate.hidden_transform.bias", &lstm, Some(("rnn.bias_hh_l0", 2, 4)));
        check("rnn.other_gate.hidden_transform.bias", &lstm, None);
        let layers = ["Net", "Vec", "Gru", "GateController", "Linear"];
        check("rnn.1.update_gate.input_transform.weight", &layers, Some(("rnn.weight_ih_l1", 1, 3)));
        let both = ["BiLstm", "Lstm", "GateController", "Linear"];
        check("reverse.output_gate.input_transform.weight", &both, Some(("weight_ih_l0_reverse", 3, 4)));
        let attention = ["Net", "MultiHeadAttention", "Linear"];
        check("a.value.weight", &attention, Some(("a.in_proj_weight", 2, 3)));
        check("a.output.bias", &attention, Some(("a.out_proj.bias", 0, 1)));
        check("a.weight", &["Net", "Linear"], None);
    }
}
