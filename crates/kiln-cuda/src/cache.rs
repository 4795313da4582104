//! Machine code on disk, one file a source, architecture and compiler, and what else takes long to find out, in the user's cache folder.
//!
//! Files are written whole under another name and then renamed, so several processes may share the folder. A file that is not what it claims is ignored and replaced.
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::steps::Source;

/// First bytes of a file.
const MAGIC: &[u8; 8] = b"kilncub1";
/// Most bytes of all files; the longest unused ones go first.
const MOST: u64 = 1 << 30;

/// A folder of compiled kernels.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
}

/// A 128-bit hash of bytes that is the same in every process (FNV-1a).
pub(crate) fn hash(parts: &[&[u8]]) -> u128 {
    let mut h: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for part in parts {
        for b in part.iter().copied().chain([0xff]) {
            h = (h ^ b as u128).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
    h
}

/// The kind of files that hold machine code.
const CODE: &str = "cubin";

fn code_key(source: &Source, options: &[String], version: (i32, i32)) -> u128 {
    let version = format!("{}.{}", version.0, version.1);
    hash(&[source.entry.as_bytes(), source.code.as_bytes(), options.join(" ").as_bytes(), version.as_bytes()])
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut h = DefaultHasher::new();
    bytes.hash(&mut h);
    h.finish()
}

impl Cache {
    /// The user's: `KILN_CACHE`, else the system's cache folder. Without either nothing is kept.
    pub fn of_user() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let base = set("KILN_CACHE").or_else(|| set("XDG_CACHE_HOME").map(|p| p.join("kiln"))).or_else(|| set("HOME").map(|p| p.join(".cache/kiln")));
        Cache { folder: base.map(|p| p.join("cuda")) }
    }

    /// One in this folder.
    pub fn at(folder: &Path) -> Self {
        Cache { folder: Some(folder.into()) }
    }

    /// A file of the folder that is no machine code.
    pub(crate) fn file(&self, name: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|f| f.join(name))
    }

    fn path(&self, key: u128, kind: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|f| f.join(format!("{key:032x}.{kind}")))
    }

    /// What is kept under a key, if it is there and whole.
    pub(crate) fn get(&self, key: u128, kind: &str) -> Option<Vec<u8>> {
        let path = self.path(key, kind)?;
        let bytes = fs::read(&path).ok()?;
        let (head, kept) = bytes.split_at_checked(16)?;
        let whole = &head[..8] == MAGIC && head[8..] == checksum(kept).to_le_bytes();
        if !whole {
            return None;
        }
        // The time of the last use decides what is deleted first.
        if let Ok(file) = fs::File::options().append(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(kept.to_vec())
    }

    /// Keeps bytes under a key. A folder that cannot be written is no error: nothing is kept then.
    pub(crate) fn put(&self, key: u128, kind: &str, kept: &[u8]) {
        let (Some(path), Some(folder)) = (self.path(key, kind), &self.folder) else { return };
        if fs::create_dir_all(folder).is_err() {
            return;
        }
        let unique = format!("{}-{:?}.part", std::process::id(), std::thread::current().id()).replace(['(', ')'], "");
        let part = path.with_extension(unique);
        let bytes = [&MAGIC[..], &checksum(kept).to_le_bytes(), kept].concat();
        if fs::write(&part, bytes).and_then(|()| fs::rename(&part, &path)).is_err() {
            let _ = fs::remove_file(&part);
        }
    }

    /// The machine code of a source, if it is there and whole.
    pub fn read(&self, source: &Source, options: &[String], version: (i32, i32)) -> Option<Vec<u8>> {
        self.get(code_key(source, options, version), CODE)
    }

    /// Keeps the machine code of a source, as far as the folder can be written.
    pub fn write(&self, source: &Source, options: &[String], version: (i32, i32), cubin: &[u8]) {
        self.put(code_key(source, options, version), CODE, cubin);
    }

    /// Deletes what has not been used for longest, until the folder is small enough.
    pub fn trim(&self) {
        self.trim_to(MOST);
    }

    fn trim_to(&self, most: u64) {
        let Some(entries) = self.folder.as_ref().and_then(|f| fs::read_dir(f).ok()) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = (entries.flatten())
            .filter_map(|e| e.metadata().ok().map(|m| (m.modified().unwrap_or(SystemTime::UNIX_EPOCH), m.len(), e.path())))
            .collect();
        let mut total: u64 = files.iter().map(|f| f.1).sum();
        files.sort();
        for (_, size, path) in files {
            if total <= most {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CODE, Cache, code_key};
    use crate::steps::Source;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("kiln-cuda-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn source(code: &str) -> Source {
        Source { entry: "k".into(), code: code.into() }
    }

    #[test]
    fn code_is_found_again_by_source_options_and_compiler() {
        let folder = folder("found");
        let cache = Cache::at(&folder);
        let options = ["-x".to_string()];
        cache.write(&source("a"), &options, (13, 0), b"code");
        assert_eq!(cache.read(&source("a"), &options, (13, 0)), Some(b"code".to_vec()));
        assert_eq!(cache.read(&source("b"), &options, (13, 0)), None);
        assert_eq!(cache.read(&source("a"), &[], (13, 0)), None);
        assert_eq!(cache.read(&source("a"), &options, (13, 1)), None);
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn damaged_files_are_ignored_and_replaced() {
        let folder = folder("damaged");
        let cache = Cache::at(&folder);
        cache.write(&source("a"), &[], (13, 0), b"code");
        let path = cache.path(code_key(&source("a"), &[], (13, 0)), CODE).expect("the cache has a folder");
        for bad in [&b"kilncub1"[..], b"", b"kilncub1xxxxxxxxcode"] {
            std::fs::write(&path, bad).expect("the file can be written");
            assert_eq!(cache.read(&source("a"), &[], (13, 0)), None);
        }
        cache.write(&source("a"), &[], (13, 0), b"code");
        assert!(cache.read(&source("a"), &[], (13, 0)).is_some());
        let _ = std::fs::remove_dir_all(&folder);
    }

    #[test]
    fn the_folder_stays_small() {
        let folder = folder("small");
        let cache = Cache::at(&folder);
        for n in 0..10 {
            cache.write(&source(&n.to_string()), &[], (13, 0), &[0; 1000]);
        }
        cache.trim_to(5000);
        let left: u64 = std::fs::read_dir(&folder).expect("the folder is there").flatten().map(|e| e.metadata().map_or(0, |m| m.len())).sum();
        assert!(left <= 5000 && left > 3000, "{left} bytes left");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
