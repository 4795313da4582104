//! Random sequences of ops, drops, reads and backward passes: lazy, fused and donated runs equal an eager run on the reference device, and replays equal first runs.
//!
//! `KILN_FUZZ_PROGRAMS` and `KILN_FUZZ_SEED` make the test of many programs longer and start it elsewhere.
use kiln_ir::{DType, ScatterOp};
use kiln_tensor::Device;
use kiln_tensor::raw::{RawTensor, SliceRange};

use crate::{compiled, cpu};

/// Xorshift numbers (Marsaglia, 2003).
struct Numbers(u64);

impl Numbers {
    fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }
}

/// A device with some tensors. What happens depends on `structure`; the elements and the starts of slices depend on `values`.
struct World {
    device: Device,
    eager: bool,
    dtype: DType,
    /// Tensors that require gradients, where the whole program is differentiated.
    leaves: Option<Vec<RawTensor>>,
    /// Gradients found.
    gradients: usize,
    structure: Numbers,
    values: Numbers,
    pool: Vec<RawTensor>,
    read: Vec<Vec<f64>>,
}

const SHAPES: [&[usize]; 7] = [&[6], &[2, 3], &[3, 4], &[4, 3], &[2, 2, 3], &[1, 5], &[4, 1]];

impl World {
    fn new(device: Device, eager: bool, structure: u64, values: u64) -> Self {
        World {
            device,
            eager,
            dtype: DType::F32,
            leaves: None,
            gradients: 0,
            structure: Numbers::new(structure),
            values: Numbers::new(values),
            pool: Vec::new(),
            read: Vec::new(),
        }
    }

    fn fresh(&mut self) -> RawTensor {
        let dims = SHAPES[self.structure.below(SHAPES.len())];
        let n: usize = dims.iter().product();
        let elements: Vec<f64> = (0..n).map(|_| self.values.below(2001) as f64 / 1000.0 - 1.0).collect();
        let x = RawTensor::from_slice(&self.device, dims, DType::F64, &elements).cast(self.dtype);
        match &mut self.leaves {
            Some(leaves) => {
                let leaf = x.autodiff().require_grad();
                leaves.push(leaf.clone());
                leaf
            }
            None => x,
        }
    }

    fn pick(&mut self) -> RawTensor {
        let k = self.structure.below(self.pool.len());
        self.pool[k].clone()
    }

    /// A tensor of the pool that broadcasts with `x`, or a fresh one-element tensor.
    fn partner(&mut self, x: &RawTensor) -> RawTensor {
        for _ in 0..4 {
            let y = self.pick();
            if kiln_ir::dims::broadcast(x.dims(), y.dims()).is_some_and(|d| d.iter().product::<usize>() <= 64) {
                return y;
            }
        }
        let v = self.values.below(100) as f64 / 50.0 - 1.0;
        RawTensor::full(&self.device, &[1], self.dtype, v.into())
    }

    fn range(&mut self, x: &RawTensor) -> SliceRange {
        let axis = self.structure.below(x.rank());
        let size = x.dims()[axis];
        let len = 1 + self.structure.below(size);
        let start = self.values.below(size - len + 1);
        if self.structure.below(4) == 0 {
            return SliceRange { axis, start: start + len - 1, len, step: -1 };
        }
        SliceRange::new(axis, start, len)
    }

    /// Indices into an axis, for `n` slices.
    fn index(&mut self, n: usize, size: usize) -> RawTensor {
        let index: Vec<i64> = (0..n).map(|_| self.values.below(size) as i64).collect();
        RawTensor::from_slice(&self.device, &[n], DType::I64, &index)
    }

