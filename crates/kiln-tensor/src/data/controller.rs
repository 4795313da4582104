//! `AllocationController`: memory that somebody else allocates and frees, as bytes of tensor data.

use alloc::boxed::Box;
use core::mem::MaybeUninit;

use super::access::AccessPolicy;
use super::error::AccessError;
use super::{AllocationProperty, Bytes};

/// An allocation that [`Bytes`] take over: page-locked memory, a pool's block, memory of another library. Dropping it frees the memory.
pub trait AllocationController: Send + Sync {
    /// The alignment that the memory was allocated with.
    fn alloc_align(&self) -> usize;

    /// Where the memory lies.
    fn property(&self) -> AllocationProperty {
        AllocationProperty::Other
    }

    /// The memory. The same at every call until [`memory_mut`](Self::memory_mut) is called.
    ///
    /// # Errors
    /// [`AccessError::WouldCopy`] when it must be fetched first and the policy forbids that; [`AccessError::Unreadable`] when fetching fails.
    fn memory(&self, policy: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError>;

    /// The memory, to be written.
    ///
    /// # Errors
    /// As [`memory`](Self::memory).
    ///
    /// # Safety
    /// Only initialised bytes may be written.
    unsafe fn memory_mut(&mut self, policy: AccessPolicy) -> Result<&mut [MaybeUninit<u8>], AccessError>;
}

/// A controller whose first `len` bytes are initialised.
pub(super) struct Controlled {
    controller: Box<dyn AllocationController>,
    len: usize,
}

impl Controlled {
    pub fn align(&self) -> usize {
        self.controller.alloc_align()
    }

    pub fn property(&self) -> AllocationProperty {
        self.controller.property()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self, policy: AccessPolicy) -> Result<&[u8], AccessError> {
        let memory = &self.controller.memory(policy)?[..self.len];
        // SAFETY: whoever made this promised that these bytes are initialised, and only initialised bytes were written since.
        Ok(unsafe { core::slice::from_raw_parts(memory.as_ptr().cast(), memory.len()) })
    }

    pub fn bytes_mut(&mut self, policy: AccessPolicy) -> Result<&mut [u8], AccessError> {
        // SAFETY: the memory is handed on as initialised bytes, so that only such can be written.
        let memory = unsafe { self.controller.memory_mut(policy)? };
        let memory = &mut memory[..self.len];
        // SAFETY: as in `bytes`; the exclusive borrow of the controller is exclusive of its memory.
        Ok(unsafe { core::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), memory.len()) })
    }
}

impl Bytes {
    /// The first `len` bytes of an allocation, which is freed with them. They are written in place as long as nobody shares them.
    ///
    /// ```
    /// use kiln_tensor::{AccessError, AccessPolicy, AllocationController, Bytes};
    /// use std::mem::MaybeUninit;
    ///
    /// struct Block([MaybeUninit<u8>; 4]);
    ///
    /// impl AllocationController for Block {
    ///     fn alloc_align(&self) -> usize {
    ///         1
    ///     }
    ///     fn memory(&self, _: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
    ///         Ok(&self.0)
    ///     }
    ///     unsafe fn memory_mut(&mut self, _: AccessPolicy) -> Result<&mut [MaybeUninit<u8>], AccessError> {
    ///         Ok(&mut self.0)
    ///     }
    /// }
    ///
    /// let block = Block([MaybeUninit::new(7), MaybeUninit::new(8), MaybeUninit::uninit(), MaybeUninit::uninit()]);
    /// // SAFETY: the first two bytes are initialised.
    /// let mut bytes = unsafe { Bytes::from_controller(Box::new(block), 2) };
    /// bytes[1] = 9;
    /// assert_eq!(&bytes[..], [7, 9]);
    /// ```
    ///
    /// # Safety
    /// The first `len` bytes of the controller's memory are initialised.
    ///
    /// # Panics
    /// When the memory is shorter, at the first access.
    pub unsafe fn from_controller(controller: Box<dyn AllocationController>, len: usize) -> Self {
        Self::controlled(Controlled { controller, len })
    }
}
