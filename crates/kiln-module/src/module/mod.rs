//! The module system: trees of parameters that can be visited, mapped, moved, displayed and recorded.
//!
//! Start reading at [`Module`] and [`Param`].

mod constant;
mod container;
mod content;
mod display;
mod flag;
mod group;
mod held;
mod ignored;
mod initializer;
mod lora;
mod map;
mod param;
mod param_id;
mod parameter;
mod pattern;
mod quantizer;
mod reparam;
mod running;
mod tensor;
mod tree;
mod tuple;
mod visit;

pub use content::{Attribute, Content, extract_type_name};
pub use display::{DisplaySettings, ModuleDisplay, ModuleDisplayDefault};
pub use flag::Flag;
pub use group::{ParamGroup, ParamGroupError};
#[allow(deprecated)]
pub use ignored::Ignored;
pub use initializer::Initializer;
pub use kiln_derive::Module;
pub use lora::{Lora, LoraAdapter};
pub use map::ModuleMapper;
pub use param::{Param, ParamMapper};
pub use param_id::ParamId;
pub use parameter::{Parameter, ParameterValue};
pub use quantizer::{QLora, Quantizer};
pub use reparam::{Reparameterization, Reparameterizer};
pub use running::RunningState;
pub use tree::{Devices, Module, list_param_ids};
pub use visit::ModuleVisitor;
