//! Datasets made from other datasets.

use std::sync::Arc;

use kiln_data::dataset::transform::*;
use kiln_data::dataset::{Dataset, InMemDataset};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::check_panics;

fn numbers(count: usize) -> InMemDataset<usize> {
    InMemDataset::new(iota(count))
}

fn read<I>(dataset: &impl Dataset<I>) -> Vec<I> {
    dataset.iter().map(|item| item.expect("readable")).collect()
}

fn sorted(mut items: Vec<usize>) -> Vec<usize> {
    items.sort_unstable();
    items
}

#[test]
fn composed_chains_its_parts() {
    let parts = vec![numbers(2), numbers(0), numbers(3)];
    let composed = ComposedDataset::new(parts);
    assert_eq!(read(&composed), [0, 1, 0, 1, 2]);
    let read = move || drop(composed.get(5));
    check_panics(std::panic::AssertUnwindSafe(read), "index 5 out of range for a dataset of 5 items");
}

struct Double;

impl Mapper<usize, String> for Double {
    fn map(&self, item: &usize) -> String {
        (2 * item).to_string()
    }
}

#[test]
fn mapper_maps_when_read() {
    let mapped = MapperDataset::new(numbers(3), Double);
    assert_eq!(read(&mapped), ["0", "2", "4"]);
    assert_eq!(mapped.get_many(vec![2, 1]).expect("readable"), ["4", "2"]);
}

#[test]
fn partial_is_a_range_that_ends_with_its_dataset() {
    assert_eq!(read(&PartialDataset::new(numbers(9), 2, 5)), [2, 3, 4]);
    assert_eq!(read(&PartialDataset::new(numbers(9), 7, 20)), [7, 8]);
    assert_eq!(PartialDataset::<_, usize>::new(numbers(9), 12, 20).len(), 0);
    assert_eq!(PartialDataset::<_, usize>::new(numbers(9), 5, 2).len(), 0);
    let part = PartialDataset::new(numbers(9), 2, 5);
    assert_eq!(part.get_many(vec![2, 0]).expect("readable"), [4, 2]);
    let read = move || drop(part.get(3));
    check_panics(std::panic::AssertUnwindSafe(read), "index 3 out of range for a dataset of 3 items");
}

#[test]
fn split_parts_hold_every_item_once_and_differ_by_at_most_one() {
    for (len, num) in [(27, 4), (4, 4), (3, 4), (0, 2), (10, 1)] {
        let parts = PartialDataset::split(numbers(len), num);
        assert_eq!(parts.len(), num);
        let sizes: Vec<usize> = parts.iter().map(Dataset::len).collect();
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        assert_eq!(parts.iter().flat_map(read).collect::<Vec<_>>(), iota(len));

        let selection = SelectionDataset::new_select_all(numbers(len));
        let parts = selection.split(num);
        assert_eq!(parts.iter().flat_map(read).collect::<Vec<_>>(), iota(len));
    }
}

#[test]
fn split_chunks_keeps_batches_whole() {
    // 27 items in batches of 5 are 6 batches, the last of 2 items.
    let parts = PartialDataset::split_chunks(numbers(27), 4, 5);
    let sizes: Vec<usize> = parts.iter().map(Dataset::len).collect();
    assert_eq!(sizes, [10, 10, 5, 2]);
    assert_eq!(parts.iter().flat_map(read).collect::<Vec<_>>(), iota(27));
    let sizes = PartialDataset::split_chunks(numbers(6), 4, 5);
    assert_eq!(sizes.iter().map(Dataset::len).collect::<Vec<_>>(), [5, 1, 0, 0]);
}

#[test]
fn shuffles_are_permutations_that_depend_on_the_seed_alone() {
    let mut rng = StdRng::seed_from_u64(42);
    let order = shuffled_indices(100, &mut rng);
    assert_ne!(order, iota(100));
    assert_eq!(sorted(order.clone()), iota(100));
    assert_ne!(order, shuffled_indices(100, &mut rng), "the generator moves on");
    assert_eq!(order, read(&ShuffledDataset::new(numbers(100), 42)));
    assert_eq!(order, SelectionDataset::new_shuffled(numbers(100), 42).indices);
    assert_ne!(order, read(&ShuffledDataset::new(numbers(100), 43)));
    assert_eq!(shuffled_indices(0, &mut rng), [] as [usize; 0]);
    // Pinned, so that an epoch's order stays the same from release to release and on every platform.
    let mut rng = StdRng::seed_from_u64(7);
    assert_eq!(shuffled_indices(8, &mut rng), [3, 5, 4, 1, 6, 7, 2, 0]);
}

