//! The initializer that layers start with unless told otherwise.

use kiln_module::module::Initializer;

/// Kaiming uniform with gain `1 / √3`, which is uniform in `±1 / √fan-in`.
pub(crate) fn default_initializer() -> Initializer {
    Initializer::KaimingUniform { gain: 1.0 / libm::sqrt(3.0), fan_out_only: false }
}
