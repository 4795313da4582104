//! What all handles of a device share.
use alloc::boxed::Box;
use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use kiln_ir::{MatmulPrecision, Runtime, RuntimeError};

use super::settings::SettingsState;
use crate::BoolStore;
use crate::lock::Mutex;
use crate::random::Seeds;
use crate::trace::{ProgramCache, TraceCell};

/// A device's runtime, programs, seeds and settings. Lives as long as the process.
pub(crate) struct DeviceState {
    pub kind: &'static str,
    pub index: usize,
    pub runtime: Arc<dyn Runtime>,
    /// Total memory in bytes, 0 if unknown.
    pub memory: u64,
    /// Whether graphs are executed by the interpreter instead of being compiled.
    pub interpret: bool,
    pub cache: Mutex<ProgramCache>,
    pub seeds: Mutex<Seeds>,
    pub settings: Mutex<SettingsState>,
    pub precision: Mutex<MatmulPrecision>,
    /// The store of booleans in the settings: 0 native, 1 `U8`, 2 `U32`.
    bool_store: AtomicU8,
    pub stats: Stats,
    /// Cells whose thread has ended.
    #[cfg(feature = "std")]
    pub free_cells: Mutex<Vec<&'static TraceCell>>,
    /// The one cell where there are no threads.
    #[cfg(not(feature = "std"))]
    pub only_cell: spin::Once<&'static TraceCell>,
    /// An error of a run that nobody asked for.
    error: Mutex<Option<RuntimeError>>,
}

impl DeviceState {
    /// A new device.
    pub fn leak(kind: &'static str, index: usize, runtime: Arc<dyn Runtime>, interpret: bool) -> &'static Self {
        #[cfg(feature = "std")]
        crate::config::prepare();
        Box::leak(Box::new(DeviceState {
            kind,
            index,
            memory: runtime.info().memory,
            runtime,
            interpret,
            cache: Mutex::new(ProgramCache::new()),
            seeds: Mutex::new(Seeds::new()),
            settings: Mutex::new(SettingsState::default()),
            precision: Mutex::new(MatmulPrecision::default()),
            bool_store: AtomicU8::new(0),
            stats: Stats::default(),
            #[cfg(feature = "std")]
            free_cells: Mutex::new(Vec::new()),
            #[cfg(not(feature = "std"))]
            only_cell: spin::Once::new(),
            error: Mutex::new(None),
        }))
    }

    /// How this device has its booleans when nothing else is said.
    pub fn bool_store(&self) -> BoolStore {
        match self.bool_store.load(Ordering::Relaxed) {
            1 => BoolStore::U8,
            2 => BoolStore::U32,
            _ => BoolStore::Native,
        }
    }

    /// Follows a change of the settings.
    pub fn set_bool_store(&self, store: BoolStore) {
        let number = match store {
            BoolStore::Native => 0,
            BoolStore::U8 => 1,
            BoolStore::U32 => 2,
        };
        self.bool_store.store(number, Ordering::Relaxed);
    }

    /// Keeps the first unreported error for the next sync.
    pub fn remember(&self, e: RuntimeError) {
        self.error.lock().get_or_insert(e);
    }

    /// Takes the unreported error.
    pub fn forget(&self) -> Option<RuntimeError> {
        self.error.lock().take()
    }
}

/// What traces on a device have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceStats {
    /// Traces run.
    pub runs: u64,
    /// Runs whose program was found in the cache.
    pub hits: u64,
    /// Programs compiled.
    pub compiles: u64,
    /// Programs in the cache.
    pub programs: usize,
}

/// Counters behind [`TraceStats`].
#[derive(Default)]
pub(crate) struct Stats {
    runs: AtomicU64,
    hits: AtomicU64,
    compiles: AtomicU64,
}

impl Stats {
    pub fn flush(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub fn compile(&self) {
        self.compiles.fetch_add(1, Ordering::Relaxed);
    }

    pub fn read(&self, programs: usize) -> TraceStats {
        TraceStats {
            runs: self.runs.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
            compiles: self.compiles.load(Ordering::Relaxed),
            programs,
        }
    }
}
