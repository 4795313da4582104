//! Times of single kernels: with `KILN_LOG=profile` programs run without graphs, every work between two events, and a table is printed now and then.
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::null_mut;

use kiln_ir::RuntimeError;

use crate::device::Context;
use crate::driver::Handle;

/// Runs after which the table is printed and begun anew.
const RUNS: usize = 10;

/// Whether `KILN_LOG` contains `profile`.
pub fn is_wanted() -> bool {
    static WANTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *WANTED.get_or_init(|| std::env::var("KILN_LOG").is_ok_and(|v| v.split(',').any(|w| w == "profile")))
}

/// Times so far.
#[derive(Default)]
pub struct Profile {
    events: Vec<Handle>,
    labels: Vec<String>,
    /// What has run before: first runs load kernels and measure choices, and are not counted.
    seen: BTreeSet<String>,
    /// Total milliseconds and number by label.
    table: BTreeMap<String, (f64, usize)>,
    runs: usize,
}

// SAFETY: events may be used from any thread; the profile is used under the queue's lock.
unsafe impl Send for Profile {}

impl Profile {
    /// The next event, recorded now.
    fn mark(&mut self, context: &Context, n: usize) -> Result<(), RuntimeError> {
        let driver = context.driver;
        if n == self.events.len() {
            let mut event = null_mut();
            // SAFETY: the place is valid for the call.
            driver.check("cuEventCreate", unsafe { (driver.cuEventCreate)(&mut event, 0) })?;
            self.events.push(event);
        }
        // SAFETY: event and stream live as long as the process.
        driver.check("cuEventRecord", unsafe { (driver.cuEventRecord)(self.events[n], context.stream) })
    }

    /// Before the first work of a run.
    pub fn begin(&mut self, context: &Context) -> Result<(), RuntimeError> {
        self.labels.clear();
        self.mark(context, 0)
    }

    /// After a work.
    pub fn after(&mut self, context: &Context, label: String) -> Result<(), RuntimeError> {
        self.labels.push(label);
        self.mark(context, self.labels.len())
    }

    /// After the last work: waits, adds up, and prints when it is time.
    pub fn end(&mut self, context: &Context) -> Result<(), RuntimeError> {
        context.wait()?;
        let known = self.seen.clone();
        for (n, label) in self.labels.drain(..).enumerate() {
            if !known.contains(&label) {
                self.seen.insert(label);
                continue;
            }
            let mut ms = 0.0f32;
            // SAFETY: both events have happened.
            unsafe { (context.driver.cuEventElapsedTime)(&mut ms, self.events[n], self.events[n + 1]) };
            let row = self.table.entry(label).or_default();
            *row = (row.0 + ms as f64, row.1 + 1);
        }
        self.runs += 1;
        if self.runs == RUNS {
            let mut rows: Vec<_> = std::mem::take(&mut self.table).into_iter().collect();
            rows.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
            let total: f64 = rows.iter().map(|r| r.1.0).sum();
            eprintln!("kiln: {:.1} us a run on the GPU, mean of {RUNS} runs", total * 1e3 / RUNS as f64);
            for (label, (ms, count)) in rows {
                eprintln!("{:9.1} us {:4} x {:8.1} us  {label}", ms * 1e3 / RUNS as f64, count / RUNS, ms * 1e3 / count as f64);
            }
            self.runs = 0;
        }
        Ok(())
    }
}
