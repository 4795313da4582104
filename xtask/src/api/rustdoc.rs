//! The facade's public API from rustdoc JSON, followed through re-exports into the crates that it is made of.

use super::canon::{self, Owner};
use super::render::{self, elements};
use crate::workspace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The crate that users import.
const FACADE: &str = "kiln";

/// The features of the facade that the list was made with and that are not among the default ones.
const FEATURES: &str = "linalg,signal,pytorch";

/// One documented crate.
struct Crate {
    doc: Value,
    /// Where an item of this crate stands in its index, by its path.
    ids: BTreeMap<String, String>,
}

/// An item: its crate and its key in that crate's index. Without a key it belongs to a crate that is not documented here.
#[derive(Clone, Debug)]
struct Place {
    krate: String,
    id: Option<String>,
}

/// Every documented crate.
pub struct World {
    crates: BTreeMap<String, Crate>,
    implementations: BTreeSet<String>,
}

impl World {
    /// Documents the workspace's library crates and reads the result.
    pub fn load() -> Result<Self, String> {
        let target = workspace::root().join("target/api");
        let names: Vec<String> = workspace::packages()?
            .into_iter()
            .map(|package| package.name)
            .filter(|name| name == FACADE || (name.starts_with("kiln-") && name != "kiln-cli" && name != "kiln-bench"))
            .collect();
        let mut command = Command::new(workspace::cargo());
        command.args(["doc", "--no-deps", "--lib", "--features", FEATURES, "--target-dir"]).arg(&target);
        for name in &names {
            command.args(["-p", name]);
        }
        // The JSON form is not stable yet; this is the switch that a stable toolchain has for it.
        let status = command
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json")
            .current_dir(workspace::root())
            .status()
            .map_err(|error| format!("cargo did not start: {error}"))?;
        if !status.success() {
            return Err("the crates cannot be documented".into());
        }
        let mut crates = BTreeMap::new();
        for name in names {
            let name = name.replace('-', "_");
            let path = target.join("doc").join(format!("{name}.json"));
            let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let doc: Value = serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
            crates.insert(name, Crate::new(doc));
        }
        let mut world = Self { crates, implementations: BTreeSet::new() };
        world.implementations = world.all_implementations();
        Ok(world)
    }

    fn item(&self, place: &Place) -> Option<&Value> {
        self.crates.get(&place.krate)?.doc["index"].get(place.id.as_ref()?)
    }

    /// Where the item that `krate` knows by `id` is defined.
    fn resolve(&self, krate: &str, id: &Value) -> Place {
        let unknown = Place { krate: krate.into(), id: None };
        let (Some(home), Some(id)) = (self.crates.get(krate), id.as_u64()) else { return unknown };
        let key = id.to_string();
        if home.doc["index"].get(&key).is_some_and(|item| item["crate_id"] == 0) {
            return Place { krate: krate.into(), id: Some(key) };
        }
        let path = path_text(&home.doc["paths"][&key]["path"]);
        let owner = path.split("::").next().unwrap_or_default();
        let id = self.crates.get(owner).and_then(|found| found.ids.get(&path).cloned());
        Place { krate: owner.into(), id }
    }

    /// The public names of a module, re-exports followed.
    fn names(&self, module: &Place, seen: &mut Vec<(String, String)>) -> Vec<(String, Place)> {
        let mut names = Vec::new();
        let key = (module.krate.clone(), module.id.clone().unwrap_or_default());
        let Some(item) = self.item(module).filter(|_| !seen.contains(&key)) else { return names };
        seen.push(key);
        let children = match item["inner"].get("enum") {
            Some(inner) => &inner["variants"],
            None => &item["inner"]["module"]["items"],
        };
        for id in elements(children) {
            let place = Place { krate: module.krate.clone(), id: id.as_u64().map(|id| id.to_string()) };
            let Some(child) = self.item(&place) else { continue };
            match child["inner"].get("use") {
                Some(inner) => {
                    let target = self.resolve(&module.krate, &inner["id"]);
                    if inner["is_glob"] == true {
                        names.extend(self.names(&target, seen));
                    } else {
                        names.push((inner["name"].as_str().unwrap_or_default().into(), target));
                    }
                }
                None => names.push((child["name"].as_str().unwrap_or_default().into(), place)),
            }
        }
        seen.pop();
        names
    }

    /// Everything that a path of the facade names: a trait and its derive macro share one.
    fn find(&self, path: &str) -> Vec<Place> {
        let root = self.crates.get(FACADE).map(|facade| facade.doc["root"].clone()).unwrap_or_default();
        let mut found = vec![self.resolve(FACADE, &root)];
        for segment in path.split("::").skip(1) {
            let names = found.iter().flat_map(|module| self.names(module, &mut Vec::new()));
            found = names.filter(|(name, _)| name == segment).map(|(_, place)| place).collect();
        }
        found
    }

    /// Whether a path of the facade names anything.
    pub fn exists(&self, path: &str) -> bool {
        !self.find(path).is_empty()
    }

    /// The canonical headers of what a path names.
    pub fn headers(&self, path: &str) -> Vec<String> {
        self.find(path).iter().filter_map(|place| self.header(place)).collect()
    }

