//! A reparameterization behind a parameter whose type does not name it.
//!
//! Visitors and mappers have generic methods, so a module can't be a trait object by itself. Here both sides are erased: [`Held`] takes visitors as
//! objects that get parameters as `dyn Any` with their rank, and [`Erase`] turns these calls into the generic ones again.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt::Debug;

use kiln_tensor::raw::RawTensor;
use kiln_tensor::{Bool, Device, Float, Int, Tensor};

use super::reparam::CONTAINER;
use super::{Devices, Flag, Module, ModuleMapper, ModuleVisitor, Param, Reparameterization};

/// The highest rank that a parameter of a reparameterization can have.
const MAX_RANK: usize = 4;

/// A [`Reparameterization`] of some type.
pub trait Held: Any + Debug + Send + Sync {
    /// Its name in paths.
    fn name(&self) -> &'static str;
    /// The value of a parameter of rank `rank`.
    fn apply(&self, rank: usize, base: RawTensor) -> RawTensor;
    /// [`Module::collect_devices`].
    fn collect_devices(&self, devices: Devices) -> Devices;
    /// [`Module::visit`], as a part of its parameter.
    fn visit(&self, visitor: &mut dyn ErasedVisitor);
    /// [`Module::map`], as a part of its parameter.
    fn map(self: Arc<Self>, mapper: &mut dyn ErasedMapper) -> Arc<dyn Held>;
    /// The module after one of the operations that give a new one.
    fn changed(self: Arc<Self>, change: Change<'_>) -> Arc<dyn Held>;
    /// The reparameterization as what it is.
    fn as_any(&self) -> &dyn Any;
}

/// An operation of modules that has no visitor.
#[derive(Clone, Copy)]
pub enum Change<'a> {
    /// [`Module::fork`].
    Fork(&'a Device),
    /// [`Module::to_device`].
    ToDevice(&'a Device),
    /// [`Module::train`].
    Train,
    /// [`Module::valid`].
    Valid,
    /// [`Module::materialize`].
    Materialize,
}

/// Holds a reparameterization.
///
/// # Panics
///
/// When it has a parameter of a rank that is not supported.
#[track_caller]
pub(super) fn hold<R: Reparameterization>(reparam: R) -> Arc<dyn Held> {
    let mut ranks = Ranks(0);
    Module::visit(&reparam, &mut ranks);
    assert!(ranks.0 <= MAX_RANK, "reparameterization `{}`: has a parameter of rank {}, at most {MAX_RANK} is supported", R::NAME, ranks.0);
    Arc::new(reparam)
}

/// Finds the highest rank.
struct Ranks(usize);

impl ModuleVisitor for Ranks {
    fn visit_float<const D: usize>(&mut self, _param: &Param<Tensor<D>>) {
        self.0 = self.0.max(D);
    }
    fn visit_int<const D: usize>(&mut self, _param: &Param<Tensor<D, Int>>) {
        self.0 = self.0.max(D);
    }
    fn visit_bool<const D: usize>(&mut self, _param: &Param<Tensor<D, Bool>>) {
        self.0 = self.0.max(D);
    }
}

fn owned<R: Reparameterization>(reparam: Arc<R>) -> R {
    Arc::try_unwrap(reparam).unwrap_or_else(|shared| (*shared).clone())
}

impl<R: Reparameterization> Held for R {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn apply(&self, rank: usize, base: RawTensor) -> RawTensor {
        macro_rules! by_rank {
            ($($n:literal)*) => {
                match rank {
                    $($n => Reparameterization::apply(self, Tensor::<$n>::from_raw(base)).into_raw(),)*
                    _ => panic!("reparameterization `{}`: tensors of rank {rank} are not supported, at most 10 are", R::NAME),
                }
            };
        }
        by_rank!(0 1 2 3 4 5 6 7 8 9 10)
    }

    fn collect_devices(&self, devices: Devices) -> Devices {
        Module::collect_devices(self, devices)
    }

    fn visit(&self, visitor: &mut dyn ErasedVisitor) {
        visitor.enter(R::NAME, CONTAINER);
        Module::visit(self, &mut Forward(visitor));
        visitor.exit(R::NAME, CONTAINER);
    }

    fn map(self: Arc<Self>, mapper: &mut dyn ErasedMapper) -> Arc<dyn Held> {
        mapper.enter(R::NAME, CONTAINER);
        let mapped = Module::map(owned(self), &mut Forward(&mut *mapper));
        mapper.exit(R::NAME, CONTAINER);
        Arc::new(mapped)
    }

    fn changed(self: Arc<Self>, change: Change<'_>) -> Arc<dyn Held> {
        Arc::new(match change {
            Change::Fork(device) => owned(self).fork(device),
            Change::ToDevice(device) => owned(self).to_device(device),
            Change::Train => owned(self).train(),
            Change::Valid => self.valid(),
            Change::Materialize => owned(self).materialize(),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A visitor that gets parameters as `dyn Any`.
pub trait ErasedVisitor {
    /// Enters a part.
    fn enter(&mut self, name: &str, container_type: &str);
    /// Leaves it.
    fn exit(&mut self, name: &str, container_type: &str);
    /// Sees a `Param<Tensor<rank, Float>>`.
    fn float(&mut self, rank: usize, param: &dyn Any);
    /// Sees a `Param<Tensor<rank, Int>>`.
    fn int(&mut self, rank: usize, param: &dyn Any);
    /// Sees a `Param<Tensor<rank, Bool>>`.
    fn bool(&mut self, rank: usize, param: &dyn Any);
    /// Sees a flag.
    fn flag(&mut self, flag: &Param<Flag>);
}

/// A mapper that gets parameters as `dyn Any` and returns them so.
pub trait ErasedMapper {
    /// Enters a part.
    fn enter(&mut self, name: &str, container_type: &str);
    /// Leaves it.
    fn exit(&mut self, name: &str, container_type: &str);
    /// Replaces a `Param<Tensor<rank, Float>>`.
    fn float(&mut self, rank: usize, param: Box<dyn Any>) -> Box<dyn Any>;
    /// Replaces a `Param<Tensor<rank, Int>>`.
    fn int(&mut self, rank: usize, param: Box<dyn Any>) -> Box<dyn Any>;
    /// Replaces a `Param<Tensor<rank, Bool>>`.
    fn bool(&mut self, rank: usize, param: Box<dyn Any>) -> Box<dyn Any>;
    /// Replaces a flag.
    fn flag(&mut self, flag: Param<Flag>) -> Param<Flag>;
}

/// An erased visitor or mapper as one that a module can be shown to.
struct Forward<'a, V: ?Sized>(&'a mut V);

impl ModuleVisitor for Forward<'_, dyn ErasedVisitor + '_> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.0.enter(name, container_type);
    }
    fn exit_module(&mut self, name: &str, container_type: &str) {
        self.0.exit(name, container_type);
    }
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.float(D, param);
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.0.int(D, param);
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.0.bool(D, param);
    }
    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.0.flag(flag);
    }
}

/// What an erased mapper returns for a parameter of some type.
fn restored<T: Any>(param: Box<dyn Any>) -> T {
    *param.downcast().expect("a mapper returns a parameter of the type that it gets")
}

impl ModuleMapper for Forward<'_, dyn ErasedMapper + '_> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.0.enter(name, container_type);
    }
    fn exit_module(&mut self, name: &str, container_type: &str) {
        self.0.exit(name, container_type);
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        restored(self.0.float(D, Box::new(param)))
    }
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        restored(self.0.int(D, Box::new(param)))
    }
    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        restored(self.0.bool(D, Box::new(param)))
    }
    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.0.flag(flag)
    }
}

