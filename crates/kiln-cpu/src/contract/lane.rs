//! `Lane`, one SIMD register of one element type, and its portable form on arrays.
//!
//! Every kernel of the engine is written once over `Lane` and compiled inside a function that enables the target features
//! of the implementation, so its methods are `inline(always)` and never called elsewhere.

/// An element type that kernels add and multiply.
pub trait Element: Copy + Send + Sync + PartialEq + 'static {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Minus one.
    const MINUS: Self;
    /// One half; zero where there is none.
    const HALF: Self;
    /// `self * by + to`, fused where the hardware fuses it; wraps for integers.
    fn mul_add(self, by: Self, to: Self) -> Self;
    /// `self + other`; wraps for integers.
    fn plus(self, other: Self) -> Self;
    /// `self * other`; wraps for integers.
    fn times(self, other: Self) -> Self;
}

macro_rules! float_element {
    ($t:ty) => {
        impl Element for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const MINUS: Self = -1.0;
            const HALF: Self = 0.5;
            #[inline(always)]
            fn mul_add(self, by: Self, to: Self) -> Self {
                self * by + to
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }
        }
    };
}
float_element!(f32);
float_element!(f64);

macro_rules! int_element {
    ($($t:ty),*) => {$(
        impl Element for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const MINUS: Self = -1;
            const HALF: Self = 0;
            #[inline(always)]
            fn mul_add(self, by: Self, to: Self) -> Self {
                self.wrapping_mul(by).wrapping_add(to)
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )*};
}
int_element!(i64);

/// One register of `N` elements.
///
/// # Safety
/// The methods of a hardware implementation may only run where its target features are enabled. Pointers need no
/// alignment beyond the element's; a masked access touches only the elements whose mask bit is set.
pub(crate) trait Lane: Copy {
    /// Element type.
    type E: Element;
    /// Mask of `N` elements.
    type Mask: Copy;
    /// Elements in a register.
    const N: usize;

    unsafe fn zero() -> Self;
    unsafe fn splat(x: Self::E) -> Self;
    unsafe fn load(p: *const Self::E) -> Self;
    unsafe fn store(self, p: *mut Self::E);
    /// Bit `i` of `bits` enables element `i`.
    unsafe fn mask(bits: u32) -> Self::Mask;
    /// Disabled elements are zero.
    unsafe fn load_mask(p: *const Self::E, mask: Self::Mask) -> Self;
    unsafe fn store_mask(self, p: *mut Self::E, mask: Self::Mask);
    /// `self` where the mask is off, memory where it is on.
    unsafe fn merge(self, p: *const Self::E, mask: Self::Mask) -> Self;
    /// Like `merge`, with lane `i` at `p + i * step`; `bits` and `mask` are the same mask.
    #[inline(always)]
    unsafe fn merge_step(self, p: *const Self::E, step: isize, bits: u32, _mask: Self::Mask) -> Self {
        let mut lanes = [Self::E::ZERO; MAX_LANES];
        // SAFETY: enabled lanes are readable; the array holds a register.
        unsafe {
            self.store(lanes.as_mut_ptr());
            for (i, x) in lanes.iter_mut().enumerate().take(Self::N) {
                if bits >> i & 1 != 0 {
                    *x = p.wrapping_offset(i as isize * step).read();
                }
            }
            Self::load(lanes.as_ptr())
        }
    }
    unsafe fn add(self, other: Self) -> Self;
    /// `self * by + to`.
    unsafe fn fma(self, by: Self, to: Self) -> Self;
    /// Transposes `N` registers in place.
    unsafe fn transpose(rows: &mut [Self; MAX_LANES]);
    /// Asks for the cache line of `p`; any address is allowed.
    #[inline(always)]
    unsafe fn prefetch(_p: *const Self::E) {}
    /// Sum of the elements, in a fixed order.
    #[inline(always)]
    unsafe fn sum(self) -> Self::E {
        let mut parts = [Self::E::ZERO; MAX_LANES];
        // SAFETY: `parts` holds `MAX_LANES >= N` elements.
        unsafe { self.store(parts.as_mut_ptr()) };
        let mut width = Self::N;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                parts[i] = parts[i].plus(parts[i + width]);
            }
        }
        parts[0]
    }
}

/// The widest register of any implementation, in elements.
pub(crate) const MAX_LANES: usize = 16;

/// The bit mask of the first `n` elements.
#[inline(always)]
pub(crate) fn first_bits(n: usize) -> u32 {
    debug_assert!(n <= MAX_LANES);
    (1u32 << n) - 1
}

/// A register as an array: what the compiler makes of it is enough for WebAssembly and for integer products.
#[derive(Clone, Copy)]
pub(crate) struct Plain<E, const N: usize>([E; N]);

impl<E: Element, const N: usize> Lane for Plain<E, N> {
    type E = E;
    type Mask = u32;
    const N: usize = N;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Plain([E::ZERO; N])
    }
    #[inline(always)]
    unsafe fn splat(x: E) -> Self {
        Plain([x; N])
    }
    #[inline(always)]
    unsafe fn load(p: *const E) -> Self {
        // SAFETY: the caller gives `N` readable elements.
        Plain(unsafe { p.cast::<[E; N]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut E) {
        // SAFETY: the caller gives `N` writable elements.
        unsafe { p.cast::<[E; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn mask(bits: u32) -> u32 {
        bits
    }
    #[inline(always)]
    unsafe fn load_mask(p: *const E, mask: u32) -> Self {
        // SAFETY: as the caller's.
        unsafe { Self::zero().merge(p, mask) }
    }
    #[inline(always)]
    unsafe fn store_mask(self, p: *mut E, mask: u32) {
        if mask == first_bits(N) {
            // SAFETY: every element is enabled.
            return unsafe { self.store(p) };
        }
        for (i, x) in self.0.iter().enumerate() {
            if mask >> i & 1 != 0 {
                // SAFETY: the element is enabled.
                unsafe { p.add(i).write(*x) };
            }
        }
    }
    #[inline(always)]
    unsafe fn merge(mut self, p: *const E, mask: u32) -> Self {
        if mask == first_bits(N) {
            // SAFETY: every element is enabled.
            return unsafe { Self::load(p) };
        }
        for (i, x) in self.0.iter_mut().enumerate() {
            if mask >> i & 1 != 0 {
                // SAFETY: the element is enabled.
                *x = unsafe { p.wrapping_add(i).read() };
            }
        }
        self
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        let mut out = self.0;
        for (x, y) in out.iter_mut().zip(other.0) {
            *x = x.plus(y);
        }
        Plain(out)
    }
    #[inline(always)]
    unsafe fn fma(self, by: Self, to: Self) -> Self {
        let mut out = self.0;
        for ((x, y), z) in out.iter_mut().zip(by.0).zip(to.0) {
            *x = x.mul_add(y, z);
        }
        Plain(out)
    }
    #[inline(always)]
    unsafe fn transpose(rows: &mut [Self; MAX_LANES]) {
        for i in 0..N {
            for j in 0..i {
                let (x, y) = (rows[i].0[j], rows[j].0[i]);
                rows[i].0[j] = y;
                rows[j].0[i] = x;
            }
        }
    }
}
