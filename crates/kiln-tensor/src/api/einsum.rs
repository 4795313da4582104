//! `einsum`: sums of products in index notation.

use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;

use super::Tensor;
use super::kind::{Float, Numeric};
use crate::raw::RawTensor;

/// A tensor of any rank as an operand of [`Tensor::einsum`].
#[derive(Clone, Debug)]
pub struct EinsumOperand<K: Numeric = Float> {
    raw: RawTensor,
    kind: PhantomData<K>,
}

impl<const D: usize, K: Numeric> From<Tensor<D, K>> for EinsumOperand<K> {
    fn from(tensor: Tensor<D, K>) -> Self {
        Self { raw: tensor.raw, kind: PhantomData }
    }
}

impl<const D: usize, K: Numeric> From<&Tensor<D, K>> for EinsumOperand<K> {
    fn from(tensor: &Tensor<D, K>) -> Self {
        Self { raw: tensor.raw.clone(), kind: PhantomData }
    }
}

impl<const D: usize, K: Numeric> Tensor<D, K> {
    /// A sum of products in index notation: each operand names its axes by letters, axes of one letter run together, and letters that the
    /// result does not name are summed. `...` stands for leading axes that are broadcast. Without `->`, the result has the letters that occur
    /// once, in alphabetical order.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let a = Tensor::<2>::from_data([[1, 2], [3, 4]], &device);
    /// let b = Tensor::<1>::from_data([1, 10], &device);
    /// let product = Tensor::<1>::einsum("ij,j->i", [(&a).into(), (&b).into()]);
    /// assert_eq!(product.try_to_vec_as::<i32>().unwrap(), [21, 43]);
    /// let trace = Tensor::<1>::einsum("ii->", [a.into()]);
    /// assert_eq!(trace.into_scalar::<f32>(), 5.0);
    /// ```
    ///
    /// A result without axes has shape `[1]`.
    ///
    /// # Panics
    /// When the equation is not valid, does not fit the operands, or the result is not of rank `D`.
    #[track_caller]
    pub fn einsum(equation: &str, operands: impl IntoIterator<Item = EinsumOperand<K>>) -> Self {
        let operands: Vec<RawTensor> = operands.into_iter().map(|operand| operand.raw).collect();
        Self::from_raw(einsum(equation, operands))
    }
}

/// [`Tensor::einsum`] with an equation that is checked when the program is compiled; operands are given by value or by reference.
///
/// ```
/// use kiln_tensor::{Device, Tensor, einsum};
/// let device = Device::default();
/// let a = Tensor::<2>::ones([2, 3], &device);
/// let b = Tensor::<2>::ones([3, 4], &device);
/// let c: Tensor<2> = einsum!("ik,kj->ij", &a, b);
/// assert_eq!(c.dims(), [2, 4]);
/// ```
///
/// ```compile_fail
/// use kiln_tensor::{Device, Tensor, einsum};
/// let a = Tensor::<2>::ones([2, 3], &Device::default());
/// let c: Tensor<2> = einsum!("ij,jk->ik", &a);
/// ```
///
/// # Panics
/// As [`Tensor::einsum`].
#[macro_export]
macro_rules! einsum {
    ($equation:literal, $($operand:expr),+ $(,)?) => {{
        const _: () = $crate::check_einsum_equation($equation, [$(stringify!($operand)),+].len());
        $crate::Tensor::einsum($equation, [$($crate::EinsumOperand::from($operand)),+])
    }};
}

/// Checks the form of an equation for a number of operands.
///
/// # Panics
/// When the equation has another number of operands, characters that are no letters, or a letter in the result twice or without an operand.
#[doc(hidden)]
#[track_caller]
pub const fn check_einsum_equation(equation: &str, operands: usize) {
    if let Err(rule) = check_form(equation, operands) {
        panic!("{}", rule);
    }
}

/// The rule that an equation breaks.
const fn check_form(equation: &str, operands: usize) -> Result<(), &'static str> {
    let text = equation.as_bytes();
    let (mut i, mut inputs, mut in_result) = (0, 1, false);
    let (mut seen, mut result) = ([false; 128], [false; 128]);
    while i < text.len() {
        match text[i] {
            b' ' => {}
            b',' if !in_result => inputs += 1,
            b'-' if !in_result && i + 1 < text.len() && text[i + 1] == b'>' => {
                in_result = true;
                i += 1;
            }
            b'.' if i + 2 < text.len() && text[i + 1] == b'.' && text[i + 2] == b'.' => i += 2,
            letter if letter.is_ascii_alphabetic() && !in_result => seen[letter as usize] = true,
            letter if letter.is_ascii_alphabetic() => {
                if result[letter as usize] {
                    return Err("einsum: a letter occurs twice in the result");
                }
                if !seen[letter as usize] {
                    return Err("einsum: a letter of the result occurs in no operand");
                }
                result[letter as usize] = true;
            }
            _ => return Err("einsum: axes are named by letters, operands separated by commas, the result follows ->"),
        }
        i += 1;
    }
    if inputs == operands { Ok(()) } else { Err("einsum: the equation has another number of operands") }
}

