//! Times of factorisations and Fourier transforms: run it with and without `--features faer,rustfft`.
//!
//! `cargo run --release -p kiln-tensor --features cpu,faer,rustfft --example host_bench`

#[cfg(all(feature = "cpu", feature = "linalg", feature = "signal"))]
fn main() {
    use kiln_tensor::linalg::{lu, qr, svd};
    use kiln_tensor::signal::rfft;
    use kiln_tensor::{DType, Device, Distribution, Tensor};
    use std::time::Instant;

    /// Milliseconds of the fastest of a few runs.
    fn milliseconds<R>(mut f: impl FnMut() -> R) -> f64 {
        let once = |f: &mut dyn FnMut() -> R| {
            let start = Instant::now();
            drop(f());
            start.elapsed().as_secs_f64() * 1e3
        };
        let first = once(&mut f);
        let runs = if first > 500.0 { 1 } else { (500.0 / first) as usize };
        (0..runs.min(20)).map(|_| once(&mut f)).fold(first, f64::min)
    }

    let device = Device::flex();
    println!("libraries: faer {}, rustfft {}", cfg!(feature = "faer"), cfg!(feature = "rustfft"));
    println!("f64 matrices, ms: size, lu, qr, svd, largest error of U S Vᵀ");
    for n in [8, 32, 128, 512, 1024] {
        let a = Tensor::<2>::random([n, n], Distribution::Normal(0.0, 1.0), (&device, DType::F64));
        a.to_data();
        let (lu_time, qr_time) = (milliseconds(|| lu::<2, 1>(a.clone()).2.into_data()), milliseconds(|| qr(a.clone(), true).1.into_data()));
        if n == 1024 && !cfg!(feature = "faer") {
            println!("{n:>6} {lu_time:>10.3} {qr_time:>10.3}");
            continue;
        }
        let svd_time = milliseconds(|| svd::<2, 1>(a.clone(), 30).1.into_data());
        let (u, s, vt) = svd::<2, 1>(a.clone(), 30);
        let error = ((u * s.unsqueeze()).matmul(vt) - a).abs().max().into_scalar::<f64>();
        println!("{n:>6} {lu_time:>10.3} {qr_time:>10.3} {svd_time:>10.3} {error:>10.1e}");
    }
    println!("f32 signals, µs a row: size, rfft");
    for n in [8, 64, 100, 127, 256, 1000, 1009, 1024, 4096, 65536] {
        let rows = (1 << 20) / n;
        let x = Tensor::<2>::random([rows, n], Distribution::Normal(0.0, 1.0), &device);
        x.to_data();
        let time = milliseconds(|| rfft(x.clone(), 1, None).0.into_data()) * 1e3 / rows as f64;
        println!("{n:>6} {time:>10.3}");
    }
}

#[cfg(not(all(feature = "cpu", feature = "linalg", feature = "signal")))]
fn main() {
    println!("needs the features cpu, linalg and signal");
}
