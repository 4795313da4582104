//! Measuring rules, the same as the peers': wait for a quiet machine, warm up, then sample and take the median.

use std::time::{Duration, Instant};

/// Ticks of the kernel's accounting in a second.
const TICKS: f64 = 100.0;

/// Runs workloads that pass the filter and prints a line for each.
pub struct Bench {
    filter: Vec<String>,
    list: bool,
    gate: f64,
    threads: usize,
}

/// What one run of a workload amounts to, for a rate.
#[derive(Clone, Copy)]
pub enum Work {
    /// Floating-point operations.
    Flops(f64),
    /// Bytes that must move.
    Bytes(f64),
    /// No rate is given.
    None,
}

impl Bench {
    /// Prefixes of the wanted workloads (none: all); with `list`, names are printed and nothing runs.
    pub fn new(filter: Vec<String>, list: bool) -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<f64>().ok());
        let threads = number("KILN_NUM_THREADS").or(number("RAYON_NUM_THREADS")).unwrap_or(2.0);
        Self { filter, list, gate: number("GATE").unwrap_or(4.0), threads: threads as usize }
    }

    /// Whether `workload` is to run; its inputs are made only then.
    pub fn wants(&self, workload: &str) -> bool {
        if self.list {
            println!("{workload}");
            return false;
        }
        self.filter.is_empty() || self.filter.iter().any(|prefix| workload.starts_with(prefix))
    }

    /// Times `f`, which runs the workload once and waits for its result; each sample is the mean of `inner` runs.
    pub fn run(&mut self, workload: &str, inner: usize, work: Work, mut f: impl FnMut()) {
        wait_for_quiet(self.gate);
        let start = Instant::now();
        f();
        let first = start.elapsed().as_secs_f64();
        let (start, mut runs) = (Instant::now(), 1);
        while runs < 2 || (start.elapsed().as_secs_f64() < 0.3 && runs < 1000) {
            f();
            runs += 1;
        }
        let before = Ticks::now();
        let start = Instant::now();
        let mut samples = Vec::new();
        loop {
            let sample = Instant::now();
            for _ in 0..inner {
                f();
            }
            samples.push(sample.elapsed().as_secs_f64() / inner as f64);
            let (n, total) = (samples.len(), start.elapsed().as_secs_f64());
            if (n >= 10 && total >= 1.5) || (n >= 3 && total >= 5.0) || n >= 2000 {
                break;
            }
        }
        let used = Ticks::now().since(&before);
        let foreign = used.foreign_share(start.elapsed());
        samples.sort_by(f64::total_cmp);
        let (n, median, min) = (samples.len(), samples[samples.len() / 2], samples[0]);
        let cpu = used.own / TICKS / (n * inner) as f64;
        let rate = match work {
            Work::Flops(flops) => format!(", \"gflops\": {:.2}", flops / median / 1e9),
            Work::Bytes(bytes) => format!(", \"gbytes\": {:.2}", bytes / median / 1e9),
            Work::None => String::new(),
        };
        println!(
            "{{\"framework\": \"kiln\", \"workload\": \"{workload}\", \"dtype\": \"f32\", \"median_s\": {median:e}, \"min_s\": {min:e}, \"n\": {n}, \
             \"extra\": {{\"first_s\": {first:e}, \"cpu_s\": {cpu:e}, \"foreign_cpu\": {foreign:.3}, \"threads\": {}{rate}}}}}",
            self.threads
        );
    }
}

impl Bench {
    /// Times `f`, which runs the workload once and says how long the part of interest and the whole took: the part is reported as the workload's time, with
    /// the median of the whole and the part's share of it. The first runs don't count.
    pub fn run_partly(&mut self, workload: &str, mut f: impl FnMut() -> (f64, f64)) {
        wait_for_quiet(self.gate);
        for _ in 0..5 {
            f();
        }
        let before = Ticks::now();
        let start = Instant::now();
        let mut samples = Vec::new();
        while samples.len() < 10 || (start.elapsed().as_secs_f64() < 2.0 && samples.len() < 2000) {
            samples.push(f());
        }
        let foreign = Ticks::now().since(&before).foreign_share(start.elapsed());
        let middle = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            (values[values.len() / 2], values[0])
        };
        let (median, min) = middle(samples.iter().map(|(part, _)| *part).collect());
        let (whole, _) = middle(samples.iter().map(|(_, whole)| *whole).collect());
        let (share, _) = middle(samples.iter().map(|(part, whole)| part / whole).collect());
        println!(
            "{{\"framework\": \"kiln\", \"workload\": \"{workload}\", \"dtype\": \"f32\", \"median_s\": {median:e}, \"min_s\": {min:e}, \"n\": {}, \
             \"extra\": {{\"whole_s\": {whole:e}, \"share\": {share:.4}, \"foreign_cpu\": {foreign:.3}, \"threads\": {}}}}}",
            samples.len(),
            self.threads
        );
    }
}

/// Busy ticks of the machine and of this process; zero where the system does not tell.
struct Ticks {
    all: f64,
    own: f64,
}

impl Ticks {
    fn now() -> Self {
        let numbers = |text: &str| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<f64>>();
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        // user, nice, system, idle, iowait, irq, softirq, steal
        let v = numbers(stat.lines().next().unwrap_or_default());
        let all = if v.len() >= 8 { v[0] + v[1] + v[2] + v[5] + v[6] + v[7] } else { 0.0 };
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // After the name in brackets and the state letter: the 11th and 12th numbers are user and system ticks.
        let v = numbers(stat.rsplit(')').next().unwrap_or_default());
        let own = if v.len() > 12 { v[10] + v[11] } else { 0.0 };
        Self { all, own }
    }

    fn since(&self, before: &Self) -> Self {
        Self { all: self.all - before.all, own: self.own - before.own }
    }

    /// The share of all cores that other processes used.
    fn foreign_share(&self, elapsed: Duration) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get()) as f64;
        ((self.all - self.own) / (cores * elapsed.as_secs_f64() * TICKS)).max(0.0)
    }
}

/// Waits until other processes leave the machine alone for a quarter second, at most `limit` seconds.
fn wait_for_quiet(limit: f64) {
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < limit {
        let (before, moment) = (Ticks::now(), Instant::now());
        std::thread::sleep(Duration::from_millis(250));
        if Ticks::now().since(&before).foreign_share(moment.elapsed()) < 0.10 {
            return;
        }
    }
}
