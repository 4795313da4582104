//! Groups of parameters: which ones an operation concerns.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use super::{Module, ParamId, list_param_ids};

/// Why a group could not be made.
#[derive(Debug)]
pub enum ParamGroupError {
    /// A pattern is no regular expression; says which and why.
    InvalidPatternError(String),
}

impl Display for ParamGroupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidPatternError(reason) => write!(formatter, "invalid pattern: {reason}"),
        }
    }
}

impl core::error::Error for ParamGroupError {}

/// A set of parameters, described by their paths (`encoder.layers.0.weight`) or ids.
///
/// ```
/// use kiln_module::module::{ParamGroup, ParamId};
///
/// let group = ParamGroup::from_path("encoder").exclude(ParamGroup::from_predicate("bias"));
/// let id = ParamId::new();
/// assert!(group.matches(&id, Some("encoder.layers.0.weight")));
/// assert!(!group.matches(&id, Some("encoder.layers.0.bias")));
/// assert!(!group.matches(&id, Some("encoder_2.weight")));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ParamGroup {
    include: Vec<Selector>,
    exclude: Vec<ParamGroup>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Selector {
    All,
    Ids(Vec<ParamId>),
    /// The path itself, and everything below it.
    Path(String),
    /// Paths that contain all (or any) of the texts.
    Contains {
        texts: Vec<String>,
        any: bool,
    },
    /// Paths that all (or any) of the patterns match.
    Matches {
        patterns: Vec<Pattern>,
        any: bool,
    },
}

impl Selector {
    fn matches(&self, id: &ParamId, path: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Ids(ids) => ids.binary_search(id).is_ok(),
            Self::Path(prefix) => {
                path.is_some_and(|path| path.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
            }
            Self::Contains { texts, any } => path.is_some_and(|path| combine(texts, *any, |text| path.contains(text.as_str()))),
            Self::Matches { patterns, any } => path.is_some_and(|path| combine(patterns, *any, |pattern| pattern.is_match(path))),
        }
    }

    fn needs_path(&self) -> bool {
        !matches!(self, Self::All | Self::Ids(_))
    }
}

fn combine<T>(items: &[T], any: bool, test: impl Fn(&T) -> bool) -> bool {
    if any { items.iter().any(test) } else { items.iter().all(test) }
}

impl ParamGroup {
    fn of(include: Vec<Selector>) -> Self {
        Self { include, exclude: Vec::new() }
    }

    /// True if the group holds the parameter with this id and path. Without a path, only groups of ids and the group
    /// of all parameters can tell.
    #[must_use]
    pub fn matches(&self, id: &ParamId, path: Option<&str>) -> bool {
        self.include.iter().any(|selector| selector.matches(id, path)) && !self.exclude.iter().any(|group| group.matches(id, path))
    }

    /// The same for a path in segments, joined only if the group looks at it.
    pub(crate) fn matches_segments(&self, id: &ParamId, path: &[String]) -> bool {
        if self.needs_path() { self.matches(id, Some(&path.join("."))) } else { self.matches(id, None) }
    }

    fn needs_path(&self) -> bool {
        self.include.iter().any(Selector::needs_path) || self.exclude.iter().any(ParamGroup::needs_path)
    }

    /// The parameters of `module`, by id.
    #[must_use]
    pub fn ids_from_module<M: Module>(module: M) -> Self {
        Self::from_ids(list_param_ids(&module))
    }

    /// The parameter at `path`, or all parameters below it.
    #[must_use]
    pub fn from_path(path: impl Into<String>) -> Self {
        Self::of(vec![Selector::Path(path.into())])
    }

    /// The parameters at or below any of `paths`.
    #[must_use]
    pub fn from_paths(paths: Vec<impl Into<String>>) -> Self {
        Self::of(paths.into_iter().map(|path| Selector::Path(path.into())).collect())
    }

    /// The parameters whose path contains the text.
    #[must_use]
    pub fn from_predicate(path: impl Into<String>) -> Self {
        Self::from_predicates(vec![path])
    }

