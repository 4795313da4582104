//! Data loaders: every epoch is whole, in the order that the seed says, whatever the number of workers.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use kiln_data::dataloader::batcher::Batcher;
use kiln_data::dataloader::split::split_dataloader;
use kiln_data::dataloader::{BatchDataLoader, BatchStrategy, DataLoader, DataLoaderBuilder, FixBatchStrategy, MultiThreadDataLoader, Progress};
use kiln_data::dataset::transform::iota;
use kiln_data::dataset::{Dataset, DatasetError, InMemDataset};
use kiln_tensor::{Device, Tensor};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::check_panics;

type Loader = Arc<dyn DataLoader<Vec<usize>>>;

/// A batch is the list of its items.
struct List;

impl Batcher<usize, Vec<usize>> for List {
    fn batch(&self, items: Vec<usize>, _device: &Device) -> Vec<usize> {
        items
    }
}

fn builder() -> DataLoaderBuilder<usize, Vec<usize>> {
    DataLoaderBuilder::new(List)
}

fn numbers(count: usize) -> InMemDataset<usize> {
    InMemDataset::new(iota(count))
}

fn epoch(loader: &Loader) -> Vec<Vec<usize>> {
    loader.iter().map(|batch| batch.expect("readable")).collect()
}

fn sorted(batches: Vec<Vec<usize>>) -> Vec<usize> {
    let mut items = batches.concat();
    items.sort_unstable();
    items
}

#[test]
fn batches_come_in_order_with_the_incomplete_one_last() {
    for workers in [0, 1, 4] {
        let loader = builder().batch_size(4).num_workers(workers).build(numbers(10));
        assert_eq!(loader.num_items(), 10);
        assert_eq!(epoch(&loader), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
        let even = builder().batch_size(5).num_workers(workers).build(numbers(10));
        let mut iterator = even.iter();
        assert_eq!(iterator.by_ref().count(), 2);
        assert!(iterator.next().is_none(), "an iterator that is over stays over");
        let empty = builder().batch_size(5).num_workers(workers).build(numbers(0));
        assert!(empty.iter().next().is_none());
        let single = builder().num_workers(workers).build(numbers(2));
        assert_eq!(epoch(&single), [[0], [1]]);
    }
}

#[test]
fn epochs_are_whole_and_shuffled_anew_alike_for_any_number_of_workers() {
    let epochs = |workers| {
        let loader = builder().batch_size(5).shuffle(42).num_workers(workers).build(numbers(27));
        [(); 3].map(|()| epoch(&loader))
    };
    let expected = epochs(0);
    for batches in &expected {
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5, 5, 5, 2]);
        assert_eq!(sorted(batches.clone()), iota(27));
    }
    assert_ne!(expected[0], expected[1]);
    assert_ne!(expected[1], expected[2]);
    assert_eq!(epochs(1), expected);
    assert_eq!(epochs(4), expected);
    let other = builder().batch_size(5).shuffle(43).build(numbers(27));
    assert_ne!(epoch(&other), expected[0]);
}

#[test]
fn dropping_an_iterator_early_leaves_the_next_epoch_whole() {
    let loader = builder().batch_size(5).shuffle(1).num_workers(4).build(numbers(27));
    for taken in [0, 1, 3] {
        let mut iterator = loader.iter();
        iterator.by_ref().take(taken).for_each(|batch| drop(batch.expect("readable")));
        drop(iterator);
        assert_eq!(sorted(epoch(&loader)), iota(27));
    }
}

#[test]
fn iterators_of_one_loader_do_not_disturb_each_other() {
    for workers in [0, 2] {
        let loader = builder().batch_size(2).num_workers(workers).build(numbers(40));
        let (mut first, mut second) = (loader.iter(), loader.iter());
        let mut items = [Vec::new(), Vec::new()];
        while let (Some(a), Some(b)) = (first.next(), second.next()) {
            items[0].extend(a.expect("readable"));
            items[1].extend(b.expect("readable"));
        }
        assert_eq!(items, [iota(40), iota(40)]);
    }
}

#[test]
fn progress_never_exceeds_the_total() {
    for workers in [0, 3] {
        let loader = builder().batch_size(4).num_workers(workers).build(numbers(10));
        let mut iterator = loader.iter();
        let mut done = vec![iterator.progress().items_processed];
        while iterator.next().is_some() {
            done.push(iterator.progress().items_processed);
        }
        assert_eq!(done, [0, 4, 8, 10]);
        assert!(iterator.progress().is_completed());
        assert_eq!(iterator.progress().items_total, 10);
    }
    assert!(!Progress::new(1, 2, None).is_completed());
    assert!(Progress::new(0, 0, None).is_completed());
}

