//! What a derive has to know of `Cargo.toml`: the names under which a crate depends on a package.
//!
//! A reader of TOML that keeps strings and bare words with their paths and passes over everything else. It takes a
//! tenth of the time to compile that the crates for it do, and every program with a derive waits for it.

use std::path::{Path, PathBuf};

/// The strings and bare words of a TOML document, each with the keys that lead to it.
struct Entries(Vec<(Vec<String>, String)>);

/// The name by which the crate with the manifest in `dir` calls `package`: the crate itself, or one of its dependencies
/// (of any target, or for tests only), under its own name or another, also by inheritance from a workspace.
pub fn name_of(dir: &Path, package: &str) -> Option<String> {
    let entries = read(&dir.join("Cargo.toml"))?;
    if entries.get(&["package", "name"]) == Some(package) {
        return Some(package.replace('-', "_"));
    }
    let mut inherited = None;
    let mut names: Vec<(bool, &str)> = Vec::new();
    for (path, value) in &entries.0 {
        let Some((dev, rest)) = dependency(path) else { continue };
        let [name, field @ ..] = rest else { continue };
        let matches = match field {
            [field] if field == "package" => value == package,
            [field] if field == "workspace" && value == "true" => {
                let root = inherited.get_or_insert_with(|| workspace(dir, &entries));
                root.as_ref().and_then(|root| root.get(&["workspace", "dependencies", name, "package"])).unwrap_or(name) == package
            }
            // `name = "1.0"`, or any field of a table that says neither `package` nor `workspace`.
            _ => {
                let table = &path[..path.len() - field.len()];
                name == package && !entries.has(table, "package") && !entries.has(table, "workspace")
            }
        };
        if matches {
            names.push((dev, name));
        }
    }
    // What the library can see goes before what only its tests can.
    names.iter().min_by_key(|(dev, _)| *dev).map(|(_, name)| name.replace('-', "_"))
}

/// If a path lies in a table of dependencies: whether they are for tests only, and the path within the table.
fn dependency(path: &[String]) -> Option<(bool, &[String])> {
    let path = match path {
        [target, _, rest @ ..] if target == "target" => rest,
        _ => path,
    };
    match path {
        [table, rest @ ..] if table == "dependencies" => Some((false, rest)),
        [table, rest @ ..] if table == "dev-dependencies" || table == "dev_dependencies" => Some((true, rest)),
        _ => None,
    }
}

/// The manifest of the workspace that the crate with the manifest in `dir` belongs to.
fn workspace(dir: &Path, own: &Entries) -> Option<Entries> {
    if let Some(path) = own.get(&["package", "workspace"]) {
        return read(&dir.join(path).join("Cargo.toml"));
    }
    dir.ancestors().filter_map(|dir| read(&dir.join("Cargo.toml"))).find(|entries| entries.0.iter().any(|(path, _)| path[0] == "workspace"))
}

fn read(path: &PathBuf) -> Option<Entries> {
    let mut reader = Reader { rest: &std::fs::read_to_string(path).ok()?, entries: Entries(Vec::new()) };
    reader.document()?;
    Some(reader.entries)
}

impl Entries {
    fn get(&self, keys: &[&str]) -> Option<&str> {
        self.0.iter().find(|(path, _)| path == keys).map(|(_, value)| value.as_str())
    }

    /// Whether a table has a field.
    fn has(&self, table: &[String], field: &str) -> bool {
        self.0.iter().any(|(path, _)| path.len() == table.len() + 1 && path.starts_with(table) && path[table.len()] == field)
    }
}

/// What is left of a document, and what was found. Functions give `None` where the text is no TOML.
struct Reader<'a> {
    rest: &'a str,
    entries: Entries,
}

