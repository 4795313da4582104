//! The mutex of this crate: the standard library's where there is one, a spin lock elsewhere.
use core::ops::{Deref, DerefMut};

/// A mutex that a panicking holder does not poison: what it guards is kept consistent by its users.
#[derive(Default)]
pub(crate) struct Mutex<T> {
    #[cfg(feature = "std")]
    inner: std::sync::Mutex<T>,
    #[cfg(not(feature = "std"))]
    inner: spin::Mutex<T>,
}

/// Access to what a [`Mutex`] guards, until it is dropped.
pub(crate) struct Guard<'a, T> {
    #[cfg(feature = "std")]
    inner: std::sync::MutexGuard<'a, T>,
    #[cfg(not(feature = "std"))]
    inner: spin::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        #[cfg(feature = "std")]
        let inner = std::sync::Mutex::new(value);
        #[cfg(not(feature = "std"))]
        let inner = spin::Mutex::new(value);
        Mutex { inner }
    }

    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        #[cfg(feature = "std")]
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        #[cfg(not(feature = "std"))]
        let inner = self.inner.lock();
        Guard { inner }
    }

    /// The value, through unique access.
    pub fn get_mut(&mut self) -> &mut T {
        #[cfg(feature = "std")]
        return self.inner.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        #[cfg(not(feature = "std"))]
        return self.inner.get_mut();
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
