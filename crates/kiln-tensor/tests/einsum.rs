//! `einsum` against nested loops over the axes' names.

use std::collections::BTreeMap;

use kiln_tensor::{Device, Int, Tensor, TensorData, einsum};

use crate::check_panics;

/// A tensor of whole numbers, by rank.
fn operand(shape: &[usize], salt: i64) -> TensorData {
    let count: usize = shape.iter().product();
    TensorData::new((0..count as i64).map(|i| (i * 7 + salt * 3) % 11 - 5).collect(), shape)
}

/// The sum of products by definition; letters only.
fn by_loops(equation: &str, operands: &[TensorData]) -> (Vec<usize>, Vec<i64>) {
    let (inputs, result) = equation.split_once("->").unwrap();
    let inputs: Vec<&str> = inputs.split(',').collect();
    let mut sizes = BTreeMap::new();
    for (names, data) in inputs.iter().zip(operands) {
        for (name, size) in names.chars().zip(data.shape().iter()) {
            let known = sizes.entry(name).or_insert(*size);
            *known = (*known).max(*size);
        }
    }
    let names: Vec<char> = sizes.keys().copied().collect();
    let at = |text: &str, shape: &[usize], place: &BTreeMap<char, usize>| -> usize {
        text.chars().zip(shape).fold(0, |i, (name, size)| i * size + if *size == 1 { 0 } else { place[&name] })
    };
    let shape: Vec<usize> = result.chars().map(|name| sizes[&name]).collect();
    let mut out = vec![0; shape.iter().product()];
    let total: usize = sizes.values().product();
    let values: Vec<Vec<i64>> = operands.iter().map(|data| data.try_to_vec().unwrap()).collect();
    for i in 0..total {
        let mut place = BTreeMap::new();
        let mut rest = i;
        for name in names.iter().rev() {
            place.insert(*name, rest % sizes[name]);
            rest /= sizes[name];
        }
        let product: i64 = inputs.iter().zip(operands).zip(&values).map(|((text, data), values)| values[at(text, data.shape(), &place)]).product();
        out[at(result, &shape, &place)] += product;
    }
    (if shape.is_empty() { vec![1] } else { shape }, out)
}

fn tensor<const D: usize>(data: &TensorData) -> Tensor<D, Int> {
    Tensor::from_data(data.clone(), &Device::default())
}

/// Compares an equation on operands of the given shapes with the loops.
#[track_caller]
fn check<const R: usize>(equation: &str, shapes: &[&[usize]]) {
    check_as::<R>(equation, equation, shapes);
}

/// As [`check`], where the loops get another form of the equation.
#[track_caller]
fn check_as<const R: usize>(equation: &str, explicit: &str, shapes: &[&[usize]]) {
    let data: Vec<TensorData> = shapes.iter().enumerate().map(|(i, shape)| operand(shape, i as i64)).collect();
    let operands: Vec<kiln_tensor::EinsumOperand<Int>> = (data.iter())
        .map(|data| match data.rank() {
            1 => tensor::<1>(data).into(),
            2 => tensor::<2>(data).into(),
            3 => tensor::<3>(data).into(),
            4 => tensor::<4>(data).into(),
            other => panic!("no operand of rank {other}"),
        })
        .collect();
    let y = Tensor::<R, Int>::einsum(equation, operands);
    let (shape, expected) = by_loops(explicit, &data);
    assert_eq!(y.dims().as_slice(), shape, "{equation}");
    assert_eq!(y.try_into_vec_as::<i64>().unwrap(), expected, "{equation}");
}

