//! Measured choices between algorithms, kept on disk: one file a GPU and version of the library, in the user's cache folder.
//!
//! A line holds the hash of what was measured, the library's opaque description of the algorithm and its workspace. Lines that are not of this form are ignored; the library checks
//! an algorithm before it is used.
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use crate::cache::{Cache, hash};

/// An algorithm: the library's description, and its workspace in bytes.
pub type Algorithm = ([u64; 8], usize);

/// Most lines of a file.
const MOST: usize = 20_000;

/// The choices of one GPU and library.
#[derive(Debug, Default)]
pub struct Choices {
    path: Option<PathBuf>,
    known: BTreeMap<u128, Algorithm>,
}

/// A line of the file.
fn parse(line: &str) -> Option<(u128, Algorithm)> {
    let mut words = line.split(' ');
    let key = u128::from_str_radix(words.next()?, 16).ok()?;
    let mut next = || words.next().and_then(|w| u64::from_str_radix(w, 16).ok());
    let mut algorithm = [0; 8];
    for word in &mut algorithm {
        *word = next()?;
    }
    Some((key, (algorithm, next()? as usize)))
}

impl Choices {
    /// What the file of this GPU and version holds.
    pub fn of_user(gpu: &str, version: i32) -> Self {
        let name = format!("products-{:08x}.txt", hash(&[gpu.as_bytes(), &version.to_le_bytes()]) as u32);
        Self::at(Cache::of_user().file(&name))
    }

    fn at(path: Option<PathBuf>) -> Self {
        let text = path.as_ref().and_then(|p| std::fs::read_to_string(p).ok()).unwrap_or_default();
        Choices { path, known: text.lines().filter_map(parse).collect() }
    }

    /// The hash of what is measured.
    pub fn key(what: &str) -> u128 {
        hash(&[what.as_bytes()])
    }

    /// The choice of an earlier process.
    pub fn get(&self, key: u128) -> Option<Algorithm> {
        self.known.get(&key).copied()
    }

    /// Keeps a choice. Choices that other processes made meanwhile stay; a folder that cannot be written is no error.
    pub fn put(&mut self, key: u128, algorithm: Algorithm) {
        self.known.insert(key, algorithm);
        let Some(path) = &self.path else { return };
        let others = Self::at(Some(path.clone()));
        for (key, algorithm) in others.known {
            self.known.entry(key).or_insert(algorithm);
        }
        while self.known.len() > MOST {
            self.known.pop_first();
        }
        let mut text = String::new();
        for (key, (algorithm, workspace)) in &self.known {
            let _ = write!(text, "{key:032x}");
            algorithm.iter().chain([&(*workspace as u64)]).for_each(|w| {
                let _ = write!(text, " {w:x}");
            });
            text.push('\n');
        }
        let part = path.with_extension(format!("{}.part", std::process::id()));
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&part, text))
            .and_then(|()| std::fs::rename(&part, path));
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Choices;

    #[test]
    fn choices_are_found_again_and_damaged_lines_are_ignored() {
        let folder = std::env::temp_dir().join(format!("kiln-cuda-{}-choices", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let path = folder.join("products.txt");
        let (a, b) = (Choices::key("a"), Choices::key("b"));
        let mut first = Choices::at(Some(path.clone()));
        let mut second = Choices::at(Some(path.clone()));
        first.put(a, ([1, 2, 3, 4, 5, 6, 7, u64::MAX], 99));
        second.put(b, ([0; 8], 0));
        let mut text = std::fs::read_to_string(&path).expect("the file was written");
        text.push_str("not a line\n0123 4\n");
        std::fs::write(&path, text).expect("the file can be written");
        let again = Choices::at(Some(path));
        assert_eq!(again.get(a), Some(([1, 2, 3, 4, 5, 6, 7, u64::MAX], 99)));
        assert_eq!(again.get(b), Some(([0; 8], 0)));
        assert_eq!(again.get(Choices::key("c")), None);
        assert_eq!(again.known.len(), 2);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