#[test]
fn every_position_of_a_shuffle_is_equally_likely() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut counts = [[0u32; 5]; 5];
    for _ in 0..10_000 {
        for (position, item) in shuffled_indices(5, &mut rng).into_iter().enumerate() {
            counts[position][item] += 1;
        }
    }
    // 2,000 expected; the standard deviation is 40.
    assert!(counts.iter().flatten().all(|count| (1_800..2_200).contains(count)), "{counts:?}");
}

#[test]
fn selection_reads_slices_and_checks_indexes() {
    let selection = SelectionDataset::from_indices_checked(numbers(10), vec![9, 3, 3, 0]);
    assert_eq!(read(&selection), [9, 3, 3, 0]);
    assert_eq!(read(&selection.slice(1, 3)), [3, 3]);
    assert_eq!(selection.get_many(vec![3, 0]).expect("readable"), [0, 9]);
    let mut shuffled = selection.clone();
    shuffled.shuffle(RngSource::Default);
    assert_eq!(sorted(shuffled.indices), [0, 3, 3, 9]);
    let select = || drop(SelectionDataset::from_indices_checked(numbers(3), vec![0, 3]));
    check_panics(select, "index 3 out of range for a dataset of 3 items");
}

#[test]
fn sampling_without_replacement_draws_whole_permutations() {
    let options = SamplerDatasetOptions::default().without_replacement().with_fixed_size(20).with_seed(5);
    let sampler = SamplerDataset::new(numbers(10), options);
    assert!(!sampler.is_with_replacement());
    let drawn = read(&sampler);
    assert_eq!(sorted(drawn[..10].to_vec()), iota(10));
    assert_eq!(sorted(drawn[10..].to_vec()), iota(10));
    assert_ne!(drawn[..10], drawn[10..]);
}

#[test]
fn sampling_with_replacement_draws_anew_each_epoch() {
    let sampler = SamplerDataset::new(numbers(10), SamplerDatasetOptions::default().with_size_ratio(2.5).with_seed(5));
    assert!(sampler.is_with_replacement());
    let (first, second) = (read(&sampler), read(&sampler));
    assert_eq!(first.len(), 25);
    assert_ne!(first, second);
    assert!(first.iter().all(|item| *item < 10));
    assert_eq!(SamplerDataset::new(numbers(10), 4).len(), 4);
    assert_eq!(SamplerDataset::new(numbers(10), None::<usize>).len(), 10);
    assert_eq!(SamplerDataset::with_replacement(numbers(10), 3).len(), 3);
    assert!(!SamplerDataset::without_replacement(numbers(10), 3).is_with_replacement());
    let sample = || drop(SamplerDataset::new(numbers(0), 4));
    check_panics(sample, "sampler: cannot draw 4 items from an empty dataset");
}

#[test]
fn sizes_resolve() {
    assert_eq!(SizeConfig::source().resolve(7), 7);
    assert_eq!(SizeConfig::from(0.5).resolve(7), 3);
    assert_eq!(SizeConfig::from(9usize).resolve(7), 9);
}

#[test]
fn random_sources_convert() {
    assert_eq!(RngSource::from(3), RngSource::Seed(3));
    let mut rng = StdRng::seed_from_u64(3);
    assert_eq!(RngSource::from(StdRng::seed_from_u64(3)), RngSource::Rng(StdRng::seed_from_u64(3)));
    let forked = RngSource::from(&mut rng);
    assert_ne!(forked, RngSource::Rng(StdRng::seed_from_u64(3)));
    assert_ne!(rng, StdRng::seed_from_u64(3), "forking moves the generator on");
}

#[test]
fn windows_slide_by_one() {
    let dataset = numbers(5);
    let windows: Vec<_> = dataset.windows(3).map(|window| window.expect("readable")).collect();
    assert_eq!(windows, [[0, 1, 2], [1, 2, 3], [2, 3, 4]]);
    assert_eq!(read(&WindowsDataset::new(numbers(5), 3)), windows);
    assert_eq!(WindowsDataset::new(numbers(2), 3).len(), 0);
    assert_eq!(dataset.windows(6).count(), 0);
    let three = std::num::NonZeroUsize::new(3).unwrap();
    assert_eq!(dataset.window(2, three).expect("readable"), Some(vec![2, 3, 4]));
    assert_eq!(dataset.window(3, three).expect("readable"), None);
    assert_eq!(dataset.window(usize::MAX, three).expect("readable"), None);
    let mut iterator = dataset.windows(3);
    iterator.next();
    assert_eq!(iterator.clone().count(), 2);
    check_panics(|| drop(WindowsDataset::new(numbers(2), 0)), "windows: size is zero");
}

#[test]
fn shared_sources_are_not_copied() {
    let source = Arc::new(numbers(6));
    let selection = SelectionDataset::from_indices_unchecked(Arc::clone(&source), vec![1]);
    assert!(Arc::ptr_eq(&selection.wrapped, &source));
}
