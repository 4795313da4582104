//! Convolutions in all three directions, with every option, against plain loops.

use super::fixture::{Rng, Threads, close};
use kiln_cpu::contract::conv::{Conv, Spatial, forward, input_gradient, weight_gradient};
use kiln_cpu::contract::*;
use std::sync::Mutex;

/// Calls `f(x, w, y)` with the flat indices of every product, padding given as `None` for `x`.
fn products(conv: &Conv, mut f: impl FnMut(Option<usize>, usize, usize)) {
    let [a, b, c] = conv.axes;
    let (inputs, outputs) = (conv.inputs / conv.groups, conv.outputs / conv.groups);
    let at = |axis: &Spatial, o: usize, t: usize| {
        let at = (o * axis.stride + t * axis.dilation) as isize - axis.padding as isize;
        (at >= 0 && at < axis.input as isize).then_some(at as usize)
    };
    for i in 0..conv.images {
        for o in 0..conv.outputs {
            for p in 0..a.output * b.output * c.output {
                let pos = [p / (b.output * c.output), p / c.output % b.output, p % c.output];
                let y = (i * conv.outputs + o) * a.output * b.output * c.output + p;
                for ch in 0..inputs {
                    for t in 0..a.kernel * b.kernel * c.kernel {
                        let tap = [t / (b.kernel * c.kernel), t / c.kernel % b.kernel, t % c.kernel];
                        let w = (o * inputs + ch) * a.kernel * b.kernel * c.kernel + t;
                        let channel = i * conv.inputs + o / outputs * inputs + ch;
                        let x = match (at(&a, pos[0], tap[0]), at(&b, pos[1], tap[1]), at(&c, pos[2], tap[2])) {
                            (Some(d), Some(h), Some(v)) => Some(((channel * a.input + d) * b.input + h) * c.input + v),
                            _ => None,
                        };
                        f(x, w, y);
                    }
                }
            }
        }
    }
}

/// Numbers of a case: input, weights, gradient of the output.
struct Numbers {
    x: Vec<f32>,
    w: Vec<f32>,
    dy: Vec<f32>,
}

fn numbers(conv: &Conv, rng: &mut Rng) -> Numbers {
    let [a, b, c] = conv.axes;
    Numbers {
        x: rng.f32s(conv.images * conv.inputs * a.input * b.input * c.input),
        w: rng.f32s(conv.outputs * conv.inputs / conv.groups * a.kernel * b.kernel * c.kernel),
        dy: rng.f32s(conv.images * conv.outputs * a.output * b.output * c.output),
    }
}

/// Records each element of `[batch][rows][cols]`, once.
struct Collect {
    out: Mutex<Vec<Option<f32>>>,
    rows: usize,
    cols: usize,
}

impl Epilogue<f32> for Collect {
    unsafe fn finish(&self, part: &Finished<f32>) {
        let mut out = self.out.lock().unwrap();
        for r in 0..part.rows {
            for c in 0..part.cols {
                // SAFETY: inside the part.
                let x = unsafe { *part.data.add(r * part.row_stride + c) };
                let to = (part.batch * self.rows + part.row + r) * self.cols + part.col + c;
                assert!(out[to].replace(x).is_none(), "element visited twice");
            }
        }
    }
}

type Direction<'a> = &'a dyn Fn(&Sink<f32>);

/// Runs one direction into a plain store, an accumulating store and an epilogue.
fn both(what: &str, run: Direction, batch: usize, rows: usize, cols: usize, k: usize, want: &[f64]) {
    let store = |out: &mut Vec<f32>| Store::new(out.as_mut_ptr(), cols as isize, 1, Offsets::new(&[(batch, (rows * cols) as isize)]));
    let f64s = |out: &[f32]| out.iter().map(|x| *x as f64).collect::<Vec<_>>();
    let mut out = vec![f32::NAN; batch * rows * cols];
    run(&Sink::Store(store(&mut out)));
    close(&format!("{what}, stored"), &f64s(&out), want, k, f32::EPSILON as f64);

    let mut added = vec![0.5f32; batch * rows * cols];
    run(&Sink::Store(Store { keep: 1.0, ..store(&mut added) }));
    let more: Vec<f64> = want.iter().map(|x| x + 0.5).collect();
    close(&format!("{what}, added"), &f64s(&added), &more, k, f32::EPSILON as f64);

    let seen = Collect { out: Mutex::new(vec![None; batch * rows * cols]), rows, cols };
    run(&Sink::Epilogue(&seen));
    let seen: Vec<f64> = seen.out.into_inner().unwrap().iter().map(|x| x.expect("element never visited") as f64).collect();
    close(&format!("{what}, epilogue"), &seen, want, k, f32::EPSILON as f64);
}