    /// One op on random operands. All ops are continuous and keep elements small.
    fn op(&mut self) -> RawTensor {
        let x = self.pick();
        let axis = self.structure.below(x.rank());
        let scalar = self.values.below(100) as f64 / 50.0 - 1.0;
        match self.structure.below(27) {
            0 => x.tanh(),
            1 => x.neg(),
            2 => x.sin().add_scalar(scalar),
            3 => x.add(&self.partner(&x)).tanh(),
            4 => x.mul(&self.partner(&x)).tanh(),
            5 => x.sub(&self.partner(&x)).mul_scalar(0.5),
            6 => x.mul_scalar(scalar),
            7 => x.reshape(&[x.numel()]),
            8 if x.numel().is_multiple_of(2) => x.reshape(&[2, x.numel() / 2]),
            9 if x.rank() > 1 => x.transpose(),
            10 => {
                let r = self.range(&x);
                x.slice(&[r])
            }
            11 => {
                let r = self.range(&x);
                let mut dims = x.dims().to_vec();
                dims[r.axis] = r.len;
                let value = RawTensor::full(&self.device, &dims, self.dtype, scalar.into());
                x.slice_assign(&[r], &value)
            }
            12 => {
                let r = self.range(&x);
                x.slice_assign(&[r], &x.slice(&[r]).sin())
            }
            13 => x.flip(&[axis]),
            14 => x.softmax(axis),
            15 => x.sum(&[axis]).tanh(),
            16 => x.mean(&[axis]),
            17 => x.max(&[axis]),
            18 => x.cumsum(axis).tanh(),
            19 if x.numel() <= 32 => RawTensor::cat(&[x.clone(), x.neg()], axis),
            20 if x.numel() <= 16 => {
                let mut pads = vec![(0, 0); x.rank()];
                pads[axis] = (1, 2);
                x.pad_constant(&pads, scalar.into())
            }
            21 if x.rank() == 2 => x.matmul(&x.transpose()).tanh(),
            22 => {
                let mask = RawTensor::iota(&self.device, x.dims(), DType::I64, axis).gt_scalar(0i64);
                x.mask_fill(&mask, scalar.into())
            }
            23 => {
                let index = self.index(2, x.dims()[axis]);
                x.select(axis, &index)
            }
            24 => {
                let index = self.index(2, x.dims()[axis]);
                let mut dims = x.dims().to_vec();
                dims[axis] = 2;
                let value = RawTensor::full(&self.device, &dims, self.dtype, scalar.into());
                x.select_assign(axis, &index, &value, ScatterOp::Add).tanh()
            }
            25 => x.sort(axis, self.structure.below(2) == 0).0,
            26 => self.gradient(&x),
            _ => x.square(),
        }
    }

    /// The gradient of something computed from a tensor.
    fn gradient(&mut self, x: &RawTensor) -> RawTensor {
        let leaf = x.clone().without_autodiff().autodiff().require_grad();
        let y = match self.structure.below(5) {
            0 => leaf.softmax(leaf.rank() - 1).mul(&leaf),
            1 => leaf.tanh().sum(&[0]).square(),
            2 => leaf.gelu().cumsum(0),
            3 => {
                let r = self.range(&leaf);
                leaf.slice(&[r]).sin().mul(&leaf.slice(&[r]))
            }
            _ => leaf.reshape(&[1, leaf.numel()]).matmul(&leaf.reshape(&[leaf.numel(), 1])).tanh(),
        };
        if self.structure.below(2) == 0 {
            let _ = y.realize();
        }
        let g = y.backward().get(&leaf).expect("a gradient").clone();
        g.tanh()
    }

    fn note(&mut self, x: &RawTensor) {
        self.read.push(x.to_f64s().unwrap());
    }

    fn run(&mut self, steps: usize) -> Vec<Vec<f64>> {
        for _ in 0..3 {
            let x = self.fresh();
            self.pool.push(x);
        }
        for _ in 0..steps {
            match self.structure.below(12) {
                0 => {
                    let x = self.fresh();
                    self.pool.push(x);
                }
                1 if self.pool.len() > 3 => {
                    let k = self.structure.below(self.pool.len());
                    self.pool.remove(k);
                }
                2 => {
                    let x = self.pick();
                    self.note(&x);
                }
                3 => self.device.flush().unwrap(),
                // A result takes its operand's place, so that the operand may be donated.
                4..=7 => {
                    let x = self.op();
                    let k = self.structure.below(self.pool.len());
                    self.pool[k] = x;
                }
                _ => {
                    let x = self.op();
                    self.pool.push(x);
                }
            }
            if self.eager {
                self.pool.iter().for_each(|x| x.realize().unwrap());
            }
        }
        let pool = core::mem::take(&mut self.pool);
        self.differentiate(&pool);
        for x in pool {
            self.note(&x);
        }
        core::mem::take(&mut self.read)
    }

