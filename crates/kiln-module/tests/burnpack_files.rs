//! Burnpack files on the disk: mapped when read, replaced whole when written.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use kiln_module::record::burnpack::{AtomicFile, Error, PackErrorKind, PackTensor, Reader, Writer};
use kiln_tensor::DType;

use crate::burnpack::{bytes_tensor, sample};

/// A folder of its own for one test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kiln-burnpack-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        let mut names: Vec<String> = entries.map(|e| e.expect("readable").file_name().into_string().expect("plain names")).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_written_file_is_mapped_and_equal_to_the_bytes_in_memory() {
    let folder = Folder::new();
    let tensors = || vec![bytes_tensor("b", 300), bytes_tensor("a", 5)];
    let path = folder.0.join("new/model");
    Writer::new(tensors()).write_to_file(&path).expect("writable");
    let whole = Writer::new(tensors()).into_bytes().expect("writable");
    let written = folder.0.join("new/model.bpk");
    assert!(fs::read(&written).expect("the extension was added")[..] == whole[..]);
    let reader = Reader::open(&path).expect("the extension is tried");
    assert_eq!(reader.bytes("a").expect("the tensor is there")[..], [0, 1, 2, 3, 4]);
    let tensor = reader.tensors().remove(0);
    drop(reader);
    // The tensor keeps the mapping alive, even when the file is replaced.
    Writer::new(Vec::new()).write_to_file(&path).expect("writable");
    assert_eq!(tensor.to_bytes().expect("held")[299], 43);
    assert!(Reader::open(&path).expect("readable").index().tensors.is_empty());
}

#[test]
fn extensions_are_only_added_where_there_is_none() {
    let folder = Folder::new();
    Writer::new(Vec::new()).write_to_file(folder.0.join("model.v1")).expect("writable");
    Writer::new(Vec::new()).auto_extension(false).write_to_file(folder.0.join("bare")).expect("writable");
    assert_eq!(folder.names(), ["bare", "model.v1"]);
    assert!(Reader::open(folder.0.join("bare")).is_ok(), "the exact path comes first");
}

#[test]
fn a_file_in_the_way_is_kept_unless_it_may_be_replaced() {
    let folder = Folder::new();
    let path = folder.0.join("model.bpk");
    Writer::new(vec![bytes_tensor("old", 1)]).overwrite(false).write_to_file(&path).expect("nothing is in the way");
    let error = Writer::new(Vec::new()).overwrite(false).write_to_file(&path).expect_err("in the way");
    assert_eq!(error.kind, PackErrorKind::AlreadyExists);
    let error = Writer::new(Vec::new()).overwrite(false).write_to_file_in_place(&path).expect_err("in the way");
    assert_eq!(error.to_string(), format!("{}: exists already", path.display()));
    let old = Reader::open(&path).expect("readable").bytes("old").expect("is there");
    Writer::new(Vec::new()).write_to_file_in_place(&path).expect("replaced by default");
    assert_eq!(folder.names(), ["model.bpk"]);
    assert_eq!(old[..], [0], "what was read before stays");
}

#[test]
fn a_save_that_fails_leaves_the_old_file_and_no_scratch() {
    let folder = Folder::new();
    let path = folder.0.join("model.bpk");
    Writer::new(vec![bytes_tensor("old", 9)]).write_to_file(&path).expect("writable");
    let old = fs::read(&path).expect("readable");
    let broken = PackTensor::deferred("broken".into(), DType::U8, [1], None, 1, || Err(Error::IoError("device lost".into())));
    let error = Writer::new(vec![bytes_tensor("new", 9), broken]).write_to_file(&path).expect_err("fails half-way");
    assert_eq!(error.to_string(), format!("{}: tensor `broken` cannot be written: device lost", path.display()));
    assert!(fs::read(&path).expect("readable") == old);
    assert_eq!(folder.names(), ["model.bpk"]);
}

/// Names the file that the test below saves to in a process of its own.
const CRASH: &str = "KILN_TEST_CRASH_WHILE_SAVING_TO";

