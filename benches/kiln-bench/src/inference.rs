//! Inference: the GPT's forward pass and greedy decoding, ResNet-18.

use crate::gpt::{Cache, Gpt, LAYERS, SEQ, VOCAB};
use crate::harness::{Bench, Work};
use crate::random::{floats, labels};
use crate::resnet::ResNet18;
use kiln::tensor::{Device, Int, Tensor};

/// Tokens that one decoding run makes.
const TOKENS: usize = 128;

/// Runs the wanted workloads.
pub fn run(bench: &mut Bench, device: &Device) {
    let sync = || device.sync().expect("the CPU does not fail");
    if bench.wants("gpt_fwd_b8") {
        let x = labels(device, [8, SEQ], VOCAB as u64, 0);
        let model = Gpt::new(device);
        bench.run("gpt_fwd_b8", 1, Work::None, || {
            let y = model.forward(x.clone());
            sync();
            drop(y);
        });
    }
    if bench.wants("gpt_decode_128") {
        let model = Gpt::new(device);
        bench.run("gpt_decode_128", 1, Work::None, || {
            let mut caches = vec![Cache::new(TOKENS, device); LAYERS];
            let mut token = Tensor::<2, Int>::zeros([1, 1], device);
            for pos in 0..TOKENS {
                token = model.decode(token, pos, &mut caches);
                device.flush().expect("the CPU does not fail");
            }
            std::hint::black_box(token.into_scalar::<i64>());
        });
    }
    for (name, batch) in [("resnet18_b1", 1), ("resnet18_b8", 8)] {
        if bench.wants(name) {
            let x = floats(device, [batch, 3, 224, 224], 0);
            let model = ResNet18::new(device);
            bench.run(name, 1, Work::Flops(3.63e9 * batch as f64), || {
                let y = model.forward(x.clone());
                sync();
                drop(y);
            });
        }
    }
}
