//! How a module is printed: as a tree of names, types, settings and parameter counts.

use alloc::string::String;
use core::fmt::Write;

use super::content::{Content, extract_type_name};

/// What a printed module shows and how it is laid out. A setting that was not made is inherited from the module around.
#[derive(Clone, Debug)]
pub struct DisplaySettings {
    show_param_id: Option<bool>,
    show_all_attributes: Option<bool>,
    show_num_parameters: Option<bool>,
    new_line_after_attribute: Option<bool>,
    indentation_size: Option<usize>,
    level: usize,
}

impl Default for DisplaySettings {
    fn default() -> Self {
        Self::new()
    }
}

impl DisplaySettings {
    /// Settings that are all inherited; at the top these are: no ids, no hidden attributes, parameter counts, one
    /// attribute a line, two spaces of indentation.
    #[must_use]
    pub fn new() -> Self {
        Self {
            show_param_id: None,
            show_all_attributes: None,
            show_num_parameters: None,
            new_line_after_attribute: None,
            indentation_size: None,
            level: 1,
        }
    }

    /// Shows the ids of parameters.
    #[must_use]
    pub fn with_show_param_id(mut self, flag: bool) -> Self {
        self.show_param_id = Some(flag);
        self
    }

    /// Shows all fields, also of modules that choose what they show.
    #[must_use]
    pub fn with_show_all_attributes(mut self, flag: bool) -> Self {
        self.show_all_attributes = Some(flag);
        self
    }

    /// Shows the number of parameters.
    #[must_use]
    pub fn with_show_num_parameters(mut self, flag: bool) -> Self {
        self.show_num_parameters = Some(flag);
        self
    }

    /// Puts each attribute on a line of its own.
    #[must_use]
    pub fn with_new_line_after_attribute(mut self, flag: bool) -> Self {
        self.new_line_after_attribute = Some(flag);
        self
    }

    /// Sets the number of spaces a level is indented by.
    #[must_use]
    pub fn with_indentation_size(mut self, size: usize) -> Self {
        self.indentation_size = Some(size);
        self
    }

    /// These settings, with those that were not made taken from `top`, at the level of `top`.
    #[must_use]
    pub fn inherit(self, top: Self) -> Self {
        Self {
            show_param_id: self.show_param_id.or(top.show_param_id),
            show_all_attributes: self.show_all_attributes.or(top.show_all_attributes),
            show_num_parameters: self.show_num_parameters.or(top.show_num_parameters),
            new_line_after_attribute: self.new_line_after_attribute.or(top.new_line_after_attribute),
            indentation_size: self.indentation_size.or(top.indentation_size),
            level: top.level,
        }
    }

    /// The settings as `Some`, for [`ModuleDisplay::custom_settings`].
    #[must_use]
    pub fn optional(self) -> Option<Self> {
        Some(self)
    }

    /// The settings one level deeper.
    #[must_use]
    pub fn level_up(mut self) -> Self {
        self.level += 1;
        self
    }

    /// True if the ids of parameters are shown.
    #[must_use]
    pub fn show_param_id(&self) -> bool {
        self.show_param_id.unwrap_or(false)
    }

    /// True if all fields are shown.
    #[must_use]
    pub fn show_all_attributes(&self) -> bool {
        self.show_all_attributes.unwrap_or(false)
    }

    /// True if parameter counts are shown.
    #[must_use]
    pub fn show_num_parameters(&self) -> bool {
        self.show_num_parameters.unwrap_or(true)
    }

    /// True if each attribute is on a line of its own.
    #[must_use]
    pub fn new_line_after_attribute(&self) -> bool {
        self.new_line_after_attribute.unwrap_or(true)
    }

    /// The number of spaces a level is indented by.
    #[must_use]
    pub fn indentation_size(&self) -> usize {
        self.indentation_size.unwrap_or(2)
    }
}

/// What a module shows unless it chooses otherwise; written by `#[derive(Module)]`.
pub trait ModuleDisplayDefault {
    /// All fields of the module.
    fn content(&self, _content: Content) -> Option<Content>;

    /// The number of elements of all parameters.
    fn num_params(&self) -> usize {
        0
    }
}

