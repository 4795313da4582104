//! How words of constants and run-time scalars become elements of tiles.
use kiln_ir::DType;
use kiln_ir::op::word_value;

use super::step::WordForm;

/// The bits of a tile element made from a word.
pub(super) fn element_bits(dtype: DType, word: u64) -> u64 {
    let (float, int) = word_value(dtype, word);
    from_form(word_form(dtype), float, int)
}

/// The form of a dtype's words.
pub(super) fn word_form(dtype: DType) -> WordForm {
    match dtype {
        DType::F64 => WordForm::F64,
        DType::F32 => WordForm::F32,
        DType::F16 => WordForm::F16,
        DType::BF16 => WordForm::Bf16,
        DType::Bool => WordForm::Bool,
        DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U64 | DType::U32 | DType::U16 | DType::U8 => WordForm::Int(dtype),
    }
}

/// The bits of an argument's element.
pub(super) fn argument_bits(form: WordForm, word: u64) -> u64 {
    let dtype = match form {
        WordForm::F64 => DType::F64,
        WordForm::F32 => DType::F32,
        WordForm::F16 => DType::F16,
        WordForm::Bf16 => DType::BF16,
        WordForm::Bool => DType::Bool,
        WordForm::Int(dtype) => dtype,
    };
    element_bits(dtype, word)
}

fn from_form(form: WordForm, float: f64, int: i128) -> u64 {
    match form {
        WordForm::F64 => float.to_bits(),
        WordForm::F32 => (float as f32).to_bits() as u64,
        WordForm::F16 => half::f16::from_f64(float).to_f32().to_bits() as u64,
        WordForm::Bf16 => half::bf16::from_f64(float).to_f32().to_bits() as u64,
        WordForm::Int(_) => int as u64,
        WordForm::Bool => (int != 0) as u64,
    }
}
