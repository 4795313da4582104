//! Renaming tensors between a file's paths and a module's.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::burn_pack::Tensor;

/// Renames tensors by patterns, one after another: the second is applied to what the first has made.
///
/// ```
/// use kiln_store::KeyRemapper;
/// let remapper = KeyRemapper::new().add_pattern(r"^transformer\.h\.(\d+)\.", "layers.$1.")?;
/// # assert_eq!(remapper.patterns.len(), 1);
/// # Ok::<(), regex::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct KeyRemapper {
    /// Patterns, and what replaces each place where they match: `$1` stands for the first group.
    pub patterns: Vec<(Regex, String)>,
}

impl KeyRemapper {
    /// A remapper that renames nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also replaces `from` by `to`.
    ///
    /// # Errors
    ///
    /// `from` is no regular expression.
    pub fn add_pattern<S1, S2>(mut self, from: S1, to: S2) -> Result<Self, regex::Error>
    where
        S1: AsRef<str>,
        S2: Into<String>,
    {
        self.patterns.push((Regex::new(from.as_ref())?, to.into()));
        Ok(self)
    }

    /// A remapper of these patterns.
    pub fn from_compiled_patterns(patterns: Vec<(Regex, String)>) -> Self {
        Self { patterns }
    }

    /// A remapper of these patterns.
    ///
    /// # Errors
    ///
    /// One of them is no regular expression.
    pub fn from_patterns<S1, S2>(patterns: Vec<(S1, S2)>) -> Result<Self, regex::Error>
    where
        S1: AsRef<str>,
        S2: Into<String>,
    {
        Self::from_pattern_iter(patterns)
    }

    /// A remapper of these patterns.
    ///
    /// # Errors
    ///
    /// One of them is no regular expression.
    pub fn from_pattern_iter<I, S1, S2>(iter: I) -> Result<Self, regex::Error>
    where
        I: IntoIterator<Item = (S1, S2)>,
        S1: AsRef<str>,
        S2: Into<String>,
    {
        iter.into_iter().try_fold(Self::new(), |remapper, (from, to)| remapper.add_pattern(from, to))
    }

    /// Whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The patterns.
    pub fn to_regex_pairs(&self) -> Vec<(Regex, String)> {
        self.patterns.clone()
    }

    /// Renames tensors; also gives, for each of them, its new and its old name.
    pub fn remap(&self, tensors: Vec<Tensor>) -> (Vec<Tensor>, Vec<(String, String)>) {
        rename(tensors, |name| self.patterns.iter().fold(name.to_owned(), |name, (pattern, to)| pattern.replace_all(&name, to.as_str()).into_owned()))
    }
}

/// Renumbers the indices in the tensors' paths so that they count from 0 without gaps: `fc.0.weight`, `fc.2.weight` become `fc.0.weight`,
/// `fc.1.weight`. Also gives, for each tensor, its new and its old name.
///
/// PyTorch's `Sequential` numbers its members whether they have parameters or not; a list of modules has only those that do.
pub fn map_indices_contiguous(tensors: Vec<Tensor>) -> (Vec<Tensor>, Vec<(String, String)>) {
    map_indices_contiguous_except(tensors, |_| false)
}

/// As [`map_indices_contiguous`], but leaves the paths for which `keep` holds as they are.
pub fn map_indices_contiguous_except(tensors: Vec<Tensor>, keep: impl Fn(&str) -> bool) -> (Vec<Tensor>, Vec<(String, String)>) {
    // The indices that stand behind each prefix.
    let mut indices: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for tensor in tensors.iter().filter(|tensor| !keep(&tensor.name)) {
        for (prefix, segment) in segments(&tensor.name) {
            if let Ok(index) = segment.parse() {
                indices.entry(prefix).or_default().insert(index);
            }
        }
    }
    let renumbered = |name: &str| {
        let place = |(prefix, segment): (&str, &str)| match segment.parse::<usize>() {
            Ok(index) => indices[prefix].range(..index).count().to_string(),
            Err(_) => segment.to_owned(),
        };
        segments(name).map(place).collect::<Vec<_>>().join(".")
    };
    let names: Vec<String> = tensors.iter().map(|tensor| if keep(&tensor.name) { tensor.name.clone() } else { renumbered(&tensor.name) }).collect();
    let mut names = names.into_iter();
    rename(tensors, |_| names.next().expect("a name for each tensor"))
}

/// The segments of a path, each with the part of the path before it.
fn segments(path: &str) -> impl Iterator<Item = (&str, &str)> {
    path.split('.').map(|segment| {
        let at = segment.as_ptr().addr() - path.as_ptr().addr();
        (&path[..at], segment)
    })
}

fn rename(tensors: Vec<Tensor>, mut name: impl FnMut(&str) -> String) -> (Vec<Tensor>, Vec<(String, String)>) {
    let rename = |mut tensor: Tensor| {
        let new = name(&tensor.name);
        let old = std::mem::replace(&mut tensor.name, new.clone());
        (tensor, (new, old))
    };
    tensors.into_iter().map(rename).unzip()
}