fn check(conv: &Conv, rng: &mut Rng, pool: &dyn ParallelFor) {
    let Numbers { x, w, dy } = numbers(conv, rng);
    let (mut y, mut dx, mut dw) = (vec![0.0; dy.len()], vec![0.0; x.len()], vec![0.0; w.len()]);
    products(conv, |i, j, o| {
        if let Some(i) = i {
            y[o] += x[i] as f64 * w[j] as f64;
            dx[i] += dy[o] as f64 * w[j] as f64;
            dw[j] += x[i] as f64 * dy[o] as f64;
        }
    });
    let sizes = |f: fn(&Spatial) -> usize| conv.axes.iter().map(f).product::<usize>();
    let (input, output, taps) = (sizes(|a| a.input), sizes(|a| a.output), sizes(|a| a.kernel));
    let (inputs, outputs) = (conv.inputs / conv.groups, conv.outputs / conv.groups);
    both(
        &format!("forward {conv:?}"),
        // SAFETY: the vectors have the sizes of the convolution.
        &|sink| unsafe { forward(conv, x.as_ptr(), w.as_ptr(), sink, pool) },
        conv.images,
        conv.outputs,
        output,
        inputs * taps,
        &y,
    );
    both(
        &format!("input gradient {conv:?}"),
        // SAFETY: the vectors have the sizes of the convolution.
        &|sink| unsafe { input_gradient(conv, dy.as_ptr(), w.as_ptr(), sink, pool) },
        conv.images,
        conv.inputs,
        input,
        outputs * taps,
        &dx,
    );
    both(
        &format!("weight gradient {conv:?}"),
        // SAFETY: the vectors have the sizes of the convolution.
        &|sink| unsafe { weight_gradient(conv, x.as_ptr(), dy.as_ptr(), sink, pool) },
        1,
        conv.outputs,
        inputs * taps,
        conv.images * output,
        &dw,
    );
}

/// An axis whose output is what both paddings allow.
fn axis(input: usize, kernel: usize, stride: usize, dilation: usize, before: usize, after: usize) -> Spatial {
    let output = (input + before + after).saturating_sub((kernel - 1) * dilation + 1) / stride + 1;
    Spatial { input, output, kernel, stride, dilation, padding: before }
}

#[test]
fn random_convolutions_match_plain_loops() {
    let mut rng = Rng::new(11);
    for round in 0..220 {
        let dims = 1 + rng.below(3);
        let mut axes = [Spatial::NONE; 3];
        let most = [40, 14, 7][dims - 1];
        for to in &mut axes[3 - dims..] {
            let (kernel, dilation) = (1 + rng.below(4), 1 + rng.below(3));
            let (before, after) = (rng.below(4), rng.below(4));
            let needed = ((kernel - 1) * dilation + 1).saturating_sub(before + after).max(1);
            let input = needed + rng.below(most);
            *to = axis(input, kernel, 1 + rng.below(3), dilation, before, after);
        }
        let groups = rng.pick(&[1, 1, 2, 3]);
        let conv = Conv { images: rng.pick(&[0, 1, 2, 5]), groups, inputs: groups * (1 + rng.below(5)), outputs: groups * (1 + rng.below(9)), axes };
        check(&conv, &mut rng, if round % 2 == 0 { &Serial } else { &Threads(3) });
    }
}

