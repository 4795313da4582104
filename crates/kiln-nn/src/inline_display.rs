//! The one-line display of layers, such as `Linear {d_input: 2, d_output: 3, bias: true, params: 9}`.

/// Implements `ModuleDisplay` for a layer that shows the attributes added in the last argument, on one line.
macro_rules! inline_display {
    ($ty:ty, $layer:ident, $content:ident => $attributes:expr) => {
        impl ::kiln_module::module::ModuleDisplay for $ty {
            fn custom_settings(&self) -> Option<::kiln_module::module::DisplaySettings> {
                ::kiln_module::module::DisplaySettings::new().with_new_line_after_attribute(false).optional()
            }

            fn custom_content(&self, $content: ::kiln_module::module::Content) -> Option<::kiln_module::module::Content> {
                let $layer = self;
                $attributes.optional()
            }
        }
    };
}
