//! Which element type wins on loading.

/// Which element type a loaded parameter gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DTypePolicy {
    /// The one in the record.
    #[default]
    FromRecord,
    /// The one the module's parameter has.
    CastToModule,
}
