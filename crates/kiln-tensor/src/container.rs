//! `TensorContainer`: tensors of any type by id.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt::{self, Debug};
use core::hash::Hash;

use hashbrown::HashMap;

/// Values of any type by id. A value is read with the type it was registered with.
///
/// ```
/// use kiln_tensor::{Device, Tensor, container::TensorContainer};
/// let mut container = TensorContainer::new();
/// container.register("weight", Tensor::<1>::ones([2], &Device::default()));
/// assert_eq!(container.get::<Tensor<1>>(&"weight").unwrap().dims(), [2]);
/// assert!(container.get::<Tensor<2>>(&"weight").is_none());
/// ```
pub struct TensorContainer<ID> {
    values: HashMap<ID, Box<dyn Any + Send>>,
}

impl<ID: Debug> Debug for TensorContainer<ID> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TensorContainer ")?;
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl<ID> Default for TensorContainer<ID>
where
    ID: Hash + PartialEq + Eq + Debug,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<ID> TensorContainer<ID>
where
    ID: Hash + PartialEq + Eq + Debug,
{
    /// An empty container.
    pub fn new() -> Self {
        Self { values: HashMap::new() }
    }

    /// A clone of the value; `None` if there is none, or it is of another type.
    pub fn get<T: Clone + Send + 'static>(&self, id: &ID) -> Option<T> {
        self.values.get(id)?.downcast_ref::<T>().cloned()
    }

    /// The value; `None` if there is none, or it is of another type.
    pub fn get_mut_ref<T: Clone + Send + 'static>(&mut self, id: &ID) -> Option<&mut T> {
        self.values.get_mut(id)?.downcast_mut::<T>()
    }

    /// Sets a value.
    pub fn register<T: Clone + Send + 'static>(&mut self, id: ID, value: T) {
        self.values.insert(id, Box::new(value));
    }

    /// Takes a value out; one of another type stays.
    pub fn remove<T: Clone + Send + 'static>(&mut self, id: &ID) -> Option<T> {
        self.values.get(id)?.downcast_ref::<T>()?;
        let value = self.values.remove(id)?;
        value.downcast::<T>().ok().map(|value| *value)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The ids, in no particular order.
    pub fn ids(&self) -> Vec<&ID> {
        self.values.keys().collect()
    }
}