#[test]
fn equations_match_loops() {
    check::<2>("ij,jk->ik", &[&[2, 3], &[3, 4]]);
    check::<2>("ij,jk->ki", &[&[2, 3], &[3, 4]]);
    check::<2>("ji,kj->ik", &[&[3, 2], &[4, 3]]);
    check::<3>("bij,bjk->bik", &[&[2, 2, 3], &[2, 3, 4]]);
    check::<2>("i,j->ij", &[&[3], &[4]]);
    check::<1>("i,i->", &[&[3], &[3]]);
    check::<1>("ij,ij->i", &[&[2, 3], &[2, 3]]);
    check::<2>("ij,ij->ij", &[&[2, 3], &[2, 3]]);
    check::<1>("ij->j", &[&[2, 3]]);
    check::<1>("ij->", &[&[2, 3]]);
    check::<2>("ij->ji", &[&[2, 3]]);
    check::<1>("ii->i", &[&[3, 3]]);
    check::<1>("ii->", &[&[3, 3]]);
    check::<1>("iii->i", &[&[2, 2, 2]]);
    check::<2>("iij->ij", &[&[2, 2, 3]]);
    check::<2>("iji->ji", &[&[2, 3, 2]]);
    check::<2>("ij,jk,kl->il", &[&[2, 3], &[3, 2], &[2, 4]]);
    check::<3>("abc,cd->abd", &[&[2, 3, 4], &[4, 2]]);
    check::<4>("bhqd,bhkd->bhqk", &[&[2, 2, 3, 4], &[2, 2, 5, 4]]);
    check::<2>("ij,kl->il", &[&[2, 3], &[2, 4]]);
    check::<1>("i,ij,j->", &[&[2], &[2, 3], &[3]]);
    check::<2>("ij,jk->ik", &[&[2, 1], &[3, 4]]);
    check::<2>("ij,jk->ik", &[&[2, 0], &[0, 4]]);
}

#[test]
fn the_result_may_be_implied() {
    check_as::<2>("ij,jk", "ij,jk->ik", &[&[2, 3], &[3, 4]]);
    check_as::<2>("ba", "ba->ab", &[&[2, 3]]);
    check_as::<1>("ij, j", "ij,j->i", &[&[2, 3], &[3]]);
    check_as::<1>("ii", "ii->", &[&[2, 2]]);
}

#[test]
fn ellipses_are_broadcast() {
    check_as::<3>("...ij,...jk->...ik", "bij,bjk->bik", &[&[2, 2, 3], &[2, 3, 4]]);
    check_as::<4>("...ij,jk->...ik", "abij,jk->abik", &[&[2, 3, 2, 3], &[3, 4]]);
    check_as::<3>("...ij,...jk->...ik", "bij,bjk->bik", &[&[1, 2, 3], &[5, 3, 4]]);
    check_as::<3>("i...->...i", "iab->abi", &[&[2, 3, 4]]);
    check_as::<1>("...->", "ab->", &[&[2, 3]]);
}

#[test]
fn wrong_equations_are_refused() {
    let x = || Tensor::<2>::ones([2, 3], &Device::default());
    let run = |equation: &str| Tensor::<2>::einsum(equation, [x().into(), x().into()]);
    check_panics(|| run("ij,jk->ik"), "axes of one name have sizes 3 and 2");
    check_panics(|| run("ij,ik,kl->il"), "another number of operands");
    check_panics(|| run("ijk,jk->ik"), "names 3 axes, the operand has 2");
    check_panics(|| run("ij,i1->ij"), "named by letters");
    check_panics(|| run("ij,ik->iz"), "occurs in no operand");
    check_panics(|| run("ij,ik->ii"), "occurs twice in the result");
    check_panics(|| run("ij,ij->i"), "not of rank 2");
}

#[test]
fn the_macro_takes_values_and_references() {
    let device = Device::default().autodiff();
    let a = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device).require_grad();
    let b = Tensor::<1>::from_data([1.0, 10.0], &device);
    let y: Tensor<1> = einsum!("ij,j->i", &a, b);
    let gradients = y.sum().backward();
    assert_eq!(a.grad(&gradients).unwrap().try_into_vec_as::<f32>().unwrap(), [1.0, 10.0, 1.0, 10.0]);
}
