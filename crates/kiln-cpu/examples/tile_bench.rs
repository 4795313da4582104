//! Measures the thread pool, the allocator, the vector functions and the tile executor.
use std::time::{Duration, Instant};

use kiln_cpu::memory::Cache;
use kiln_cpu::pool::Pool;
use kiln_cpu::simd::Level;
use kiln_cpu::tile::elementwise::{Kind, select};

/// Median seconds of one call.
fn median(mut f: impl FnMut()) -> f64 {
    f();
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 7 || start.elapsed() < Duration::from_millis(300) {
        let begin = Instant::now();
        f();
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn pool() {
    let pool = Pool::global();
    let hot = median(|| (0..1000).for_each(|_| pool.run(pool.threads(), &|_| {}))) / 1000.0;
    println!("pool: {} threads, empty region {:.0} ns", pool.threads(), hot * 1e9);
}

fn memory() {
    let cache = Cache::global();
    let small = median(|| (0..1000).for_each(|_| drop(cache.allocate(1000).unwrap()))) / 1000.0;
    println!("memory: hot allocation and free {:.0} ns", small * 1e9);
    const BYTES: usize = 64 << 20;
    let touch = |bytes: &mut [u8]| bytes.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    let old = median(|| touch(cache.allocate(BYTES).unwrap().as_mut_slice()));
    let fresh = median(|| {
        touch(cache.allocate(BYTES).unwrap().as_mut_slice());
        cache.cleanup();
    });
    let system = median(|| touch(&mut vec![0; BYTES]));
    println!("memory: touch 64 MiB: cached {:.2} ms, fresh {:.2} ms, from the system allocator {:.2} ms", old * 1e3, fresh * 1e3, system * 1e3);
}

fn math() {
    use kiln_ir::Elementwise::*;
    const N: usize = 1024;
    let x: Vec<f32> = (0..N).map(|k| k as f32 / 200.0 - 2.5).collect();
    let mut out = vec![0f32; N];
    for &level in Level::available() {
        let mut line = format!("math: {:7} ns per 1024 elements:", level.name());
        for op in [Neg, Add, Mul, Max, Div, Sqrt, Recip, Exp, Log, Log1p, Tanh, Erf, Sin, Cos, Tan, Pow, Floor, Round, Atan] {
            let f = select(op, Kind::F32, 0, level).unwrap();
            // SAFETY: three arrays of N elements that do not overlap.
            let seconds =
                median(|| (0..100).for_each(|_| unsafe { f(out.as_mut_ptr().cast(), x.as_ptr().cast(), x.as_ptr().cast(), x.as_ptr().cast(), N) }));
            line += &format!(" {} {:.0}", op.name(), seconds * 1e7);
        }
        println!("{line}");
    }
    let f = select(Add, Kind::F32, 0, Level::detect()).unwrap();
    for n in [1, 4, 16, 17, 64] {
        // SAFETY: as above.
        let seconds =
            median(|| (0..1000).for_each(|_| unsafe { f(out.as_mut_ptr().cast(), x.as_ptr().cast(), x.as_ptr().cast(), x.as_ptr().cast(), n) }));
        println!("math: add of {n} elements {:.1} ns", seconds * 1e6);
    }
}

fn main() {
    pool();
    memory();
    math();
}