#[test]
fn a_crash_during_a_save_leaves_the_old_file() {
    let big = 1 << 20;
    if let Some(path) = std::env::var_os(CRASH) {
        // A first tensor that is written for sure, then the process ends.
        let crashing = PackTensor::deferred("crashing".into(), DType::U8, [1], None, 1, || std::process::abort());
        let result = Writer::new(vec![bytes_tensor("new", big), crashing]).write_to_file(path);
        unreachable!("the process ended before {result:?}");
    }
    let folder = Folder::new();
    let path = folder.0.join("model.bpk");
    Writer::new(vec![bytes_tensor("old", 9)]).write_to_file(&path).expect("writable");
    let old = fs::read(&path).expect("readable");
    let program = std::env::current_exe().expect("tests are programs");
    let crash = std::process::Command::new(program)
        .args(["--exact", "burnpack_files::a_crash_during_a_save_leaves_the_old_file", "--nocapture"])
        .env(CRASH, &path)
        .output()
        .expect("the program starts again");
    assert!(!crash.status.success());
    assert!(fs::read(&path).expect("readable") == old);
    let scratch = folder.names().into_iter().find(|name| name != "model.bpk").expect("the crash left its scratch file");
    assert!(fs::metadata(folder.0.join(scratch)).expect("is there").len() >= big as u64, "the crash came before the file was begun");
    // The next save is not in its way.
    Writer::new(vec![bytes_tensor("new", 3)]).write_to_file(&path).expect("writable");
    assert!(Reader::open(&path).expect("readable").entry("new").is_some());
}

#[test]
fn a_scratch_file_is_beside_its_destination_until_committed() {
    use std::io::Write;
    let folder = Folder::new();
    let path = folder.0.join("a.txt");
    let (atomic, mut file) = AtomicFile::create(&path).expect("writable");
    assert_eq!(atomic.path().parent(), path.parent());
    file.write_all(b"one").expect("writable");
    assert!(!path.exists());
    atomic.commit_new().expect("nothing is in the way");
    assert_eq!(fs::read(&path).expect("readable"), b"one");
    let (atomic, mut file) = AtomicFile::create(&path).expect("writable");
    file.write_all(b"two").expect("writable");
    assert_eq!(atomic.commit_new().expect_err("in the way").kind, PackErrorKind::AlreadyExists);
    let (atomic, mut file) = AtomicFile::create(&path).expect("writable");
    file.write_all(b"three").expect("writable");
    drop(atomic);
    assert_eq!(fs::read(&path).expect("readable"), b"one");
    let (atomic, mut file) = AtomicFile::create(&path).expect("writable");
    file.write_all(b"four").expect("writable");
    atomic.commit().expect("replaced");
    assert_eq!(fs::read(&path).expect("readable"), b"four");
    assert_eq!(folder.names(), ["a.txt"]);
}

#[cfg(unix)]
#[test]
fn a_link_keeps_pointing_to_the_file_that_is_replaced() {
    let folder = Folder::new();
    let (link, target) = (folder.0.join("latest.bpk"), folder.0.join("model.bpk"));
    Writer::new(Vec::new()).write_to_file(&target).expect("writable");
    std::os::unix::fs::symlink(&target, &link).expect("links can be made");
    Writer::new(vec![bytes_tensor("new", 1)]).write_to_file(&link).expect("writable");
    assert!(link.is_symlink());
    assert!(Reader::open(&target).expect("readable").entry("new").is_some());
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let path = folder.0.join("absent.bpk");
    let error = Reader::open(&path).err().expect("there is no such file");
    assert!(matches!(error.kind, PackErrorKind::Io(_)));
    assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
    let error = Reader::open_exact(&folder.0).err().expect("a folder is no file");
    assert!(error.to_string().ends_with("is not a file"), "{error}");
    let empty = folder.0.join("empty.bpk");
    fs::write(&empty, b"").expect("writable");
    assert_eq!(Reader::open(&empty).err().expect("empty").kind, PackErrorKind::Header { size: 0 });
    let whole = sample("module_full.bpk");
    fs::write(&empty, &whole[..whole.len() - 1]).expect("writable");
    let kind = Reader::open(&empty).err().expect("truncated").kind;
    assert!(matches!(kind, PackErrorKind::OutOfRange { ref name, .. } if name == "mask"), "{kind:?}");
}
