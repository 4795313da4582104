//! Worker threads that make batches ahead of the one who asks for them.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::feed::Feed;
use super::source::{Made, Source};
use super::{DataLoaderIterator, DatasetError, Progress};

/// Threads that live as long as their loader and make the batches of whichever epochs are being iterated over.
pub(super) struct Workers<I, O> {
    shared: Arc<Shared<I, O>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<I, O> {
    source: Source<I, O>,
    state: Mutex<State<I, O>>,
    /// There may be something to make.
    work: Condvar,
    /// Something was made.
    ready: Condvar,
}

struct State<I, O> {
    /// The epochs that someone iterates over, oldest first.
    epochs: Vec<Epoch<I, O>>,
    next_id: u64,
    closed: bool,
}

struct Epoch<I, O> {
    id: u64,
    feed: Arc<Feed<I>>,
    /// The number of workers that are making something for this epoch.
    running: usize,
    /// What was made and not fetched yet, by position.
    made: BTreeMap<usize, Vec<Made<O>>>,
    /// The position that is fetched next.
    next: usize,
    /// Whether the feed has nothing more.
    exhausted: bool,
    /// The panic of a dataset or a batcher.
    panic: Option<Box<dyn Any + Send>>,
}

impl<I, O> State<I, O> {
    fn epoch(&mut self, id: u64) -> Option<&mut Epoch<I, O>> {
        self.epochs.iter_mut().find(|epoch| epoch.id == id)
    }

    /// Finds an epoch that is less than `ahead` batches ahead of its reader, and books one more in it.
    fn book(&mut self, ahead: usize) -> Option<(u64, Arc<Feed<I>>)> {
        let wanted = |epoch: &&mut Epoch<I, O>| !epoch.exhausted && epoch.running + epoch.made.len() < ahead;
        let epoch = self.epochs.iter_mut().find(wanted)?;
        epoch.running += 1;
        Some((epoch.id, Arc::clone(&epoch.feed)))
    }
}

impl<I, O> Shared<I, O> {
    fn lock(&self) -> MutexGuard<'_, State<I, O>> {
        // Nothing panics while the state is locked, so it is whole whatever happened elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a worker.
    fn serve(&self, ahead: usize) {
        while let Some((id, feed)) = self.wait_for_work(ahead) {
            // A panic of the user's dataset or batcher is handed to the one who asks for the batch.
            let result = catch_unwind(AssertUnwindSafe(|| feed.take().map(|taken| (taken.position, self.make(taken)))));
            drop(feed);
            let leftover = self.put(id, result);
            self.ready.notify_all();
            drop(leftover);
        }
    }

    /// Books something to make; `None` when the loader is gone.
    fn wait_for_work(&self, ahead: usize) -> Option<(u64, Arc<Feed<I>>)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(booked) = state.book(ahead) {
                return Some(booked);
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn make(&self, taken: super::feed::Taken<I>) -> Vec<Made<O>> {
        let mut made = self.source.make(taken);
        // Tensor operations only record; they are carried out here, on the worker, not where the batch is used.
        if let Err(error) = self.source.device().flush()
            && let Some(last) = made.last_mut()
        {
            last.batch = Err(DatasetError::new(error));
        }
        made
    }

    /// Hands in what was made; gives it back if nobody iterates over its epoch any more, to be dropped without the lock.
    fn put(&self, id: u64, result: thread::Result<Option<(usize, Vec<Made<O>>)>>) -> Option<Vec<Made<O>>> {
        let mut state = self.lock();
        let Some(epoch) = state.epoch(id) else {
            return result.ok().flatten().map(|(_, made)| made);
        };
        epoch.running -= 1;
        match result {
            Ok(Some((position, made))) => drop(epoch.made.insert(position, made)),
            Ok(None) => epoch.exhausted = true,
            Err(panic) => {
                epoch.exhausted = true;
                epoch.panic = Some(panic);
            }
        }
        None
    }

    /// Waits for the next thing made for an epoch; `None` when the epoch is over.
    fn fetch(&self, id: u64) -> Option<Vec<Made<O>>> {
        let mut state = self.lock();
        loop {
            let epoch = state.epoch(id).expect("an epoch is there as long as its iterator");
            if let Some(panic) = epoch.panic.take() {
                drop(state);
                resume_unwind(panic);
            }
            if let Some(made) = epoch.made.remove(&epoch.next) {
                epoch.next += 1;
                drop(state);
                self.work.notify_one();
                return Some(made);
            }
            if epoch.exhausted && epoch.running == 0 {
                return None;
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<I, O> Workers<I, O>
where
    I: Send + Sync + 'static,
    O: Send + 'static,
{
    /// Starts `count` workers.
    ///
    /// # Panics
    ///
    /// If the system gives no thread at all.
    pub(super) fn start(source: Source<I, O>, count: usize) -> Self {
        let state = Mutex::new(State { epochs: Vec::new(), next_id: 0, closed: false });
        let shared = Arc::new(Shared { source, state, work: Condvar::new(), ready: Condvar::new() });
        // Each worker may be one batch ahead of the one it is making.
        let ahead = 2 * count;
        let start = |number: usize| {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("data-loader-{number}"));
            thread.spawn(move || shared.serve(ahead))
        };
        let threads: Vec<_> = (0..count).map_while(|number| start(number).ok()).collect();
        assert!(!threads.is_empty(), "data loader: the system gives no thread");
        Self { shared, threads }
    }

    /// Begins an epoch.
    pub(super) fn iter(&self) -> WorkersIterator<'_, I, O> {
        let feed = Arc::new(self.shared.source.feed());
        let mut state = self.shared.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.epochs.push(Epoch { id, feed, running: 0, made: BTreeMap::new(), next: 0, exhausted: false, panic: None });
        drop(state);
        self.shared.work.notify_all();
        WorkersIterator { shared: &self.shared, id, made: VecDeque::new(), progress: self.shared.source.progress() }
    }
}

impl<I, O> Drop for Workers<I, O> {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A worker catches what it runs, so it ends without a panic.
            let _ = thread.join();
        }
    }
}

/// Iterates over the batches of one epoch, in order.
pub(super) struct WorkersIterator<'a, I, O> {
    shared: &'a Shared<I, O>,
    id: u64,
    /// Batches that were made together with one that was yielded.
    made: VecDeque<Made<O>>,
    progress: Progress,
}

impl<I, O> Iterator for WorkersIterator<'_, I, O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(Made { items, batch }) = self.made.pop_front() {
                self.progress.advance(items);
                return Some(batch);
            }
            self.made = self.shared.fetch(self.id)?.into();
        }
    }
}

impl<I, O> DataLoaderIterator<O> for WorkersIterator<'_, I, O> {
    fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

impl<I, O> Drop for WorkersIterator<'_, I, O> {
    /// Forgets the epoch: what is being made for it is dropped when it is done.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let place = state.epochs.iter().position(|epoch| epoch.id == self.id);
        let epoch = place.map(|place| state.epochs.remove(place));
        drop(state);
        drop(epoch);
    }
}
