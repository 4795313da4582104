//! Where a walk through a module is.

use crate::ModuleContext;

/// Where a walk through a module is: the names of the parts entered, and the types of the modules that they are parts of.
#[derive(Default)]
pub(crate) struct Place {
    names: Vec<String>,
    containers: Vec<String>,
    skip_enum_variants: bool,
}

impl Place {
    pub(crate) fn new(skip_enum_variants: bool) -> Self {
        Self { skip_enum_variants, ..Self::default() }
    }

    pub(crate) fn enter(&mut self, name: &str, container_type: &str) {
        self.names.push(name.into());
        self.containers.push(container_type.into());
    }

    pub(crate) fn exit(&mut self) {
        self.names.pop();
        self.containers.pop();
    }

    /// The names joined by `.`, without those of enum variants if they are skipped.
    pub(crate) fn path(&self) -> String {
        let variant = |container: &String| self.skip_enum_variants && container.starts_with("Enum:");
        let names = self.names.iter().zip(&self.containers).filter(|(_, container)| !variant(container));
        names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".")
    }

    /// The types of the modules around, joined by `.`.
    pub(crate) fn container_path(&self) -> String {
        self.containers.join(".")
    }

    /// The types of the modules around, outermost first.
    #[cfg(feature = "pytorch")]
    pub(crate) fn containers(&self) -> &[String] {
        &self.containers
    }

    pub(crate) fn context(&self) -> ModuleContext<'_> {
        ModuleContext::new(&self.containers)
    }
}