    /// The gradients of everything that is left, for every leaf.
    fn differentiate(&mut self, pool: &[RawTensor]) {
        let Some(leaves) = self.leaves.take() else {
            return;
        };
        // Weighted differently, so that gradients of parts that are moved about differ.
        let weighted = |(k, x): (usize, &RawTensor)| {
            let places = RawTensor::iota(&self.device, &[x.numel()], DType::I64, 0).cast(self.dtype);
            x.reshape(&[x.numel()]).mul(&places.mul_scalar(0.1).add_scalar(0.5 + k as f64)).sum(&[0])
        };
        let loss = pool.iter().filter(|x| x.is_tracked()).enumerate().map(weighted).reduce(|a, b| a.add(&b));
        let Some(loss) = loss else {
            return;
        };
        let gradients = loss.backward();
        for leaf in &leaves {
            match gradients.get(leaf) {
                Some(gradient) => {
                    self.gradients += 1;
                    self.note(gradient);
                }
                None => self.read.push(Vec::new()),
            }
        }
    }

    /// Program number `seed`: 5 to 40 steps, every other one differentiated as a whole and in 64 bits, so that rounding chooses no other extremum.
    fn numbered(device: Device, eager: bool, seed: u64) -> (Vec<Vec<f64>>, usize) {
        let mut world = World::new(device, eager, seed, seed);
        if seed % 2 == 1 {
            (world.dtype, world.leaves) = (DType::F64, Some(Vec::new()));
        }
        let steps = 5 + world.structure.below(36);
        (world.run(steps), world.gradients)
    }
}

/// A number from the environment.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

/// Programs outside of those that every run checks which failed once, each with what was wrong. None so far.
const KEPT: [u64; 0] = [];

#[test]
fn many_programs_and_their_gradients_are_the_same_fused_unfused_and_interpreted() {
    let (first, count) = (setting("KILN_FUZZ_SEED", 0), setting("KILN_FUZZ_PROGRAMS", 10_000));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(8)) as u64;
    let devices = [compiled(), cpu()];
    let check = &|seed: u64| {
        let (expected, gradients) = World::numbered(Device::reference(), true, seed);
        for device in &devices {
            compare(&World::numbered(device.clone(), false, seed).0, &expected, &format!("{device:?}, fused, program {seed}"));
        }
        compare(&World::numbered(devices[1].clone(), true, seed).0, &expected, &format!("unfused, program {seed}"));
        (expected.iter().map(Vec::len).sum::<usize>(), gradients)
    };
    let both = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
    let (numbers, gradients) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|t| scope.spawn(move || (first..first + count).chain(KEPT).filter(|seed| seed % threads == t).map(check).fold((0, 0), both)))
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).fold((0, 0), both)
    });
    assert!(numbers as u64 > count * 50 && gradients as u64 > count, "{numbers} numbers and {gradients} gradients were compared");
}

#[track_caller]
fn compare(got: &[Vec<f64>], expected: &[Vec<f64>], what: &str) {
    assert_eq!(got.len(), expected.len());
    for (k, (g, e)) in got.iter().zip(expected).enumerate() {
        assert_eq!(g.len(), e.len(), "{what}: tensor {k}");
        for (i, (a, b)) in g.iter().zip(e).enumerate() {
            assert!((a - b).abs() <= 2e-4 * b.abs().max(1.0), "{what}: tensor {k}, element {i}: {a}, expected {b}");
        }
    }
}

#[test]
fn lazy_runs_equal_eager_ones_and_replays_equal_first_runs() {
    let devices = [compiled(), cpu()];
    for structure in 0..400 {
        for values in 1..4 {
            let expected = World::new(Device::reference(), true, structure, values).run(60);
            for device in &devices {
                let got = World::new(device.clone(), false, structure, values).run(60);
                compare(&got, &expected, &format!("{device:?}, structure {structure}, values {values}"));
            }
        }
    }
    for device in &devices {
        let stats = device.trace_stats();
        assert!(stats.compiles > 1000 && stats.hits > 1000, "{stats:?}: both first runs and replays");
    }
}

#[test]
fn threads_that_share_a_device_do_not_disturb_each_other() {
    let device = cpu();
    let workers: Vec<_> = (0..4)
        .map(|t| {
            let device = device.clone();
            std::thread::spawn(move || {
                for structure in 200..230 {
                    let expected = World::new(Device::reference(), true, structure, t + 1).run(30);
                    let got = World::new(device.clone(), false, structure, t + 1).run(30);
                    compare(&got, &expected, &format!("thread {t}, structure {structure}"));
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|w| w.join().unwrap());
}
