//! Tests of the caching allocator.
use kiln_cpu::memory::{ALIGNMENT, Cache, OutOfMemory};

#[test]
fn blocks_are_aligned_zero_at_first_and_do_not_overlap() {
    let cache = Cache::new();
    let sizes = [0, 1, 63, 64, 65, 1000, 4096, 100_000, 2 << 20, (5 << 20) + 3];
    let mut blocks: Vec<_> = sizes.iter().map(|&bytes| cache.allocate(bytes).unwrap()).collect();
    for (index, (block, &bytes)) in blocks.iter_mut().zip(&sizes).enumerate() {
        assert_eq!(block.len(), bytes);
        assert_eq!(block.is_empty(), bytes == 0);
        assert_eq!(block.as_ptr() as usize % ALIGNMENT, 0);
        assert!(block.as_slice().iter().all(|&byte| byte == 0));
        block.as_mut_slice().fill(index as u8 + 1);
    }
    for (index, block) in blocks.iter().enumerate() {
        assert!(block.as_slice().iter().all(|&byte| byte == index as u8 + 1));
    }
    assert_eq!(cache.usage().blocks, sizes.len());
    assert_eq!(cache.usage().in_use, sizes.iter().sum());
}

#[test]
fn freed_blocks_are_reused() {
    let cache = Cache::new();
    for bytes in [100, 10_000, 3 << 20] {
        let first = cache.allocate(bytes).unwrap();
        let address = first.as_ptr();
        drop(first);
        let before = cache.usage().system_allocations;
        let again = cache.allocate(bytes).unwrap();
        assert_eq!(again.as_ptr(), address);
        assert_eq!(cache.usage().system_allocations, before);
    }
}

#[test]
fn zeroed_blocks_are_zero_when_reused() {
    let cache = Cache::new();
    for bytes in [100, 4 << 20] {
        cache.allocate(bytes).unwrap().as_mut_slice().fill(7);
        assert!(cache.allocate_zeroed(bytes).unwrap().as_slice().iter().all(|&byte| byte == 0));
    }
}

#[test]
fn statistics_follow_blocks() {
    let cache = Cache::new();
    let a = cache.allocate(1000).unwrap();
    let b = cache.allocate(3000).unwrap();
    drop(a);
    let usage = cache.usage();
    assert_eq!((usage.in_use, usage.peak, usage.blocks, usage.system_allocations), (3000, 4000, 1, 2));
    assert!(usage.reserved >= 4000);
    cache.reset_peak();
    assert_eq!(cache.usage().peak, 3000);
    cache.cleanup();
    assert!((3000..4000).contains(&cache.usage().reserved));
    drop(b);
    cache.cleanup();
    assert_eq!(cache.usage().reserved, 0);
}

#[test]
fn failure_is_an_error_and_cached_blocks_are_given_back_first() {
    let cache = Cache::bounded(1 << 20);
    drop(cache.allocate(600_000).unwrap());
    let block = cache.allocate(800_000).unwrap();
    let error = cache.allocate(400_000).unwrap_err();
    assert_eq!(error, OutOfMemory { requested: 400_000, in_use: 800_000 });
    assert_eq!(error.to_string(), "out of memory: 400000 bytes requested, 800000 bytes in use");
    drop(block);
    cache.allocate(400_000).unwrap();
    assert!(cache.allocate(usize::MAX).is_err());
    assert!(Cache::new().allocate(1 << 60).is_err());
}

#[test]
fn the_cache_does_not_grow_without_bound() {
    let cache = Cache::new();
    for step in 0..300 {
        cache.allocate((4 << 20) + step * 600_000).unwrap();
    }
    let usage = cache.usage();
    assert!(usage.reserved <= 320 << 20, "{} MiB kept", usage.reserved >> 20);
}

#[test]
fn blocks_cross_threads() {
    let cache = Cache::new();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..500 {
                    let mut block = cache.allocate(round * 37).unwrap();
                    block.as_mut_slice().fill(thread);
                    assert!(block.as_slice().iter().all(|&byte| byte == thread));
                }
            });
        }
    });
    assert_eq!(cache.usage().in_use, 0);
}

#[test]
fn small_blocks_stay_in_bounds() {
    let cache = Cache::new();
    for round in 0..3u8 {
        let mut blocks: Vec<_> = [0, 1, 63, 64, 65, 200, 1000].iter().map(|&bytes| cache.allocate(bytes).unwrap()).collect();
        for block in &mut blocks {
            block.as_mut_slice().fill(round);
        }
        assert!(blocks.iter().all(|block| block.as_slice().iter().all(|&byte| byte == round)));
        drop(blocks.split_off(3));
        assert!(cache.allocate_zeroed(300).unwrap().as_slice().iter().all(|&byte| byte == 0));
    }
    std::thread::scope(|scope| {
        for thread in 0..2u8 {
            let cache = &cache;
            scope.spawn(move || cache.allocate(77).unwrap().as_mut_slice().fill(thread));
        }
    });
    cache.cleanup();
    assert_eq!((cache.usage().in_use, cache.usage().reserved), (0, 0));
}
