//! Where a server keeps what is its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, mem, process};

/// A temporary folder, removed again unless a guardian has taken it over.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn make(of: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("pinned-{of}-{}-{number}", process::id());
            let path = env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Self(path),
                // Left over by a process of the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("cannot make {}: {error}", path.display()),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// It is somebody else's to remove from here on.
    pub(super) fn hand_over(mut self) -> PathBuf {
        let path = mem::take(&mut self.0);
        mem::forget(self);
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // There is nothing to do about a failure.
        let _ = fs::remove_dir_all(&self.0);
    }
}
