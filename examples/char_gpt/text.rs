//! The text: characters as numbers, random windows for training, a tenth held out.

use kiln::prelude::*;

/// A text cut into training and held-out parts, with a generator that picks windows.
pub struct Corpus {
    characters: Vec<char>,
    training: Vec<i64>,
    held_out: Vec<i64>,
    state: u64,
}

impl Corpus {
    /// Numbers the characters of `text` in sorted order.
    pub fn new(text: &str, seed: u64) -> Self {
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters.dedup();
        let place = |c: char| characters.binary_search(&c).expect("the character comes from the text") as i64;
        let mut training: Vec<i64> = text.chars().map(place).collect();
        let held_out = training.split_off(training.len() * 9 / 10);
        Self { characters, training, held_out, state: seed }
    }

    /// How many different characters there are.
    pub fn vocabulary(&self) -> usize {
        self.characters.len()
    }

    /// The numbers of those characters of `text` that the corpus has.
    pub fn encode(&self, text: &str) -> Vec<i64> {
        text.chars().filter_map(|c| self.characters.binary_search(&c).ok()).map(|i| i as i64).collect()
    }

    /// The text of numbers.
    pub fn decode(&self, tokens: &[i64]) -> String {
        tokens.iter().map(|&token| self.characters[token as usize]).collect()
    }

    /// A number in `0..1` (splitmix64).
    pub fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Random windows and the same windows one character later, `[batch, length]` each.
    pub fn training(&mut self, batch: usize, length: usize, device: &Device) -> (Tensor<2, Int>, Tensor<2, Int>) {
        let starts = self.starts(self.training.len(), batch, length);
        windows(&self.training, &starts, length, device)
    }

    /// The same from text that training never sees.
    pub fn held_out(&mut self, batch: usize, length: usize, device: &Device) -> (Tensor<2, Int>, Tensor<2, Int>) {
        let starts = self.starts(self.held_out.len(), batch, length);
        windows(&self.held_out, &starts, length, device)
    }

    fn starts(&mut self, tokens: usize, batch: usize, length: usize) -> Vec<usize> {
        (0..batch).map(|_| (self.uniform() * (tokens - length - 1) as f64) as usize).collect()
    }
}

fn windows(tokens: &[i64], starts: &[usize], length: usize, device: &Device) -> (Tensor<2, Int>, Tensor<2, Int>) {
    let cut = |shift: usize| {
        let values: Vec<i64> = starts.iter().flat_map(|&s| &tokens[s + shift..s + shift + length]).copied().collect();
        Tensor::from_data(TensorData::new(values, [starts.len(), length]), device)
    };
    (cut(0), cut(1))
}
