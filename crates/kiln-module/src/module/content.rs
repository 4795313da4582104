//! What a module shows of itself when printed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{Debug, Display};

use super::{DisplaySettings, ModuleDisplay};

/// A line of a printed module.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The name before the colon.
    pub name: String,
    /// The text after it.
    pub value: String,
    /// The name of the value's type.
    pub ty: String,
}

/// Collects what a module shows: either named attributes or a single item.
#[derive(Clone, Debug)]
pub struct Content {
    /// The named attributes, in order.
    pub attributes: Vec<Attribute>,
    /// The text that stands for the whole module.
    pub single_item: Option<String>,
    /// The settings the content is printed with.
    pub display_settings: DisplaySettings,
    /// The name before the brace, if not the type's.
    pub top_level_type: Option<String>,
}

impl Content {
    /// An empty content.
    #[must_use]
    pub fn new(display_settings: DisplaySettings) -> Self {
        Self { attributes: Vec::new(), single_item: None, display_settings, top_level_type: None }
    }

    /// Adds a module or value under a name.
    ///
    /// # Panics
    ///
    /// When the content is a single item already.
    #[must_use]
    #[track_caller]
    pub fn add<T: ModuleDisplay + ?Sized>(self, name: &str, value: &T) -> Self {
        let text = value.format(self.inner_settings());
        self.with_attribute(name, text, extract_type_name::<T>())
    }

    /// Adds a value under a name, in its `Debug` form.
    ///
    /// # Panics
    ///
    /// When the content is a single item already.
    #[must_use]
    #[track_caller]
    pub fn add_debug_attribute<T: Debug>(self, name: &str, value: &T) -> Self {
        let text = debug_text(value);
        self.with_attribute(name, text, extract_type_name::<T>())
    }

    /// Makes a module or value the single item.
    ///
    /// # Panics
    ///
    /// When the content has attributes or an item already.
    #[must_use]
    #[track_caller]
    pub fn add_single<T: ModuleDisplay + ?Sized>(self, value: &T) -> Self {
        let text = value.format(self.display_settings.clone());
        self.with_single(text)
    }

    /// Makes the text of a value the single item.
    ///
    /// # Panics
    ///
    /// When the content has attributes or an item already.
    #[must_use]
    #[track_caller]
    pub fn add_formatted<T: Display>(self, value: &T) -> Self {
        let text = value.to_string();
        self.with_single(text)
    }

    /// The settings of what the content holds.
    fn inner_settings(&self) -> DisplaySettings {
        self.display_settings.clone().level_up()
    }

    /// The content as `Some`.
    #[must_use]
    pub fn optional(self) -> Option<Self> {
        Some(self)
    }

    /// Sets the name before the brace.
    #[must_use]
    pub fn set_top_level_type(mut self, ty: &str) -> Self {
        self.top_level_type = Some(ty.into());
        self
    }

    #[track_caller]
    pub(crate) fn with_single(mut self, text: String) -> Self {
        assert!(self.single_item.is_none() && self.attributes.is_empty(), "add_single: the content has an item already");
        self.single_item = Some(text);
        self
    }

    /// The attributes of both, those of `other` without the ones that are here already.
    pub(crate) fn joined(mut self, other: Self) -> Self {
        for attribute in other.attributes {
            if self.attributes.iter().all(|present| present.name != attribute.name) {
                self.attributes.push(attribute);
            }
        }
        self.top_level_type = self.top_level_type.or(other.top_level_type);
        self
    }

    #[track_caller]
    fn with_attribute(mut self, name: &str, value: String, ty: &str) -> Self {
        assert!(self.single_item.is_none(), "add: the content is a single item already, attribute `{name}` can't join it");
        self.attributes.push(Attribute { name: name.into(), value, ty: ty.into() });
        self
    }
}

/// The name of a type without its path and type parameters.
#[must_use]
pub fn extract_type_name<T: ?Sized>() -> &'static str {
    plain_name(core::any::type_name::<T>())
}

fn plain_name(full: &'static str) -> &'static str {
    let plain = full.split('<').next().unwrap_or(full);
    plain.rsplit("::").next().unwrap_or(plain)
}

fn debug_text(value: &dyn Debug) -> String {
    format!("{value:?}")
}