#[test]
fn layers_of_real_models_match_plain_loops() {
    let mut rng = Rng::new(12);
    let square = |size, kernel, stride, padding| {
        let axis = axis(size, kernel, stride, 1, padding, padding);
        [Spatial::NONE, axis, axis]
    };
    for (images, inputs, outputs, groups, axes) in [
        (2, 1, 32, 1, square(28, 3, 1, 0)),
        (2, 32, 64, 1, square(26, 3, 1, 0)),
        (1, 3, 16, 1, square(40, 7, 2, 3)),
        (3, 24, 40, 1, square(7, 3, 1, 1)),
        (3, 24, 40, 1, square(14, 1, 2, 0)),
        (3, 24, 40, 1, square(14, 1, 1, 0)),
        (2, 32, 32, 32, square(20, 3, 1, 1)),
        (2, 16, 48, 16, square(21, 5, 2, 2)),
        (1, 130, 70, 1, [Spatial::NONE, Spatial::NONE, axis(300, 5, 1, 2, 8, 0)]),
    ] {
        check(&Conv { images, groups, inputs, outputs, axes }, &mut rng, &Threads(2));
    }
}

#[test]
fn windows_of_three_by_three_match_plain_loops_on_every_instruction_set() {
    for isa in [Isa::Best, Isa::Avx512, Isa::Avx2, Isa::Plain] {
        cap_isa(isa);
        let mut rng = Rng::new(14);
        for (images, groups, inputs, outputs, rows, cols, before, after) in [
            (1, 1, 16, 32, 16, 16, 1, 1),
            (3, 1, 17, 33, 7, 9, 1, 1),
            (2, 2, 40, 72, 13, 8, 0, 0),
            (5, 1, 64, 130, 7, 7, 1, 1),
            (1, 1, 32, 64, 41, 23, 2, 0),
            (40, 1, 18, 40, 2, 3, 1, 2),
            (33, 1, 20, 34, 1, 1, 1, 1),
        ] {
            let axes = [Spatial::NONE, axis(rows, 3, 1, 1, before, after), axis(cols, 3, 1, 1, after, before)];
            let conv = Conv { images, groups, inputs: groups * inputs, outputs: groups * outputs, axes };
            check(&conv, &mut rng, if images % 2 == 0 { &Serial } else { &Threads(2) });
        }
    }
    cap_isa(Isa::Best);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut rng = Rng::new(15);
    let axis = axis(30, 3, 1, 1, 1, 1);
    let conv = Conv { images: 3, groups: 1, inputs: 24, outputs: 80, axes: [Spatial::NONE, axis, axis] };
    let Numbers { x, w, .. } = numbers(&conv, &mut rng);
    let run = |pool: &dyn ParallelFor| {
        let mut y = vec![0f32; 3 * 80 * 900];
        let sink = Sink::Store(Store::new(y.as_mut_ptr(), 900, 1, Offsets::new(&[(3, 80 * 900)])));
        // SAFETY: the vectors have the sizes of the convolution.
        unsafe { forward(&conv, x.as_ptr(), w.as_ptr(), &sink, pool) };
        y.iter().map(|y| y.to_bits()).collect::<Vec<_>>()
    };
    let alone = run(&Serial);
    for threads in 2..6 {
        assert!(run(&Threads(threads)) == alone, "{threads} threads");
    }
}

#[test]
fn infinities_and_nans_reach_what_they_reach_in_plain_sums() {
    let axis = axis(16, 3, 1, 1, 1, 1);
    let conv = Conv { images: 1, groups: 1, inputs: 16, outputs: 64, axes: [Spatial::NONE, axis, axis] };
    let mut rng = Rng::new(16);
    let Numbers { x, w, .. } = numbers(&conv, &mut rng);
    let plant = [(f32::INFINITY, None), (f32::NAN, None), (f32::MAX, None), (0.5, Some(f32::NEG_INFINITY))];
    for (planted, weight) in plant {
        let (mut x, mut w) = (x.clone(), w.clone());
        x[3 * 256 + 5 * 16 + 6] = planted;
        if let Some(weight) = weight {
            w[(9 * 16 + 2) * 9 + 4] = weight;
        }
        let mut want = vec![0f32; 64 * 256];
        products(&conv, |i, j, o| want[o] += i.map_or(0.0, |i| x[i]) * w[j]);
        let mut y = vec![0f32; 64 * 256];
        let sink = Sink::Store(Store::new(y.as_mut_ptr(), 256, 1, Offsets::default()));
        // SAFETY: the vectors have the sizes of the convolution.
        unsafe { forward(&conv, x.as_ptr(), w.as_ptr(), &sink, &Threads(2)) };
        for (i, (y, want)) in y.iter().zip(&want).enumerate() {
            let same = (y.is_nan() && want.is_nan()) || y == want || (y - want).abs() <= 1e-4 * want.abs().max(1.0);
            assert!(same, "{planted} and {weight:?}: element {i} is {y}, expected {want}");
        }
    }
}