/// The name of an axis: a letter, or a place of the ellipsis counted from its end.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Label {
    Broadcast(usize),
    Letter(char),
}

/// A tensor with the names of its axes.
struct Term {
    tensor: RawTensor,
    labels: Vec<Label>,
}

#[track_caller]
fn einsum(equation: &str, operands: Vec<RawTensor>) -> RawTensor {
    if let Err(rule) = check_form(equation, operands.len()) {
        let shapes: Vec<&[usize]> = operands.iter().map(RawTensor::dims).collect();
        panic!("{rule}: equation {equation:?}, operands {shapes:?}");
    }
    let compact: String = equation.chars().filter(|c| *c != ' ').collect();
    let (inputs, result) = match compact.split_once("->") {
        Some((inputs, result)) => (inputs, Some(result)),
        None => (compact.as_str(), None),
    };
    let mut terms: Vec<Term> = Vec::new();
    for (text, tensor) in inputs.split(',').zip(operands) {
        let labels = labels_of(text, tensor.dims(), equation);
        terms.push(diagonal(Term { tensor, labels }, equation));
    }
    check_sizes(&terms, equation);
    let broadcast = terms.iter().flat_map(|term| &term.labels).filter(|label| matches!(label, Label::Broadcast(_))).max().copied();
    let ellipsis = match broadcast {
        Some(Label::Broadcast(last)) => last + 1,
        Some(Label::Letter(_)) | None => 0,
    };
    let result = match result {
        Some(text) => result_labels(text, ellipsis),
        None => implicit_result(&terms, inputs, ellipsis),
    };
    // Operands are multiplied from left to right; an axis is summed as soon as nothing that follows names it.
    let mut rest = terms.into_iter();
    let mut product = rest.next().expect("an equation has an operand");
    let following: Vec<Term> = rest.collect();
    for (i, term) in following.iter().enumerate() {
        let needed = |label: &Label| result.contains(label) || following[i + 1..].iter().any(|later| later.labels.contains(label));
        product = multiply(&product, term, needed);
    }
    let product = sum_out(product, |label| result.contains(label));
    let order: Vec<usize> = result.iter().map(|label| position(&product.labels, *label)).collect();
    let y = product.tensor.permute(&order);
    if result.is_empty() { y.reshape(&[1]) } else { y }
}

fn position(labels: &[Label], label: Label) -> usize {
    labels.iter().position(|other| *other == label).expect("the equation was checked")
}

/// The names of an operand's axes.
#[track_caller]
fn labels_of(text: &str, dims: &[usize], equation: &str) -> Vec<Label> {
    let rank = dims.len();
    let letters = text.chars().filter(|c| *c != '.').count();
    let ellipsis = text.contains("...");
    assert!(
        letters == rank || (ellipsis && letters < rank),
        "einsum: {text:?} names {letters} axes, the operand has {rank}: equation {equation:?}, shape {dims:?}"
    );
    let hidden = rank - letters;
    let mut labels = Vec::with_capacity(rank);
    let mut dots = 0;
    for c in text.chars() {
        if c != '.' {
            labels.push(Label::Letter(c));
            continue;
        }
        dots += 1;
        if dots == 3 {
            labels.extend((0..hidden).rev().map(Label::Broadcast));
        }
    }
    assert!(dots <= 3, "einsum: {text:?} has more than one ellipsis: equation {equation:?}, shape {dims:?}");
    labels
}

fn result_labels(text: &str, ellipsis: usize) -> Vec<Label> {
    let mut labels = Vec::new();
    let mut dots = 0;
    for c in text.chars() {
        if c != '.' {
            labels.push(Label::Letter(c));
            continue;
        }
        dots += 1;
        if dots == 3 {
            labels.extend((0..ellipsis).rev().map(Label::Broadcast));
        }
    }
    labels
}

/// The ellipsis, then the letters that occur once in the text of the operands, in order.
fn implicit_result(terms: &[Term], inputs: &str, ellipsis: usize) -> Vec<Label> {
    let mut letters: Vec<char> = (terms.iter().flat_map(|term| &term.labels))
        .filter_map(|label| match label {
            Label::Letter(c) if inputs.matches(*c).count() == 1 => Some(*c),
            Label::Letter(_) | Label::Broadcast(_) => None,
        })
        .collect();
    letters.sort_unstable();
    (0..ellipsis).rev().map(Label::Broadcast).chain(letters.into_iter().map(Label::Letter)).collect()
}