    /// The parameters whose path contains all of the texts.
    #[must_use]
    pub fn from_predicates(paths: Vec<impl Into<String>>) -> Self {
        Self::of(vec![Selector::Contains { texts: paths.into_iter().map(Into::into).collect(), any: false }])
    }

    /// The parameters whose path contains any of the texts.
    #[must_use]
    pub fn from_any_predicates(paths: Vec<impl Into<String>>) -> Self {
        Self::of(vec![Selector::Contains { texts: paths.into_iter().map(Into::into).collect(), any: true }])
    }

    /// The parameters whose path the regular expression matches. Patterns need the feature `std`; the classes `\w`, `\d` and `\s` are those of ASCII.
    ///
    /// # Errors
    ///
    /// When the pattern is no regular expression, or without `std`.
    pub fn from_regex<S: AsRef<str>>(pattern: S) -> Result<Self, ParamGroupError> {
        Self::from_regexes(vec![pattern])
    }

    /// The parameters whose path all of the regular expressions match.
    ///
    /// # Errors
    ///
    /// When a pattern is no regular expression.
    pub fn from_regexes<S: AsRef<str>>(patterns: Vec<S>) -> Result<Self, ParamGroupError> {
        Self::matching(&patterns, false)
    }

    /// The parameters whose path any of the regular expressions matches.
    ///
    /// # Errors
    ///
    /// When a pattern is no regular expression.
    pub fn from_any_regexes<S: AsRef<str>>(patterns: Vec<S>) -> Result<Self, ParamGroupError> {
        Self::matching(&patterns, true)
    }

    fn matching<S: AsRef<str>>(patterns: &[S], any: bool) -> Result<Self, ParamGroupError> {
        let patterns = patterns.iter().map(|pattern| Pattern::new(pattern.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self::of(vec![Selector::Matches { patterns, any }]))
    }

    /// All parameters.
    #[must_use]
    pub fn all() -> Self {
        Self::of(vec![Selector::All])
    }

    /// The parameters with the given ids.
    #[must_use]
    pub fn from_ids(mut ids: Vec<ParamId>) -> Self {
        ids.sort_unstable();
        Self::of(vec![Selector::Ids(ids)])
    }

    /// The parameters of this group or `other`.
    #[must_use]
    pub fn fuse(self, other: &Self) -> Self {
        if self.exclude.is_empty() && other.exclude.is_empty() {
            let mut include = self.include;
            include.extend(other.include.iter().cloned());
            return Self::of(include);
        }
        // What one group leaves out the other may hold, so a union of exclusions is an exclusion of exclusions:
        // everything except what neither holds.
        let neither = Self::all().exclude(self).exclude(other.clone());
        Self::all().exclude(neither)
    }

    /// The parameters of this group that are not in `group`.
    #[must_use]
    pub fn exclude(mut self, group: Self) -> Self {
        self.exclude.push(group);
        self
    }
}

impl Display for ParamGroup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, selector) in self.include.iter().enumerate() {
            if index > 0 {
                formatter.write_str(" or ")?;
            }
            match selector {
                Selector::All => formatter.write_str("all parameters")?,
                Selector::Ids(ids) => write!(formatter, "{} parameters by id", ids.len())?,
                Selector::Path(path) => write!(formatter, "`{path}`")?,
                Selector::Contains { texts, any } => {
                    let word = if *any { " or " } else { " and " };
                    write!(formatter, "paths with {}", texts.join(word))?;
                }
                Selector::Matches { patterns, any } => {
                    let word = if *any { " or " } else { " and " };
                    let texts: Vec<String> = patterns.iter().map(|pattern| pattern.as_str().to_string()).collect();
                    write!(formatter, "paths matching {}", texts.join(word))?;
                }
            }
        }
        for group in &self.exclude {
            write!(formatter, " except ({group})")?;
        }
        Ok(())
    }
}