/// Remembers the threads that it worked on.
struct Threads(Arc<Mutex<HashSet<ThreadId>>>);

impl Batcher<usize, usize> for Threads {
    fn batch(&self, items: Vec<usize>, _device: &Device) -> usize {
        self.0.lock().unwrap().insert(std::thread::current().id());
        items.len()
    }
}

#[test]
fn workers_live_as_long_as_their_loader() {
    let threads = Arc::new(Mutex::new(HashSet::new()));
    let loader = DataLoaderBuilder::new(Threads(Arc::clone(&threads))).batch_size(3).num_workers(2).build(numbers(99));
    for _ in 0..20 {
        assert_eq!(loader.iter().count(), 33);
    }
    let used = threads.lock().unwrap().len();
    assert!((1..=2).contains(&used), "20 epochs ran on {used} threads");
    assert!(!threads.lock().unwrap().contains(&std::thread::current().id()));
    // Two references are left: one here, one in the batcher. Dropping the loader joins its threads, so the batcher is gone at once.
    drop(loader);
    assert_eq!(Arc::strong_count(&threads), 1);
}

/// Counts how many of its values are alive.
#[derive(Clone, Debug)]
struct Counted(Arc<()>);

struct Count(Arc<()>);

impl Batcher<usize, Counted> for Count {
    fn batch(&self, _items: Vec<usize>, _device: &Device) -> Counted {
        Counted(Arc::clone(&self.0))
    }
}

#[test]
fn workers_are_only_a_few_batches_ahead() {
    let alive = Arc::new(());
    let loader = DataLoaderBuilder::new(Count(Arc::clone(&alive))).num_workers(2).build(numbers(1_000));
    let mut iterator = loader.iter();
    for batch in iterator.by_ref().take(500) {
        let batch = batch.expect("readable");
        // The test's own, the batcher's, the batch in hand and those made ahead.
        assert!(Arc::strong_count(&batch.0) <= 3 + 2 * 2);
    }
    drop(iterator);
    drop(loader);
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// Cannot read item 4, and panics at item 8.
struct Broken(usize);

impl Dataset<usize> for Broken {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        assert_ne!(index, 8, "item 8 is a mistake");
        match index {
            4 => Err(DatasetError::new(std::io::Error::other("bad sector"))),
            _ => Ok(index),
        }
    }

    fn len(&self) -> usize {
        self.0
    }
}

#[test]
fn an_unreadable_item_costs_its_batch_and_no_more() {
    for workers in [0, 3] {
        let loader = builder().batch_size(3).num_workers(workers).build(Broken(8));
        let mut iterator = loader.iter();
        let batches: Vec<_> = iterator.by_ref().collect();
        assert_eq!(batches[0].as_ref().expect("readable"), &[0, 1, 2]);
        assert_eq!(batches[1].as_ref().expect_err("item 4").to_string(), "bad sector");
        assert_eq!(batches[2].as_ref().expect("readable"), &[6, 7]);
        assert_eq!(batches.len(), 3);
        assert!(iterator.progress().is_completed());
    }
}

#[test]
fn a_panic_of_a_worker_reaches_the_reader_and_the_loader_goes_on() {
    for workers in [0, 2] {
        let loader = builder().batch_size(3).num_workers(workers).build(Broken(9));
        for _ in 0..2 {
            let read = std::panic::AssertUnwindSafe(|| assert_eq!(loader.iter().count(), 3));
            check_panics(read, "item 8 is a mistake");
        }
    }
}

/// A batch ends with an item that is a multiple of five.
#[derive(Default)]
struct ToFive(Vec<usize>);

impl BatchStrategy<usize> for ToFive {
    fn add(&mut self, item: usize) {
        self.0.push(item);
    }

    fn batch(&mut self, force: bool) -> Option<Vec<usize>> {
        let full = self.0.last().is_some_and(|item| item % 5 == 0);
        ((full || force) && !self.0.is_empty()).then(|| std::mem::take(&mut self.0))
    }

    fn clone_dyn(&self) -> Box<dyn BatchStrategy<usize>> {
        Box::new(Self::default())
    }

    fn batch_size(&self) -> Option<usize> {
        None
    }
}

