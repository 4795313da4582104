//! The layering of crates: the drawing in `ARCHITECTURE.md` is the rule, `Cargo.toml` files must follow it.

use super::Finding;
use crate::workspace::Package;

/// One row of the drawing: crates of the same height. Those in brackets serve their row and may be imported by it.
#[derive(Debug, Default, PartialEq)]
struct Layer {
    crates: Vec<String>,
    served_by: Vec<String>,
}

/// Reads the first fenced block that names crates, from the lowest layer up. Rows apart by `^` are layers.
fn layers(map: &str) -> Vec<Layer> {
    let mut layers = vec![Layer::default()];
    let block = map.split("```").skip(1).step_by(2).find(|block| block.contains("kiln-ir"));
    for line in block.unwrap_or_default().lines() {
        if line.trim_start().starts_with('^') {
            layers.push(Layer::default());
            continue;
        }
        let layer = layers.last_mut().expect("there is always a layer being read");
        let mut serving = false;
        for word in line.split_whitespace() {
            serving |= word.starts_with('(');
            let name = word.trim_matches(|c| matches!(c, '(' | ')' | '+'));
            if !name.is_empty() {
                if !is_crate(name) {
                    break;
                }
                let row = if serving { &mut layer.served_by } else { &mut layer.crates };
                row.push(name.into());
            }
            serving &= !word.ends_with(')');
        }
    }
    layers
}

fn is_crate(word: &str) -> bool {
    word == "kiln" || word.strip_prefix("kiln-").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_lowercase()))
}

/// Finds crates that the drawing lacks and imports that do not point downwards.
pub fn check(map: &str, packages: &[Package]) -> Vec<Finding> {
    let layers = layers(map);
    let height = |name: &str| layers.iter().position(|l| l.crates.iter().chain(&l.served_by).any(|c| c == name));
    let mut findings = Vec::new();
    // Tools and benches stand beside the house: they may import what they like, nothing imports them.
    for package in packages.iter().filter(|package| is_crate(&package.name) && package.name != "kiln-bench") {
        let place = format!("{} (Cargo.toml)", package.name);
        let Some(own) = height(&package.name) else {
            findings.push(Finding::new(place, 0, "the drawing in ARCHITECTURE.md does not show this crate"));
            continue;
        };
        for import in packages.iter().map(|p| &p.name).filter(|name| package.imports.contains(name)) {
            let serves = layers[own].served_by.contains(import) && layers[own].crates.contains(&package.name);
            if !serves && height(import).is_none_or(|other| other >= own) {
                let message = format!("imports {import}, which is not below it in ARCHITECTURE.md");
                findings.push(Finding::new(place.clone(), 0, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{check, layers};
    use crate::workspace::Package;

    const MAP: &str = "# A\n```\nkiln-ir     the language\n   ^\nkiln-cpu  kiln-cuda\n   ^\nkiln-module (+ kiln-derive)   Module\n   ^\nkiln  facade of kiln-ir\n```\n";

    fn package(name: &str, imports: &[&str]) -> Package {
        Package { name: name.into(), imports: imports.iter().map(|i| i.to_string()).collect() }
    }

    fn findings(package_under_test: Package) -> usize {
        let mut packages: Vec<_> = ["kiln-ir", "kiln-cpu", "kiln-cuda", "kiln-derive"].map(|name| package(name, &[])).into();
        packages.retain(|other| other.name != package_under_test.name);
        packages.push(package_under_test);
        check(MAP, &packages).len()
    }

    #[test]
    fn the_drawing_is_read_row_by_row() {
        let crates: Vec<_> = layers(MAP).into_iter().map(|layer| layer.crates.join(" ")).collect();
        assert_eq!(crates, ["kiln-ir", "kiln-cpu kiln-cuda", "kiln-module", "kiln"]);
    }

    #[test]
    fn imports_point_downwards() {
        assert_eq!(findings(package("kiln-cpu", &["kiln-ir", "libm"])), 0);
        assert_eq!(findings(package("kiln-module", &["kiln-ir", "kiln-derive"])), 0);
        assert_eq!(findings(package("kiln-ir", &["kiln-cpu"])), 1);
        assert_eq!(findings(package("kiln-cpu", &["kiln-cuda"])), 1);
    }

    #[test]
    fn a_crate_outside_the_drawing_is_found() {
        assert_eq!(findings(package("kiln-train", &[])), 1);
    }
}