    fn header(&self, place: &Place) -> Option<String> {
        let item = self.item(place)?;
        let name = item["name"].as_str().unwrap_or_default();
        let (kind, inner) = item["inner"].as_object()?.iter().next()?;
        let generics = render::parameters(&inner["generics"]);
        let written = match kind.as_str() {
            "struct" => format!("struct {name}{generics} {}", self.fields(place, &inner["kind"])),
            "enum" => {
                let variants: Vec<String> = self.children(place, &inner["variants"]).map(|v| self.variant(place, v)).collect();
                format!("enum {name}{generics} {{ {} }}", variants.join(", "))
            }
            "trait" => format!("trait {name}{generics}"),
            "function" => render::function(name, inner),
            "constant" => format!("const {name}: {}", render::kind(&inner["type"])),
            "type_alias" => format!("type {name}{generics} = {}", render::kind(&inner["type"])),
            _ => return None,
        };
        Some(canon::header(&written))
    }

    fn children<'a>(&'a self, place: &'a Place, ids: &'a Value) -> impl Iterator<Item = &'a Value> {
        let index = &self.crates[&place.krate].doc["index"];
        elements(ids).filter_map(move |id| index.get(id.as_u64()?.to_string()))
    }

    /// The body of a struct: public fields, and `..` if there are others.
    fn fields(&self, place: &Place, kind: &Value) -> String {
        if let Some(tuple) = kind.get("tuple") {
            let fields: Vec<String> = elements(tuple)
                .map(|id| {
                    let field = id.as_u64().and_then(|id| self.crates[&place.krate].doc["index"].get(id.to_string()));
                    field.map_or("_".into(), |field| format!("pub {}", render::kind(&field["inner"]["struct_field"])))
                })
                .collect();
            let public = fields.iter().any(|field| field != "_");
            return if public { format!("({})", fields.join(", ")) } else { "{ .. }".into() };
        }
        let Some(plain) = kind.get("plain") else { return String::new() };
        let mut fields: Vec<String> = self
            .children(place, &plain["fields"])
            .map(|field| {
                let name = field["name"].as_str().unwrap_or_default();
                format!("pub {name}: {}", render::kind(&field["inner"]["struct_field"]))
            })
            .collect();
        if plain["has_stripped_fields"] == true {
            fields.push("..".into());
        }
        format!("{{ {} }}", fields.join(", "))
    }

    fn variant(&self, place: &Place, variant: &Value) -> String {
        let name = variant["name"].as_str().unwrap_or_default();
        let kind = &variant["inner"]["variant"]["kind"];
        let field = |field: &Value| render::kind(&field["inner"]["struct_field"]);
        if let Some(tuple) = kind.get("tuple") {
            let fields: Vec<String> = self.children(place, tuple).map(field).collect();
            return format!("{name}({})", fields.join(", "));
        }
        let Some(plain) = kind.get("struct") else { return name.into() };
        let fields: Vec<String> =
            self.children(place, &plain["fields"]).map(|item| format!("{}: {}", item["name"].as_str().unwrap_or_default(), field(item))).collect();
        format!("{name} {{ {} }}", fields.join(", "))
    }

    /// Names and canonical forms of the members of what a path names: inherent functions, or a trait's items.
    pub fn members(&self, path: &str) -> Vec<(String, String)> {
        let mut members = Vec::new();
        for place in self.find(path) {
            let Some((kind, inner)) = self.item(&place).and_then(|item| item["inner"].as_object()?.iter().next()) else {
                continue;
            };
            if kind == "trait" {
                let owner = Owner::of_trait(&render::parameter_names(&inner["generics"]));
                members.extend(self.children(&place, &inner["items"]).map(|item| member(item, &owner)));
                continue;
            }
            for block in self.children(&place, &inner["impls"]).map(|item| &item["inner"]["impl"]) {
                if block["trait"].is_null() {
                    let owner = Owner::new(&render::parameter_names(&block["generics"]), &render::kind(&block["for"]));
                    members.extend(self.children(&place, &block["items"]).map(|item| member(item, &owner)));
                }
            }
        }
        members
    }

    /// Whether an implementation, in canonical form, exists anywhere.
    pub fn implements(&self, canonical: &str) -> bool {
        self.implementations.contains(canonical) || is_reflexive(canonical)
    }

    fn all_implementations(&self) -> BTreeSet<String> {
        let indices = self.crates.values().filter_map(|krate| krate.doc["index"].as_object());
        indices
            .flat_map(|index| index.values())
            .filter_map(|item| item["inner"].get("impl"))
            .filter(|block| !block["trait"].is_null() && block["is_negative"] != true)
            .map(|block| {
                let names = render::parameter_names(&block["generics"]);
                canon::implementation(&names, &render::path(&block["trait"]), &render::kind(&block["for"]))
            })
            .collect()
    }
}

impl Crate {
    fn new(doc: Value) -> Self {
        let mut ids = BTreeMap::new();
        for (id, entry) in doc["paths"].as_object().into_iter().flatten() {
            if entry["crate_id"] == 0 {
                ids.insert(path_text(&entry["path"]), id.clone());
            }
        }
        Self { doc, ids }
    }
}

fn path_text(path: &Value) -> String {
    elements(path).filter_map(Value::as_str).collect::<Vec<_>>().join("::")
}

/// The name and the canonical form of a member; constants and types are known by name.
fn member(item: &Value, owner: &Owner) -> (String, String) {
    let name = item["name"].as_str().unwrap_or_default().to_string();
    match item["inner"].get("function") {
        Some(inner) => {
            let canonical = canon::function(&render::function(&name, inner), owner);
            (name, canonical)
        }
        None => (name.clone(), name),
    }
}

/// Whether this is `From<T> for T`, which the standard library has for every type.
fn is_reflexive(canonical: &str) -> bool {
    canonical.split_once(" for ").is_some_and(|(name, target)| name.strip_prefix("From<").and_then(|rest| rest.strip_suffix('>')) == Some(target))
}
