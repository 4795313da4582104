//! Reading values: asynchronously, several tensors at once, and while something is captured.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use kiln_tensor::{Bool, Device, Int, Tensor, TensorData, Transaction, capture, read_sync};

use crate::counting::counting;

/// Wakes the thread that waits.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future as an executor does.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Parked(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn async_forms_give_what_the_others_give() {
    let device = Device::default();
    let x = Tensor::<1>::from_data([1.0, 2.0, 3.0], &device) * 2;
    let mask = x.clone().greater_elem(3);
    assert_eq!(block_on(x.to_data_async()).unwrap(), x.to_data());
    assert_eq!(block_on(x.clone().into_data_async()).unwrap(), x.to_data());
    assert_eq!(block_on(x.clone().sum().into_scalar_async::<f32>()).unwrap(), 12.0);
    assert_eq!(block_on(x.clone().sum().try_into_scalar_async::<f64>()).unwrap(), 12.0);
    assert!(block_on(x.clone().try_into_scalar_async::<f64>()).is_err());
    assert_eq!(block_on(x.clone().mask_select_async(mask.clone())).into_data(), x.clone().mask_select(mask.clone()).into_data());
    assert_eq!(block_on(mask.clone().argwhere_async()).into_data(), mask.clone().argwhere().into_data());
    let places = |places: Vec<Tensor<1, Int>>| places.into_iter().map(Tensor::into_data).collect::<Vec<_>>();
    assert_eq!(places(block_on(mask.clone().nonzero_async())), places(mask.clone().nonzero()));
    let both = block_on(Transaction::default().register(x.clone()).register(mask.clone()).execute_async()).unwrap();
    assert_eq!(both, [x.into_data(), mask.into_data()]);
}

#[test]
fn futures_of_data_cross_threads() {
    let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default()) + 1;
    let future = x.into_data_async();
    let data = std::thread::spawn(move || block_on(future)).join().unwrap().unwrap();
    assert_eq!(data, TensorData::from([2.0f32, 3.0]));
}

#[test]
fn a_transaction_runs_and_waits_once() {
    let (device, counts) = counting();
    let x = Tensor::<1>::from_data([1.0, 2.0], &device);
    device.sync().unwrap();
    let (runs, syncs) = (counts.runs(), counts.syncs());
    let (y, z, b) = (x.clone() * 2, x.clone().sum(), x.clone().greater_elem(1));
    let read: Vec<TensorData> = Transaction::default().register(y).register(z).register(b).register(x).execute();
    let expected = [TensorData::from([2.0f32, 4.0]), TensorData::from([3.0f32]), TensorData::from([false, true]), TensorData::from([1.0f32, 2.0])];
    assert_eq!(read, expected);
    assert_eq!((counts.runs() - runs, counts.syncs() - syncs), (1, 0), "one run, and no waiting beside the copies");
}

#[test]
fn a_transaction_starts_every_device_before_it_reads() {
    let (first, counts) = counting();
    let (second, others) = counting();
    let x = Tensor::<1>::ones([2], &first) + 1;
    let y = Tensor::<1, Bool>::ones([2], &second).bool_not();
    let [a, b]: [TensorData; 2] = Transaction::default().register(x).register(y).execute().try_into().unwrap();
    assert_eq!((a, b), (TensorData::from([2.0f32, 2.0]), TensorData::from([false, false])));
    assert_eq!((counts.runs(), others.runs()), (1, 1));
}

#[test]
fn a_captured_computation_is_compiled_once() {
    let (device, counts) = counting();
    let x = Tensor::<1>::from_data([1.0, 2.0], &device);
    let mut graph = capture(&device, || (x.clone() * 3).exp().log());
    let (compiles, runs) = (device.trace_stats().compiles, counts.runs());
    for _ in 0..5 {
        // SAFETY: a replay has no demands.
        let y = unsafe { graph.replay() };
        let y = read_sync(y.to_data_async()).unwrap();
        assert!(y.iter::<f32>().zip([3.0f32, 6.0]).all(|(a, b)| (a - b).abs() < 1e-5));
    }
    assert!(!graph.is_hardware());
    assert_eq!((device.trace_stats().compiles, counts.runs()), (compiles, runs + 5));
}