#[test]
fn infinite_weights_reach_in_an_input_gradient_what_their_taps_reach() {
    let mut rng = Rng::new(17);
    for (groups, inputs, outputs, rows, cols) in [
        (1, 16, 40, axis(9, 3, 1, 1, 1, 1), axis(8, 3, 1, 1, 1, 1)),
        (2, 6, 4, axis(7, 3, 2, 1, 0, 1), axis(9, 2, 3, 2, 1, 0)),
        (1, 1, 1, axis(1, 3, 1, 1, 1, 1), axis(2, 1, 2, 1, 0, 0)),
    ] {
        let conv = Conv { images: 2, groups, inputs, outputs, axes: [Spatial::NONE, rows, cols] };
        let Numbers { mut w, dy, x } = numbers(&conv, &mut rng);
        let last = w.len() - 1;
        (w[0], w[last / 2], w[last]) = (f32::INFINITY, f32::NAN, f32::NEG_INFINITY);
        let mut want = vec![0f32; x.len()];
        products(&conv, |i, j, o| i.into_iter().for_each(|i| want[i] += dy[o] * w[j]));
        let (size, mut dx) = (rows.input * cols.input, vec![0f32; x.len()]);
        let sink = Sink::Store(Store::new(dx.as_mut_ptr(), size as isize, 1, Offsets::new(&[(2, (inputs * size) as isize)])));
        // SAFETY: the vectors have the sizes of the convolution.
        unsafe { input_gradient(&conv, dy.as_ptr(), w.as_ptr(), &sink, &Threads(2)) };
        let seen = Collect { out: Mutex::new(vec![None; x.len()]), rows: inputs, cols: size };
        // SAFETY: as above.
        unsafe { input_gradient(&conv, dy.as_ptr(), w.as_ptr(), &Sink::Epilogue(&seen), &Serial) };
        let seen = seen.out.into_inner().unwrap();
        assert!(want.iter().any(|x| x.is_finite()) && want.iter().any(|x| x.is_nan()), "{conv:?}");
        for (i, want) in want.iter().enumerate() {
            for got in [dx[i], seen[i].expect("element never visited")] {
                let same = (got.is_nan() && want.is_nan()) || got == *want || (got - want).abs() <= 1e-4 * want.abs().max(1.0);
                assert!(same, "{conv:?}: element {i} is {got}, expected {want}");
            }
        }
    }
}

#[test]
fn narrower_instruction_sets_convolve_alike() {
    for isa in [Isa::Avx512, Isa::Avx2, Isa::Plain] {
        cap_isa(isa);
        let mut rng = Rng::new(13);
        for stride in [1, 2] {
            let axis = axis(15, 3, stride, 1, 1, 2);
            let conv = Conv { images: 3, groups: 2, inputs: 6, outputs: 10, axes: [Spatial::NONE, axis, axis] };
            check(&conv, &mut rng, &Serial);
        }
    }
    cap_isa(Isa::Best);
}

