//! Tests of the thread pool.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};

use kiln_cpu::pool::{Pool, span, tasks_for};

/// Runs a region and checks that every task ran exactly once.
fn check(pool: &Pool, tasks: usize) {
    let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
    pool.run(tasks, &|task| {
        counts[task].fetch_add(1, Relaxed);
    });
    assert!(counts.iter().all(|count| count.load(Relaxed) == 1), "{tasks} tasks");
}

#[test]
fn every_task_runs_once() {
    for threads in [1, 2, 3, 8] {
        let pool = Pool::new(threads);
        assert_eq!(pool.threads(), threads);
        for tasks in [0, 1, 2, 3, 7, 8, 9, 100, 1000] {
            check(&pool, tasks);
        }
        for _ in 0..2000 {
            check(&pool, 5);
        }
    }
}

#[test]
fn sleeping_workers_wake_up() {
    let pool = Pool::new(4);
    for _ in 0..50 {
        std::thread::sleep(Duration::from_micros(300));
        check(&pool, 4);
    }
}

#[test]
fn workers_really_help() {
    let pool = Pool::new(4);
    let names = std::sync::Mutex::new(std::collections::HashSet::new());
    pool.run(4, &|_| {
        names.lock().unwrap().insert(std::thread::current().id());
        std::thread::sleep(Duration::from_millis(50));
    });
    assert!(names.lock().unwrap().len() > 1);
}

#[test]
fn nested_regions_run_inline() {
    let pool = Pool::new(3);
    let total = AtomicUsize::new(0);
    pool.run(6, &|_| {
        pool.run(10, &|_| {
            total.fetch_add(1, Relaxed);
        })
    });
    assert_eq!(total.load(Relaxed), 60);
}

#[test]
fn several_callers_share_the_pool() {
    let pool = Pool::new(3);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..300).for_each(|tasks| check(&pool, tasks % 17)));
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_survives() {
    let pool = Pool::new(3);
    for bad in 0..8 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(8, &|task| assert!(task != bad, "task {task} failed"));
        }));
        let payload = result.expect_err("the panic must arrive");
        assert_eq!(payload.downcast_ref::<String>().unwrap(), &format!("task {bad} failed"));
        check(&pool, 20);
    }
}

#[test]
fn spans_cover_everything_once_on_step_borders() {
    for (items, step, tasks) in [(0, 1, 3), (1, 1, 3), (10, 1, 3), (1000, 64, 7), (63, 64, 4), (129, 64, 2)] {
        let mut next = 0;
        for task in 0..tasks {
            let piece = span(items, step, tasks, task);
            assert_eq!(piece.start, next);
            assert!(piece.end == items || piece.end.is_multiple_of(step));
            next = piece.end;
        }
        assert_eq!(next, items);
    }
}

#[test]
fn small_work_stays_on_one_thread() {
    assert_eq!(tasks_for(16 * 1024, 8), 1);
    assert_eq!(tasks_for(1 << 30, 1), 1);
    assert!(tasks_for(1 << 30, 8) >= 8);
    let caller = std::thread::current().id();
    Pool::new(4).split(1000, 1, 4000, &|range| {
        assert_eq!(range, 0..1000);
        assert_eq!(std::thread::current().id(), caller);
    });
}

#[test]
fn a_hot_region_is_cheap() {
    let pool = Pool::new(2);
    let best = (0..200)
        .map(|_| {
            let start = Instant::now();
            (0..100).for_each(|_| pool.run(2, &|_| {}));
            start.elapsed() / 100
        })
        .min()
        .unwrap();
    // Two microseconds on a quiet machine; the bound leaves room for a busy one.
    assert!(best < Duration::from_micros(50), "{best:?} a region");
}