/// A visitor or mapper as an erased one.
pub(super) struct Erase<'a, V>(pub(super) &'a mut V);

/// Runs a generic method for the rank of a parameter that is given as `dyn Any`.
macro_rules! by_rank {
    ($rank:expr, $($n:literal)*, $param:ident: $kind:ty => $call:expr) => {
        match $rank {
            $($n => {
                type Exact = Param<Tensor<$n, $kind>>;
                $call
            })*
            rank => unreachable!("a parameter of rank {rank} was refused when its reparameterization was made"),
        }
    };
}

/// Shows a parameter to a visitor.
macro_rules! show {
    ($visitor:expr, $method:ident, $kind:ty, $rank:expr, $param:expr) => {{
        let (visitor, param) = (&mut *$visitor, $param);
        by_rank!($rank, 0 1 2 3 4, param: $kind => visitor.$method(param.downcast_ref::<Exact>().expect("rank and kind are the parameter's")))
    }};
}

/// Gives a parameter to a mapper.
macro_rules! give {
    ($mapper:expr, $method:ident, $kind:ty, $rank:expr, $param:expr) => {{
        let (mapper, param) = (&mut *$mapper, $param);
        by_rank!($rank, 0 1 2 3 4, param: $kind => Box::new(mapper.$method(restored::<Exact>(param))))
    }};
}

impl<V: ModuleVisitor> ErasedVisitor for Erase<'_, V> {
    fn enter(&mut self, name: &str, container_type: &str) {
        self.0.enter_module(name, container_type);
    }
    fn exit(&mut self, name: &str, container_type: &str) {
        self.0.exit_module(name, container_type);
    }
    fn float(&mut self, rank: usize, param: &dyn Any) {
        show!(self.0, visit_float, Float, rank, param);
    }
    fn int(&mut self, rank: usize, param: &dyn Any) {
        show!(self.0, visit_int, Int, rank, param);
    }
    fn bool(&mut self, rank: usize, param: &dyn Any) {
        show!(self.0, visit_bool, Bool, rank, param);
    }
    fn flag(&mut self, flag: &Param<Flag>) {
        self.0.visit_flag(flag);
    }
}

impl<M: ModuleMapper> ErasedMapper for Erase<'_, M> {
    fn enter(&mut self, name: &str, container_type: &str) {
        self.0.enter_module(name, container_type);
    }
    fn exit(&mut self, name: &str, container_type: &str) {
        self.0.exit_module(name, container_type);
    }
    fn float(&mut self, rank: usize, param: Box<dyn Any>) -> Box<dyn Any> {
        give!(self.0, map_float, Float, rank, param)
    }
    fn int(&mut self, rank: usize, param: Box<dyn Any>) -> Box<dyn Any> {
        give!(self.0, map_int, Int, rank, param)
    }
    fn bool(&mut self, rank: usize, param: Box<dyn Any>) -> Box<dyn Any> {
        give!(self.0, map_bool, Bool, rank, param)
    }
    fn flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.0.map_flag(flag)
    }
}