/// The diagonal of axes that have one name within a term.
#[track_caller]
fn diagonal(mut term: Term, equation: &str) -> Term {
    while let Some((first, second)) = repeated(&term.labels) {
        let dims = term.tensor.dims();
        let size = dims[first];
        assert!(size == dims[second], "einsum: axes of one name have sizes {size} and {}: equation {equation:?}, shape {dims:?}", dims[second]);
        // Both axes go to the end as one, where the diagonal is every (size + 1)-th element.
        let mut order: Vec<usize> = (0..dims.len()).filter(|axis| *axis != first && *axis != second).collect();
        let kept: Vec<usize> = order.iter().map(|axis| dims[*axis]).collect();
        let mut labels: Vec<Label> = order.iter().map(|axis| term.labels[*axis]).collect();
        labels.push(term.labels[first]);
        order.extend([first, second]);
        let mut flat = kept;
        flat.push(size * size);
        let axis = flat.len() - 1;
        let range = crate::raw::SliceRange { axis, start: 0, len: size, step: size as isize + 1 };
        term = Term { tensor: term.tensor.permute(&order).reshape(&flat).slice(&[range]), labels };
    }
    term
}

fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    (0..labels.len()).find_map(|second| labels[..second].iter().position(|label| *label == labels[second]).map(|first| (first, second)))
}

#[track_caller]
fn check_sizes(terms: &[Term], equation: &str) {
    let mut sizes: Vec<(Label, usize)> = Vec::new();
    for term in terms {
        for (label, &size) in term.labels.iter().zip(term.tensor.dims()) {
            match sizes.iter_mut().find(|(other, _)| other == label) {
                None => sizes.push((*label, size)),
                Some((_, known)) if *known == size || size == 1 => {}
                Some((_, known)) if *known == 1 => *known = size,
                Some((_, known)) => {
                    let shapes: Vec<&[usize]> = terms.iter().map(|term| term.tensor.dims()).collect();
                    panic!("einsum: axes of one name have sizes {known} and {size}: equation {equation:?}, operands {shapes:?}")
                }
            }
        }
    }
}

/// The term summed over the axes that are not needed, which are removed.
fn sum_out(term: Term, needed: impl Fn(&Label) -> bool) -> Term {
    let axes: Vec<usize> = (0..term.labels.len()).filter(|axis| !needed(&term.labels[*axis])).collect();
    if axes.is_empty() {
        return term;
    }
    let kept: Vec<usize> = (0..term.labels.len()).filter(|axis| !axes.contains(axis)).collect();
    let dims: Vec<usize> = kept.iter().map(|axis| term.tensor.dims()[*axis]).collect();
    let labels = kept.iter().map(|axis| term.labels[*axis]).collect();
    Term { tensor: term.tensor.sum(&axes).reshape(&dims), labels }
}

/// The product of two terms, summed over the axes that nothing needs any more: a batched matrix product.
fn multiply(left: &Term, right: &Term, needed: impl Fn(&Label) -> bool) -> Term {
    let own = |term: &Term| Term { tensor: term.tensor.clone(), labels: term.labels.clone() };
    let left = sum_out(own(left), |label| needed(label) || right.labels.contains(label));
    let right = sum_out(own(right), |label| needed(label) || left.labels.contains(label));
    let shared = |label: &&Label| left.labels.contains(label) && right.labels.contains(label);
    let batch: Vec<Label> = left.labels.iter().filter(shared).filter(|label| needed(label)).copied().collect();
    let inner: Vec<Label> = left.labels.iter().filter(shared).filter(|label| !needed(label)).copied().collect();
    let outer = |term: &Term, other: &Term| -> Vec<Label> { term.labels.iter().filter(|label| !other.labels.contains(label)).copied().collect() };
    let (rows, columns) = (outer(&left, &right), outer(&right, &left));
    // Axes of one name and size 1 on one side are broadcast before the product.
    let size = |label: &Label| {
        let of = |term: &Term| term.labels.iter().position(|other| other == label).map_or(1, |axis| term.tensor.dims()[axis]);
        let (a, b) = (of(&left), of(&right));
        if a == 1 { b } else { a }
    };
    let sizes = |labels: &[Label]| -> Vec<usize> { labels.iter().map(&size).collect() };
    let count = |labels: &[Label]| -> usize { sizes(labels).iter().product() };
    let matrix = |term: &Term, first: &[Label], second: &[Label]| {
        let names: Vec<Label> = batch.iter().chain(first).chain(second).copied().collect();
        let order: Vec<usize> = names.iter().map(|label| position(&term.labels, *label)).collect();
        let full = term.tensor.permute(&order).expand(&sizes(&names));
        full.reshape(&[count(&batch), count(first), count(second)])
    };
    let product = matrix(&left, &rows, &inner).matmul(&matrix(&right, &inner, &columns));
    let labels: Vec<Label> = batch.iter().chain(&rows).chain(&columns).copied().collect();
    Term { tensor: product.reshape(&sizes(&labels)), labels }
}