#[test]
fn padding_zeros_meet_infinite_weights() {
    let axis = axis(8, 3, 1, 1, 1, 1);
    let conv = Conv { images: 1, groups: 1, inputs: 1, outputs: 1, axes: [Spatial::NONE, Spatial::NONE, axis] };
    let (x, w) = (vec![1f32; 8], [f32::INFINITY, 1.0, 1.0]);
    let mut y = vec![0f32; 8];
    let sink = Sink::Store(Store::new(y.as_mut_ptr(), 8, 1, Offsets::default()));
    // SAFETY: the vectors have the sizes of the convolution.
    unsafe { forward(&conv, x.as_ptr(), w.as_ptr(), &sink, &Serial) };
    assert!(y[0].is_nan(), "0 * inf is NaN, got {}", y[0]);
    assert!(y[1..].iter().all(|y| *y == f32::INFINITY), "{y:?}");
}

#[test]
fn a_nan_reaches_only_the_windows_that_hold_it() {
    let axis = axis(30, 3, 1, 1, 1, 1);
    let conv = Conv { images: 1, groups: 1, inputs: 1, outputs: 2, axes: [Spatial::NONE, axis, axis] };
    let mut x = vec![1f32; 900];
    x[10 * 30 + 29] = f32::NAN;
    let w = [1f32; 18];
    let mut y = vec![0f32; 1800];
    let sink = Sink::Store(Store::new(y.as_mut_ptr(), 900, 1, Offsets::default()));
    // SAFETY: the vectors have the sizes of the convolution.
    unsafe { forward(&conv, x.as_ptr(), w.as_ptr(), &sink, &Serial) };
    for (i, y) in y.iter().enumerate() {
        let (row, col) = (i % 900 / 30, i % 30);
        assert_eq!(y.is_nan(), (9..=11).contains(&row) && col >= 28, "row {row}, column {col}");
    }
}

#[test]
fn convolutions_do_not_depend_on_the_number_of_threads() {
    let axis = axis(30, 3, 1, 1, 1, 1);
    let conv = Conv { images: 9, groups: 1, inputs: 12, outputs: 20, axes: [Spatial::NONE, axis, axis] };
    let mut rng = Rng::new(14);
    let Numbers { x, w, dy } = numbers(&conv, &mut rng);
    let run = |pool: &dyn ParallelFor| {
        let (mut y, mut dx, mut dw) = (vec![0f32; dy.len()], vec![0f32; x.len()], vec![0f32; w.len()]);
        let store = |out: &mut Vec<f32>, images: usize, rows: usize, cols: usize| {
            let batch = Offsets::new(&[(images, (rows * cols) as isize)]);
            Sink::Store(Store::new(out.as_mut_ptr(), cols as isize, 1, batch))
        };
        // SAFETY: the vectors have the sizes of the convolution.
        unsafe {
            forward(&conv, x.as_ptr(), w.as_ptr(), &store(&mut y, 9, 20, 900), pool);
            input_gradient(&conv, dy.as_ptr(), w.as_ptr(), &store(&mut dx, 9, 12, 900), pool);
            weight_gradient(&conv, x.as_ptr(), dy.as_ptr(), &store(&mut dw, 1, 20, 108), pool);
        }
        (y, dx, dw)
    };
    let once = run(&Serial);
    for threads in [2, 5, 16] {
        assert!(once == run(&Threads(threads)), "{threads} threads");
    }
}

#[test]
fn small_convolutions_stay_in_bounds() {
    let mut rng = Rng::new(15);
    let line = |axis| [Spatial::NONE, Spatial::NONE, axis];
    for (groups, inputs, outputs, axes) in [
        (1, 2, 3, line(axis(7, 3, 1, 1, 1, 1))),
        (1, 1, 2, line(axis(5, 2, 2, 2, 0, 2))),
        (2, 4, 2, line(axis(4, 3, 1, 1, 3, 0))),
        (1, 2, 2, [Spatial::NONE, axis(3, 2, 1, 1, 1, 0), axis(4, 3, 2, 1, 1, 1)]),
        (3, 3, 3, [Spatial::NONE, axis(4, 3, 1, 1, 1, 1), axis(3, 1, 1, 1, 0, 0)]),
        (1, 1, 2, [axis(2, 2, 1, 1, 1, 0), axis(2, 1, 1, 1, 0, 0), axis(3, 2, 1, 1, 0, 0)]),
    ] {
        check(&Conv { images: 2, groups, inputs, outputs, axes }, &mut rng, &Serial);
    }
}