/// What a module shows. With `#[module(custom_display)]` the derive leaves this to you:
///
/// ```
/// use kiln_module::module::{Content, DisplaySettings, Module, ModuleDisplay};
///
/// #[derive(Module, Debug)]
/// #[module(custom_display)]
/// struct Scale {
///     factor: f64,
///     offset: f64,
/// }
///
/// impl ModuleDisplay for Scale {
///     fn custom_settings(&self) -> Option<DisplaySettings> {
///         DisplaySettings::new().with_new_line_after_attribute(false).optional()
///     }
///
///     fn custom_content(&self, content: Content) -> Option<Content> {
///         content.add("factor", &self.factor).optional()
///     }
/// }
///
/// let scale = Scale { factor: 2.0, offset: 1.0 };
/// assert_eq!(scale.to_string(), "Scale {factor: 2}");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be shown as a part of a module",
    label = "this type does not implement `ModuleDisplay`",
    note = "derive it with `#[derive(Module)]`, or mark the field with `#[module(skip)]` to show its `Debug` form"
)]
pub trait ModuleDisplay: ModuleDisplayDefault {
    /// The text of the module under the settings passed down from the module around it.
    fn format(&self, passed_settings: DisplaySettings) -> String {
        text(&This(self), passed_settings, extract_type_name::<Self>())
    }

    /// The settings this module wants; those not made are inherited.
    fn custom_settings(&self) -> Option<DisplaySettings> {
        None
    }

    /// What this module shows instead of all its fields.
    fn custom_content(&self, _content: Content) -> Option<Content> {
        None
    }
}

/// A module as far as printing asks. What follows is compiled once, and not for every module.
trait Shown {
    fn settings(&self) -> Option<DisplaySettings>;
    fn custom(&self, content: Content) -> Option<Content>;
    fn all(&self, content: Content) -> Option<Content>;
    fn params(&self) -> usize;
}

/// A module of any type, sized or not.
struct This<'a, T: ?Sized>(&'a T);

impl<T: ModuleDisplay + ?Sized> Shown for This<'_, T> {
    fn settings(&self) -> Option<DisplaySettings> {
        self.0.custom_settings()
    }

    fn custom(&self, content: Content) -> Option<Content> {
        self.0.custom_content(content)
    }

    fn all(&self, content: Content) -> Option<Content> {
        self.0.content(content)
    }

    fn params(&self) -> usize {
        self.0.num_params()
    }
}

fn text(module: &dyn Shown, passed_settings: DisplaySettings, name: &str) -> String {
    let settings = match module.settings() {
        Some(custom) => custom.inherit(passed_settings),
        None => passed_settings,
    };
    let empty = Content::new(settings.clone());
    let content = match module.custom(empty.clone()) {
        Some(custom) if settings.show_all_attributes() => match module.all(empty) {
            Some(all) => custom.joined(all),
            None => custom,
        },
        Some(custom) => custom,
        None => match module.all(empty.clone()) {
            Some(content) => content,
            None => empty,
        },
    };
    render(content, &settings, name, module.params())
}

fn render(content: Content, settings: &DisplaySettings, name: &str, params: usize) -> String {
    if let Some(single) = content.single_item {
        return single;
    }
    let mut text = content.top_level_type.unwrap_or_else(|| name.into());
    let count = (settings.show_num_parameters() && params > 0).then_some(params);
    if content.attributes.is_empty() && count.is_none() {
        return text;
    }
    let lines = settings.new_line_after_attribute();
    let size = settings.indentation_size();
    let inner = if lines { settings.level * size } else { 0 };
    let outer = if lines { (settings.level - 1) * size } else { 0 };
    let separator = if lines { "\n" } else { ", " };
    text.push_str(if lines { " {\n" } else { " {" });
    let mut first = true;
    let mut item = |text: &mut String, name: &str, value: &dyn core::fmt::Display| {
        if !first {
            text.push_str(separator);
        }
        first = false;
        write!(text, "{:inner$}{name}: {value}", "").expect("writing to a string never fails");
    };
    for attribute in &content.attributes {
        item(&mut text, &attribute.name, &attribute.value);
    }
    if let Some(count) = count {
        item(&mut text, "params", &count);
    }
    let end = if lines { "\n" } else { "" };
    write!(text, "{end}{:outer$}}}", "").expect("writing to a string never fails");
    text
}