#[test]
fn batches_may_depend_on_their_items() {
    let dataset: Arc<dyn Dataset<usize>> = Arc::new(numbers(13));
    let rng = || Some(StdRng::seed_from_u64(3));
    let single = |rng| BatchDataLoader::new(Box::new(ToFive::default()), Arc::clone(&dataset), Arc::new(List), Device::default(), rng);
    let multi = |rng| MultiThreadDataLoader::new(Box::new(ToFive::default()), Arc::clone(&dataset), Arc::new(List), 3, Device::default(), rng);
    let plain: [Loader; 2] = [Arc::new(single(None)), Arc::new(multi(None))];
    for loader in &plain {
        let expected = [vec![0], vec![1, 2, 3, 4, 5], vec![6, 7, 8, 9, 10], vec![11, 12]];
        assert_eq!(epoch(loader), expected);
        let mut iterator = loader.iter();
        iterator.by_ref().for_each(drop);
        assert!(iterator.progress().is_completed());
    }
    let (single, multi): (Loader, Loader) = (Arc::new(single(rng())), Arc::new(multi(rng())));
    assert_eq!(epoch(&single), epoch(&multi));
    assert_eq!(epoch(&single), epoch(&multi));
    let broken: Arc<dyn Dataset<usize>> = Arc::new(Broken(8));
    let loader = BatchDataLoader::new(Box::new(ToFive::default()), broken, Arc::new(List), Device::default(), None);
    let batches: Vec<_> = loader.iter().map(|batch| batch.ok()).collect();
    assert_eq!(batches, [Some(vec![0]), None, Some(vec![1, 2, 3, 5]), Some(vec![6, 7])]);
}

#[test]
fn a_copy_of_a_shuffled_loader_goes_on_alike() {
    let dataset: Arc<dyn Dataset<usize>> = Arc::new(numbers(30));
    let rng = Some(StdRng::seed_from_u64(3));
    let loader = BatchDataLoader::new(Box::new(FixBatchStrategy::new(4)), dataset, Arc::new(List), Device::default(), rng);
    loader.iter().for_each(drop);
    let copy: Loader = Arc::new(loader.clone());
    let loader: Loader = Arc::new(loader);
    assert_eq!(epoch(&loader), epoch(&copy));
}

#[test]
fn slices_and_splits_hold_every_item_once() {
    for workers in [0, 2] {
        let loader = builder().batch_size(4).num_workers(workers).build(numbers(10));
        assert_eq!(epoch(&loader.slice(3, 9)), [vec![3, 4, 5, 6], vec![7, 8]]);
        assert_eq!(loader.slice(3, 9).num_items(), 6);
        assert_eq!(epoch(&loader.to_device(&Device::default())), epoch(&loader));
        let parts = split_dataloader(Arc::clone(&loader), &[Device::default(), Device::default(), Device::default()]);
        assert_eq!(parts.iter().map(|part| part.num_items()).collect::<Vec<_>>(), [4, 3, 3]);
        assert_eq!(parts.iter().flat_map(epoch).flatten().collect::<Vec<_>>(), iota(10));
        assert!(split_dataloader(loader, &[]).is_empty());
        let shuffled = builder().batch_size(4).shuffle(9).num_workers(workers).build(numbers(20)).slice(5, 15);
        assert_eq!(sorted(epoch(&shuffled)), (5..15).collect::<Vec<_>>());
    }
}

#[test]
fn a_batch_of_no_items_is_refused() {
    check_panics(|| drop(builder().batch_size(0)), "batch strategy: batch size is zero");
}

/// A batch is a matrix with a row for each item, computed where the batcher runs.
struct Rows;

impl Batcher<usize, Tensor<2>> for Rows {
    fn batch(&self, items: Vec<usize>, device: &Device) -> Tensor<2> {
        let row = |item: usize| Tensor::<2>::from_data([[item as f32, 1.0]], device) * 2.0;
        Tensor::cat(items.into_iter().map(row).collect(), 0)
    }
}

#[test]
fn tensors_made_on_workers_are_used_on_the_reader() {
    for workers in [0, 3] {
        let loader = DataLoaderBuilder::new(Rows).batch_size(4).num_workers(workers).build(numbers(10));
        for _ in 0..2 {
            let mut sum = Tensor::<1>::zeros([1], &Device::default());
            let mut rows = 0;
            for batch in loader.iter() {
                let batch = batch.expect("readable");
                rows += batch.dims()[0];
                sum = sum + batch.sum();
            }
            // Twice the sum of 0..10, and twice a one for each row.
            assert_eq!(sum.into_data().try_to_vec::<f32>().expect("floats"), [110.0]);
            assert_eq!(rows, 10);
        }
    }
}
