//! Which tensors of a module or a file are meant: by pattern, by path, by predicate.

use std::fmt;

use regex::Regex;

/// Chooses tensors by their path. A tensor is chosen if any of the criteria holds; a filter without criteria chooses nothing.
///
/// ```
/// use kiln_store::PathFilter;
/// let filter = PathFilter::new().with_regex(r"^encoder\.").with_full_path("head.bias");
/// assert!(filter.matches("encoder.layers.0.weight") && filter.matches("head.bias"));
/// assert!(!filter.matches("head.weight"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct PathFilter {
    regexes: Vec<Regex>,
    paths: Vec<String>,
    predicates: Vec<fn(&str, &str) -> bool>,
    match_all: bool,
}

impl PathFilter {
    /// A filter without criteria: it chooses nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A filter that chooses everything.
    pub fn all() -> Self {
        Self::new().match_all()
    }

    /// A filter that chooses nothing.
    pub fn none() -> Self {
        Self::new()
    }

    /// Also chooses paths in which `pattern` matches somewhere.
    ///
    /// # Panics
    ///
    /// If `pattern` is no regular expression.
    #[track_caller]
    pub fn with_regex<S: AsRef<str>>(mut self, pattern: S) -> Self {
        let pattern = pattern.as_ref();
        match Regex::new(pattern) {
            Ok(regex) => self.regexes.push(regex),
            Err(error) => panic!("path filter: `{pattern}` is no regular expression: {error}"),
        }
        self
    }

    /// Also chooses paths in which any of `patterns` matches somewhere.
    ///
    /// # Panics
    ///
    /// As [`with_regex`](Self::with_regex).
    #[track_caller]
    pub fn with_regexes<I, S>(mut self, patterns: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        for pattern in patterns {
            self = self.with_regex(pattern);
        }
        self
    }

    /// Also chooses exactly this path.
    pub fn with_full_path<S: Into<String>>(mut self, path: S) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Also chooses exactly these paths.
    pub fn with_full_paths<I, S>(mut self, paths: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        self.paths.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Also chooses where `predicate` holds for a path and the types of the modules around it, joined by `.`.
    pub fn with_predicate(mut self, predicate: fn(&str, &str) -> bool) -> Self {
        self.predicates.push(predicate);
        self
    }

    /// Also chooses where any of `predicates` holds.
    pub fn with_predicates<I>(mut self, predicates: I) -> Self
    where
        I: IntoIterator<Item = fn(&str, &str) -> bool>,
    {
        self.predicates.extend(predicates);
        self
    }

    /// Chooses everything.
    pub fn match_all(mut self) -> Self {
        self.match_all = true;
        self
    }

    /// Whether `path` is chosen; predicates are given no module types.
    pub fn matches(&self, path: &str) -> bool {
        self.matches_with_container_path_str(path, "")
    }

    /// Whether `path`, in a module of the type `container_type`, is chosen.
    pub fn matches_with_container(&self, path: &str, container_type: &str) -> bool {
        self.matches_with_container_path_str(path, container_type)
    }

    /// Whether a path, given as its segments, in modules of these types, outermost first, is chosen.
    pub fn matches_with_container_path(&self, path: &[String], container_stack: &[String]) -> bool {
        self.matches_with_container_path_str(&path.join("."), &container_stack.join("."))
    }

    /// Whether `path`, in modules whose types joined by `.` are `container_path`, is chosen.
    pub fn matches_with_container_path_str(&self, path: &str, container_path: &str) -> bool {
        self.match_all
            || self.paths.iter().any(|chosen| chosen == path)
            || self.regexes.iter().any(|regex| regex.is_match(path))
            || self.predicates.iter().any(|predicate| predicate(path, container_path))
    }

    /// Whether there are no criteria and not everything is chosen.
    pub fn is_empty(&self) -> bool {
        !self.match_all && self.criteria_count() == 0
    }

    /// The number of patterns, paths and predicates.
    pub fn criteria_count(&self) -> usize {
        self.regexes.len() + self.paths.len() + self.predicates.len()
    }

    /// Removes the patterns.
    pub fn clear_regex(&mut self) -> &mut Self {
        self.regexes.clear();
        self
    }

    /// Removes the paths.
    pub fn clear_paths(&mut self) -> &mut Self {
        self.paths.clear();
        self
    }

    /// Removes the predicates.
    pub fn clear_predicates(&mut self) -> &mut Self {
        self.predicates.clear();
        self
    }

    /// Removes all criteria: nothing is chosen any more.
    pub fn clear(&mut self) -> &mut Self {
        *self = Self::default();
        self
    }

    /// A filter of these patterns.
    ///
    /// # Panics
    ///
    /// As [`with_regex`](Self::with_regex).
    #[track_caller]
    pub fn from_regex_patterns<I, S>(patterns: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        Self::new().with_regexes(patterns)
    }

    /// A filter of these paths.
    pub fn from_paths<I, S>(paths: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self::new().with_full_paths(paths)
    }

    /// A filter of this predicate.
    pub fn from_predicate(predicate: fn(&str, &str) -> bool) -> Self {
        Self::new().with_predicate(predicate)
    }

    /// A filter that chooses what this one or `other` chooses.
    pub fn or(mut self, other: Self) -> Self {
        self.regexes.extend(other.regexes);
        self.paths.extend(other.paths);
        self.predicates.extend(other.predicates);
        self.match_all |= other.match_all;
        self
    }
}

impl fmt::Display for PathFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.match_all {
            return f.write_str("everything");
        }
        if self.is_empty() {
            return f.write_str("nothing");
        }
        let mut parts: Vec<String> = self.regexes.iter().map(|regex| format!("/{regex}/")).collect();
        parts.extend(self.paths.iter().map(|path| format!("`{path}`")));
        match self.predicates.len() {
            0 => {}
            1 => parts.push("a predicate".into()),
            count => parts.push(format!("{count} predicates")),
        }
        f.write_str(&parts.join(" or "))
    }
}
