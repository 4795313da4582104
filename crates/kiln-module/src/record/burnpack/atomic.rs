//! Files that appear whole or not at all.

use alloc::string::{String, ToString};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{PackErrorKind, PackFileError};

/// A scratch file beside its destination, which it replaces when committed. Dropped without that, it is removed.
///
/// After a crash at any moment the destination holds either what it held before or all of the new file.
pub struct AtomicFile {
    scratch: PathBuf,
    destination: PathBuf,
    file: File,
    committed: bool,
}

impl AtomicFile {
    /// Makes a scratch file in the folder of `destination`, and gives it to be written to. A symbolic link is followed: the file that it
    /// points to is the destination.
    ///
    /// # Errors
    ///
    /// The file cannot be made there.
    pub fn create(destination: &Path) -> Result<(Self, File), PackFileError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let destination = match destination.is_symlink() {
            true => fs::canonicalize(destination).map_err(|error| failed(destination, error))?,
            false => destination.to_path_buf(),
        };
        let name = destination.file_name().ok_or_else(|| {
            let kind = PackErrorKind::Io("is no path of a file".into());
            kind.in_file(&name_of(&destination))
        })?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let mut scratch = std::ffi::OsString::from(".");
            scratch.push(name);
            scratch.push(alloc::format!(".{}-{number}.tmp", std::process::id()));
            let scratch = destination.with_file_name(scratch);
            let file = match File::create_new(&scratch) {
                Ok(file) => file,
                // Left over from a process of the same number that crashed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed(&scratch, error)),
            };
            let mut atomic = Self { scratch, destination, file, committed: false };
            return match atomic.file.try_clone() {
                Ok(file) => Ok((atomic, file)),
                Err(error) => {
                    let error = failed(&atomic.scratch, error);
                    atomic.remove();
                    Err(error)
                }
            };
        }
    }

    /// Where the scratch file is.
    pub fn path(&self) -> &Path {
        &self.scratch
    }

    /// Brings the file to the disk and puts it in the place of its destination, whatever is there.
    ///
    /// # Errors
    ///
    /// The file system refuses; the destination is unchanged.
    pub fn commit(mut self) -> Result<(), PackFileError> {
        let moved = self.file.sync_all();
        let moved = moved.and_then(|()| fs::rename(&self.scratch, &self.destination));
        moved.map_err(|error| failed(&self.destination, error))?;
        self.committed = true;
        self.sync_folder()
    }

    /// As [`commit`](Self::commit), but never replaces a file.
    ///
    /// # Errors
    ///
    /// There is a file at the destination, or the file system refuses.
    pub fn commit_new(self) -> Result<(), PackFileError> {
        let synced = self.file.sync_all();
        synced.map_err(|error| failed(&self.destination, error))?;
        // A link is made in one step and only where nothing is.
        match fs::hard_link(&self.scratch, &self.destination) {
            Ok(()) => self.sync_folder(),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(failed(&self.destination, error)),
            // Some file systems have no links: there the name is taken first, then filled.
            Err(_) => match File::create_new(&self.destination) {
                Ok(_) => self.commit(),
                Err(error) => Err(failed(&self.destination, error)),
            },
        }
    }

    /// Brings the new name to the disk; only Unix can and needs to.
    fn sync_folder(&self) -> Result<(), PackFileError> {
        if cfg!(unix) {
            let folder = match self.destination.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            let synced = File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|error| failed(folder, error))?;
        }
        Ok(())
    }

    fn remove(&mut self) {
        if !self.committed {
            // There is nothing to be done about a scratch file that cannot be removed.
            let _ = fs::remove_file(&self.scratch);
        }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        self.remove();
    }
}

fn name_of(path: &Path) -> String {
    path.display().to_string()
}

fn failed(path: &Path, error: io::Error) -> PackFileError {
    let kind = match error.kind() {
        ErrorKind::AlreadyExists => PackErrorKind::AlreadyExists,
        _ => PackErrorKind::Io(error.to_string()),
    };
    kind.in_file(&name_of(path))
}
