//! The kernel tables: which instruction sets exist, and which one this machine uses.

use super::lane::Plain;
use super::micro::{self, Indirect, Kernels, Scalar, Tile};
#[cfg(all(feature = "std", target_os = "linux", target_arch = "x86_64", not(miri)))]
use super::{amx, engine::Contraction, parallel::ParallelFor};
use super::{narrow, pack, region, skinny, window, winograd};

/// Emits a module with the kernels of one register type, compiled for `features`. With `panels` packed left operands have tiles of their own, whose steps are constants.
macro_rules! isa {
    ($name:ident, $label:literal, $(#[$feature:meta])? $v:ty, $e:ty, mr $mr:literal, registers $registers:literal, panels $panels:literal, rows [$($r:literal)*]) => {
        #[allow(unused_unsafe)]
        mod $name {
            use super::*;
            $(#[$feature])?
            unsafe fn tile<const R: usize, const C: usize, const P: bool>(t: &Tile<$e>) {
                // SAFETY: as the caller's; the features of the register are enabled here.
                unsafe { micro::tile::<$v, R, C, P, $mr>(t) }
            }
            $(#[$feature])?
            unsafe fn indirect<const R: usize, const C: usize>(t: &Indirect<$e>) {
                // SAFETY: as the caller's.
                unsafe { micro::indirect::<$v, R, C>(t) }
            }
            $(#[$feature])?
            unsafe fn pack_outer(job: &pack::Copy<$e>) {
                // SAFETY: as the caller's.
                unsafe { pack::outer::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn pack_inner(job: &pack::Copy<$e>) {
                // SAFETY: as the caller's.
                unsafe { pack::inner::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn window_outer(job: &window::Job<'_, $e>) {
                // SAFETY: as the caller's.
                unsafe { window::outer::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn window_inner(job: &window::Job<'_, $e>, image: isize) {
                // SAFETY: as the caller's.
                unsafe { window::inner::<$v>(job, image) }
            }
            $(#[$feature])?
            unsafe fn pad(job: &region::Pad<$e>) {
                // SAFETY: as the caller's.
                unsafe { region::pad::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn lines(job: &narrow::Lines<$e>) {
                // SAFETY: as the caller's.
                unsafe { narrow::lines::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn products(job: &narrow::Lines<$e>) {
                // SAFETY: as the caller's.
                unsafe { narrow::products::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn winograd_weights(job: &winograd::Weights<$e>) {
                // SAFETY: as the caller's.
                unsafe { winograd::weights::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn winograd_inputs(job: &winograd::Inputs<$e>) {
                // SAFETY: as the caller's.
                unsafe { winograd::inputs::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn winograd_results(job: &winograd::Results<$e>) -> bool {
                // SAFETY: as the caller's.
                unsafe { winograd::results::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn axpy(job: &skinny::Job<$e>) {
                // SAFETY: as the caller's.
                unsafe { skinny::axpy::<$v>(job) }
            }
            $(#[$feature])?
            unsafe fn dot(job: &skinny::Job<$e>) {
                // SAFETY: as the caller's.
                unsafe { skinny::dot::<$v>(job) }
            }
            // Wider tiles than the full one do not exist: their places repeat another kernel.
            const THIRD: usize = if $registers < 3 { 1 } else { 3 };
            const FOURTH: usize = if $registers < 4 { 1 } else { 4 };
            pub(super) static KERNELS: Kernels<$e> = Kernels {
                name: $label,
                mr: $mr,
                lanes: <$v as super::super::lane::Lane>::N,
                registers: $registers,
                table: &[$([
                    [tile::<$r, 1, false>, tile::<$r, 1, $panels>],
                    [tile::<$r, 2, false>, tile::<$r, 2, $panels>],
                    [tile::<$r, THIRD, false>, tile::<$r, THIRD, $panels>],
                    [tile::<$r, FOURTH, false>, tile::<$r, FOURTH, $panels>],
                ]),*],
                indirect: &[$([
                    indirect::<$r, 1>,
                    indirect::<$r, 2>,
                    indirect::<$r, THIRD>,
                    indirect::<$r, FOURTH>,
                ]),*],
                pack_outer,
                pack_inner,
                window_outer,
                window_inner,
                pad,
                lines,
                products,
                winograd_weights,
                winograd_inputs,
                winograd_results,
                axpy,
                dot,
            };
        }
    };
}

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{__m256, __m256d, __m512, __m512d};

#[cfg(target_arch = "x86_64")]
isa!(f32_avx512, "avx512", #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")] __m512, f32, mr 6, registers 4, panels true,
    rows [1 2 3 4 5 6]);
#[cfg(target_arch = "x86_64")]
isa!(f64_avx512, "avx512", #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")] __m512d, f64, mr 6, registers 4, panels true,
    rows [1 2 3 4 5 6]);
#[cfg(target_arch = "x86_64")]
isa!(f32_avx2, "avx2", #[target_feature(enable = "avx2,fma,f16c")] __m256, f32, mr 6, registers 2, panels true, rows [1 2 3 4 5 6]);
#[cfg(target_arch = "x86_64")]
isa!(f64_avx2, "avx2", #[target_feature(enable = "avx2,fma,f16c")] __m256d, f64, mr 6, registers 2, panels true, rows [1 2 3 4 5 6]);

#[cfg(target_arch = "aarch64")]
use core::arch::aarch64::{float32x4_t, float64x2_t};
#[cfg(target_arch = "aarch64")]
isa!(f32_neon, "neon", float32x4_t, f32, mr 8, registers 3, panels true, rows [1 2 3 4 5 6 7 8]);
#[cfg(target_arch = "aarch64")]
isa!(f64_neon, "neon", float64x2_t, f64, mr 8, registers 3, panels true, rows [1 2 3 4 5 6 7 8]);

isa!(f32_plain, "plain", Plain<f32, 4>, f32, mr 4, registers 2, panels false, rows [1 2 3 4]);
isa!(f64_plain, "plain", Plain<f64, 2>, f64, mr 4, registers 2, panels false, rows [1 2 3 4]);
isa!(i64_plain, "plain", Plain<i64, 2>, i64, mr 4, registers 2, panels false, rows [1 2 3 4]);

/// True if this machine has the features the AVX-512 kernels are compiled for.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx512() -> bool {
    #[cfg(feature = "std")]
    {
        std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512dq")
            && has_avx2()
    }
    #[cfg(not(feature = "std"))]
    {
        cfg!(all(target_feature = "avx512f", target_feature = "avx512vl", target_feature = "avx512bw", target_feature = "avx512dq")) && has_avx2()
    }
}

/// True if this machine has the features the AVX2 kernels are compiled for.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    #[cfg(feature = "std")]
    {
        std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") && std::is_x86_feature_detected!("f16c")
    }
    #[cfg(not(feature = "std"))]
    {
        cfg!(all(target_feature = "avx2", target_feature = "fma", target_feature = "f16c"))
    }
}

/// A cap on the instruction set, for tests of the narrower kernels and for benches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isa {
    /// Whatever the machine has.
    Best,
    /// At most 512-bit registers: no unit for products of matrices.
    Avx512,
    /// At most 256-bit registers.
    Avx2,
    /// Arrays only.
    Plain,
}

#[cfg(feature = "std")]
std::thread_local! {
    static CAP: core::cell::Cell<u8> = const { core::cell::Cell::new(Isa::Best as u8) };
}

/// Caps the instruction set of every contraction that this thread starts from now on.
#[cfg(feature = "std")]
pub fn cap_isa(isa: Isa) {
    CAP.with(|cap| cap.set(isa as u8));
}

/// The cap of this thread.
fn cap() -> u8 {
    #[cfg(feature = "std")]
    {
        CAP.try_with(core::cell::Cell::get).unwrap_or(Isa::Best as u8)
    }
    #[cfg(not(feature = "std"))]
    {
        Isa::Best as u8
    }
}

/// Chooses among the kernel tables of one element type.
macro_rules! choose {
    ($t:ty, $avx512:ident, $avx2:ident, $neon:ident, $plain:ident $(, $more:item)*) => {
        #[allow(private_interfaces)]
        impl Scalar for $t {
            fn kernels() -> &'static Kernels<Self> {
                let cap = cap();
                #[cfg(target_arch = "x86_64")]
                {
                    if cap <= Isa::Avx512 as u8 && has_avx512() {
                        return &$avx512::KERNELS;
                    }
                    if cap <= Isa::Avx2 as u8 && has_avx2() {
                        return &$avx2::KERNELS;
                    }
                }
                #[cfg(target_arch = "aarch64")]
                if cap <= Isa::Avx2 as u8 {
                    return &$neon::KERNELS;
                }
                let _ = cap;
                &$plain::KERNELS
            }
            $($more)*
        }
    };
}
choose!(
    f32,
    f32_avx512,
    f32_avx2,
    f32_neon,
    f32_plain,
    #[cfg(all(feature = "std", target_os = "linux", target_arch = "x86_64", not(miri)))]
    unsafe fn on_matrix_unit(job: &Contraction<'_, f32>, pool: &dyn ParallelFor) -> bool {
        // SAFETY: as the caller's.
        cap() == Isa::Best as u8 && unsafe { amx::run(job, pool) }
    }
);
choose!(f64, f64_avx512, f64_avx2, f64_neon, f64_plain);

// Integers of every width are widened to 64 bits.
#[allow(private_interfaces)]
impl Scalar for i64 {
    fn kernels() -> &'static Kernels<Self> {
        &i64_plain::KERNELS
    }
}

/// Name of the instruction set that contractions of `E` use now.
pub fn isa_name<E: Scalar>() -> &'static str {
    E::kernels().name
}
