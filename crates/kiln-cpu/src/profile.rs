//! Times of single launches: with `KILN_LOG=profile` every program prints a table of its launches now and then.
use std::eprintln;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use kiln_ir::{Kernel, Program};

/// Runs of a program after which its table is printed and begun anew.
const RUNS: u32 = 20;

/// Times of one program's launches.
pub(crate) struct Profile {
    labels: Vec<String>,
    times: Mutex<(Vec<Duration>, u32)>,
}

/// A run that is being timed.
pub(crate) struct Timing<'a> {
    of: &'a Profile,
    times: Vec<Duration>,
    since: Instant,
}

impl Profile {
    /// A profile of a program, if `KILN_LOG` contains `profile`.
    pub fn of(program: &Program) -> Option<Self> {
        static WANTED: OnceLock<bool> = OnceLock::new();
        let wanted = *WANTED.get_or_init(|| std::env::var("KILN_LOG").is_ok_and(|v| v.split(',').any(|w| w == "profile")));
        wanted.then(|| Profile::new(program))
    }

    fn new(program: &Program) -> Self {
        let labels: Vec<_> = program.launches.iter().filter(|launch| !launch.kernels.is_empty()).map(|launch| label(&launch.kernels)).collect();
        Profile { times: Mutex::new((alloc::vec![Duration::ZERO; labels.len()], 0)), labels }
    }

    /// Begins a run.
    pub fn begin(&self) -> Timing<'_> {
        Timing { of: self, times: Vec::with_capacity(self.labels.len()), since: Instant::now() }
    }

    /// The table, most expensive launch first.
    fn table(&self, times: &[Duration], runs: u32) -> String {
        let mut rows: Vec<_> = self.labels.iter().zip(times).collect();
        rows.sort_by_key(|row| core::cmp::Reverse(row.1));
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / runs as f64;
        let mut text = format!("kiln: {:.1} us a run on the CPU, mean of {runs} runs\n", micros(times.iter().sum()));
        for (label, time) in rows {
            text += &format!("{:9.1} us  {label}\n", micros(*time));
        }
        text
    }
}

impl Timing<'_> {
    /// After a launch.
    pub fn after(&mut self) {
        let now = Instant::now();
        self.times.push(now - self.since);
        self.since = now;
    }
}

impl Drop for Timing<'_> {
    fn drop(&mut self) {
        let mut all = self.of.times.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.iter_mut().zip(&self.times).for_each(|(sum, time)| *sum += *time);
        all.1 += 1;
        if all.1 == RUNS {
            eprintln!("{}", self.of.table(&all.0, RUNS));
            all.0.fill(Duration::ZERO);
            all.1 = 0;
        }
    }
}

/// What a launch does, in few words.
fn label(kernels: &[Kernel]) -> String {
    let words: Vec<String> = kernels.iter().take(4).map(kernel).collect();
    let more = if kernels.len() > 4 { format!(" and {} more", kernels.len() - 4) } else { String::new() };
    words.join(" | ") + &more
}

fn kernel(kernel: &Kernel) -> String {
    match kernel {
        Kernel::Fused(k) => format!("fused {:?} keeps {}, {} values", &k.dims[..], k.kept, k.expr.values.len()),
        Kernel::Dot(k) => {
            let made = [&k.lhs, &k.rhs].map(|side| side.prologue.as_ref().map_or(0, |e| e.values.len()));
            format!("dot {:?} {}x{}x{}, prologues of {made:?}, epilogue of {} values", &k.batch[..], k.m, k.k, k.n, k.epilogue.values.len())
        }
        Kernel::Conv(k) => {
            format!("conv {:?} x {:?} w {:?} y {:?}, epilogue of {} values", k.mode, &k.x[..], &k.w[..], &k.y[..], k.epilogue.values.len())
        }
        Kernel::Attention(k) => format!("attention, heads {:?}, length {:?}", k.heads, k.length),
        Kernel::AttentionGrad(k) => format!("gradient of attention, heads {:?}, length {:?}", k.heads, k.length),
        Kernel::Pool(_) => "pool".into(),
        Kernel::Gather(_) => "gather".into(),
        Kernel::Scatter(_) => "scatter".into(),
        Kernel::Scan(_) => "scan".into(),
        Kernel::Sort(_) => "sort".into(),
        Kernel::Host(_) => "host".into(),
        Kernel::Copy { .. } => "copy".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_ir::BufId;

    #[test]
    fn the_dearest_launch_comes_first() {
        let copy = || Kernel::Copy { from: BufId(0), to: BufId(1) };
        let labels = [label(&[copy()]), label(&[copy(), copy(), copy(), copy(), copy(), copy()])];
        let profile = Profile { labels: labels.into(), times: Mutex::default() };
        let table = profile.table(&[Duration::from_micros(20), Duration::from_micros(40)], 2);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "kiln: 30.0 us a run on the CPU, mean of 2 runs");
        assert_eq!(lines[1].trim(), "20.0 us  copy | copy | copy | copy and 2 more");
        assert_eq!(lines[2].trim(), "10.0 us  copy");
    }
}
