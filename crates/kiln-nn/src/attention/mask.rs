//! Masks that hide positions from attention: true hides.

use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_tensor::{Bool, Device, Int, Tensor, TensorData};

/// The mask `[batch_size, seq_length, seq_length]` that hides from each position all later ones.
///
/// ```
/// use kiln_nn::attention::generate_autoregressive_mask;
/// use kiln_tensor::Device;
///
/// let mask = generate_autoregressive_mask(1, 2, &Device::default());
/// assert_eq!(mask.into_data().try_to_vec::<bool>().unwrap(), [false, true, false, false]);
/// ```
pub fn generate_autoregressive_mask(batch_size: usize, seq_length: usize, device: &Device) -> Tensor<3, Bool> {
    // `tril_mask` is false on and below the diagonal, the part it keeps.
    let mask = Tensor::<2, Bool>::tril_mask([seq_length, seq_length], 0, device);
    mask.unsqueeze_dim::<3>(0).expand([batch_size, seq_length, seq_length])
}

/// Sequences as one tensor, and where it is padding.
pub struct GeneratePaddingMask {
    /// The tokens, `[batch, length]`.
    pub tensor: Tensor<2, Int>,
    /// True at padding, `[batch, length]`.
    pub mask: Tensor<2, Bool>,
}

/// The length that sequences are padded or cut to.
#[derive(Config, Debug, Copy)]
pub enum SeqLengthOption {
    /// The length of the longest.
    NoMax,
    /// The length of the longest, but at most this.
    Max(usize),
    /// This.
    Fixed(usize),
}

impl From<Option<usize>> for SeqLengthOption {
    fn from(value: Option<usize>) -> Self {
        value.map_or(Self::NoMax, Self::Max)
    }
}

/// Puts sequences of tokens into one tensor, padded at the end with `pad_token`, and masks the padding.
pub fn generate_padding_mask(
    pad_token: usize,
    tokens_list: Vec<Vec<usize>>,
    seq_length: impl Into<SeqLengthOption>,
    device: &Device,
) -> GeneratePaddingMask {
    let longest = tokens_list.iter().map(Vec::len).max().unwrap_or(0);
    let length = match seq_length.into() {
        SeqLengthOption::NoMax => longest,
        SeqLengthOption::Max(max) => longest.min(max),
        SeqLengthOption::Fixed(length) => length,
    };
    let batch = tokens_list.len();
    let mut tokens = Vec::with_capacity(batch * length);
    let mut hidden = Vec::with_capacity(batch * length);
    for sequence in &tokens_list {
        for position in 0..length {
            let token = sequence.get(position).copied().unwrap_or(pad_token);
            tokens.push(token as i64);
            hidden.push(token == pad_token);
        }
    }
    GeneratePaddingMask {
        tensor: Tensor::from_data(TensorData::new(tokens, [batch, length]), device),
        mask: Tensor::from_data(TensorData::new(hidden, [batch, length]), device),
    }
}