impl Reader<'_> {
    /// Takes `prefix` off if the rest begins with it.
    fn take(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Passes over spaces.
    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Passes over spaces, ends of lines and comments.
    fn blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest = self.rest.trim_start_matches(|c| c != '\n');
        }
    }

    fn document(&mut self) -> Option<()> {
        let mut table = Vec::new();
        loop {
            self.blank();
            if self.rest.is_empty() {
                return Some(());
            }
            if self.take("[[") {
                // The elements of an array of tables are told apart by nothing, since nobody asks.
                table = self.keys()?;
                table.push("[]".into());
                self.take("]]").then_some(())?;
            } else if self.take("[") {
                table = self.keys()?;
                self.take("]").then_some(())?;
                // A table without fields is one all the same.
                self.entries.0.push((table.clone(), String::new()));
            } else {
                self.pair(&table)?;
            }
        }
    }

    /// `a.b = value` in a table.
    fn pair(&mut self, table: &[String]) -> Option<()> {
        let mut path = table.to_vec();
        path.extend(self.keys()?);
        self.take("=").then_some(())?;
        self.spaces();
        self.value(path)
    }

    /// `a."b".c`, with the spaces around it.
    fn keys(&mut self) -> Option<Vec<String>> {
        let mut keys = Vec::new();
        loop {
            self.spaces();
            keys.push(if self.rest.starts_with(['"', '\'']) { self.string()? } else { self.word(|c| c.is_alphanumeric() || c == '-' || c == '_')? });
            self.spaces();
            if !self.take(".") {
                return Some(keys);
            }
        }
    }

    /// A run of characters, at least one.
    fn word(&mut self, belongs: impl Fn(char) -> bool) -> Option<String> {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }

    fn value(&mut self, path: Vec<String>) -> Option<()> {
        if self.rest.starts_with(['"', '\'']) {
            let value = self.string()?;
            self.entries.0.push((path, value));
        } else if self.take("{") {
            self.entries.0.push((path.clone(), String::new()));
            self.items('}', &|reader| reader.pair(&path))?;
        } else if self.take("[") {
            let mut path = path;
            path.push("[]".into());
            self.items(']', &|reader| reader.value(path.clone()))?;
        } else {
            let value = self.word(|c| !matches!(c, ',' | ']' | '}' | '#' | '\n' | '\r'))?;
            self.entries.0.push((path, value.trim_end().to_owned()));
        }
        Some(())
    }

    /// Items between commas, up to an end.
    fn items(&mut self, end: char, item: &dyn Fn(&mut Self) -> Option<()>) -> Option<()> {
        loop {
            self.blank();
            if self.rest.starts_with(end) {
                self.rest = &self.rest[1..];
                return Some(());
            }
            item(self)?;
            self.blank();
            if !self.take(",") && !self.rest.starts_with(end) {
                return None;
            }
        }
    }

    /// A string of any of the four forms. Escapes stay as they are, but for the end they hide: no name or path that matters has one.
    fn string(&mut self) -> Option<String> {
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| self.take(quote))?;
        let mut hidden = false;
        for (at, c) in self.rest.char_indices() {
            if !hidden && self.rest[at..].starts_with(quote) {
                let text = self.rest[..at].to_owned();
                self.rest = &self.rest[at + quote.len()..];
                return Some(text);
            }
            hidden = !hidden && c == '\\' && quote.starts_with('"');
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;
    use std::fs;
    use std::path::PathBuf;

    /// A fresh folder with a manifest.
    fn manifest(name: &str, text: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("kiln-derive-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder for the test");
        fs::write(dir.join("Cargo.toml"), text).expect("the manifest");
        dir
    }

    fn check(case: &str, text: &str, expected: Option<&str>) {
        let dir = manifest(case, text);
        let found = name_of(&dir, "kiln");
        fs::remove_dir_all(&dir).expect("the folder is there");
        assert_eq!(found.as_deref(), expected, "{case}: {text}");
    }

    #[test]
    fn dependencies_are_found_in_every_form() {
        check("version", "[dependencies]\nkiln = \"1\"\n", Some("kiln"));
        check("table", "[dependencies.kiln]\nversion = '1'", Some("kiln"));
        check("empty_table", "[dependencies.kiln]\n[dependencies.serde]\n", Some("kiln"));
        check("inline", "[dependencies]\nkiln = { path = \"../kiln\", default-features = false }", Some("kiln"));
        check("dotted", "[dependencies]\nkiln.git = \"https://example.com/#a\"", Some("kiln"));
        check("top", "dependencies.kiln = \"1\"\n[package]\nname = \"x\"", Some("kiln"));
        check("quoted", "[\"dependencies\"]\n'kiln' = \"1\"", Some("kiln"));
        check("dev", "[dev-dependencies]\nkiln = \"1\"", Some("kiln"));
        check("target", "[target.'cfg(target_os = \"linux\")'.dependencies]\nkiln = \"1\"", Some("kiln"));
        check("target_dev", "[target.x86_64-unknown-linux-gnu.dev-dependencies.kiln]\nversion = \"1\"", Some("kiln"));
        check("itself", "[package]\nname = \"kiln\"", Some("kiln"));
        check("crlf", "[package]\r\nname = \"x\" # y\r\n\r\n[dependencies]\r\nkiln = \"1\"\r\n", Some("kiln"));
    }

    #[test]
    fn renamed_packages_are_found_under_their_name() {
        check("inline_name", "[dependencies]\nburn = { package = \"kiln\", version = \"1\" }", Some("burn"));
        check("table_name", "[dependencies.my-burn]\nversion = \"1\"\npackage = \"kiln\"", Some("my_burn"));
        check("other_kiln", "[dependencies]\nkiln = { package = \"oven\", version = \"1\" }", None);
        check("other_after", "[dependencies.kiln]\nversion = \"1\"\npackage = \"oven\"", None);
        check("library_first", "[dev-dependencies]\nother = { package = \"kiln\" }\n[dependencies]\nburn = { package = \"kiln\" }", Some("burn"));
    }

    #[test]
    fn what_is_no_dependency_is_passed_over() {
        check("none", "[package]\nname = \"x\"\ndescription = \"\"\"\n[dependencies]\nkiln = \"1\"\n\"\"\"", None);
        check("build", "[build-dependencies]\nkiln = \"1\"", None);
        check("feature", "[features]\nkiln = [\"dep:kiln\"] # kiln = \"1\"\n", None);
        check("metadata", "[package.metadata]\ndependencies.kiln = \"1\"", None);
        check("broken", "[dependencies]\nkiln = ", None);
        let rest = "[[bin]]\nname = \"a\\\"b\"\npath = 'c\\'\n[x]\na = [\n  1, # one\n  { b = [true, 2.5e3], },\n]\nt = 1979-05-27T07:32:00Z\n";
        check("rest", &format!("{rest}[dependencies]\nburn = {{ version = \"1\", features = [\n \"a\",\n], package = \"kiln\" }}"), Some("burn"));
    }

    #[test]
    fn workspaces_are_inherited_from() {
        let root = manifest("workspace", "[workspace]\n[workspace.dependencies]\nburn = { package = \"kiln\" }\nkiln-nn = \"1\"\nkiln.path = \"x\"");
        for (case, text, expected) in [
            ("renamed", "[dependencies]\nburn.workspace = true", Some("burn")),
            ("same", "[dependencies]\nkiln = { workspace = true }", Some("kiln")),
            ("features", "[dependencies.burn]\nfeatures = []\nworkspace = true", Some("burn")),
            ("path", "[package]\nname = \"x\"\nworkspace = \"../..\"\n[dependencies]\nburn.workspace = true", Some("burn")),
            ("another", "[dependencies]\nkiln-nn.workspace = true", None),
        ] {
            let dir = root.join("crates").join(case);
            fs::create_dir_all(&dir).expect("a folder for the test");
            fs::write(dir.join("Cargo.toml"), text).expect("the manifest");
            assert_eq!(name_of(&dir, "kiln").as_deref(), expected, "{case}: {text}");
        }
        fs::remove_dir_all(&root).expect("the folder is there");
    }
}
