//! Values that decoding keeps from one step to the next.

use kiln_tensor::Tensor;

/// The result of a layer so far, for decoding one position after another.
#[derive(Clone, Debug, Default)]
pub struct TensorCache<const D: usize> {
    value: Option<Tensor<D>>,
}

impl<const D: usize> TensorCache<D> {
    /// A cache without a value.
    #[must_use]
    pub fn empty() -> Self {
        Self { value: None }
    }

    /// The length of the value along `dim`; zero without one.
    pub(crate) fn len(&self, dim: usize) -> usize {
        self.value.as_ref().map_or(0, |value| value.dims()[dim])
    }

    /// Appends `new` along `dim` and returns everything so far.
    pub(crate) fn append(&mut self, new: Tensor<D>, dim: usize) -> Tensor<D> {
        let value = match self.value.take() {
            Some(value) => Tensor::cat(alloc::vec![value, new], dim),
            None => new,
        };
        self.value = Some(value.clone());
        value
    }

    /// Maps the positions of `x`, `[batch, length, ..]`, that are not known yet, and returns the results of all.
    #[track_caller]
    pub(crate) fn extend(&mut self, x: Tensor<D>, map: impl FnOnce(Tensor<D>) -> Tensor<D>) -> Tensor<D> {
        let (known, length) = (self.len(1), x.dims()[1]);
        assert!(known <= length, "cache: it knows {known} positions, the input has {length}");
        self.append(map(x.narrow(1, known, length - known)), 1)
    }

    /// The value, made once.
    pub(crate) fn get_or_insert_with(&mut self, make: impl FnOnce() -> Tensor<D>) -> Tensor<D> {
        self.value.get_or_insert_with(make).clone()
    }
}
