//! Keeping other processes out (local mode).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process;

use fs4::{FileExt, TryLockError};

use super::file;
use crate::durability::StoreError;

/// Longer than any holder's line; a file that is longer is not one of ours.
const LONGEST_LINE: u64 = 512;

/// An exclusive lock on a file beside the store. The system lets go of it with the process, however that ends; the
/// file stays, because a waiter may have it open.
#[derive(Debug)]
pub(super) struct HeldFile {
    _file: File,
}

/// Where the lock of the store at `path` is.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Takes the lock of the store at `path`, without waiting.
pub(super) fn hold(path: &Path) -> Result<HeldFile, StoreError> {
    let place = lock_path(path);
    let failed = |cause: io::Error| file::error(&place, "cannot be locked", Some(cause.into()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut lock = options.open(&place).map_err(failed)?;
    match FileExt::try_lock(&lock) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StoreError::Held {
                store: path.display().to_string(),
                holder: holder(&mut lock),
            });
        }
        Err(TryLockError::Error(cause)) => return Err(failed(cause)),
    }
    let host = gethostname::gethostname();
    let line = format!("process {} on {}\n", process::id(), host.to_string_lossy());
    lock.set_len(0)
        .and_then(|()| lock.write_all(line.as_bytes()))
        .map_err(failed)?;
    Ok(HeldFile { _file: lock })
}

/// Who wrote itself into the file; a holder that is about to, or a system that lets nobody read, leaves it unknown.
fn holder(lock: &mut File) -> String {
    let mut line = String::new();
    let read = lock
        .rewind()
        .and_then(|()| lock.take(LONGEST_LINE).read_to_string(&mut line));
    match (read, line.trim()) {
        (Ok(_), named) if named.starts_with("process ") && !named.contains(char::is_control) => {
            named.to_owned()
        }
        _ => "another process".to_owned(),
    }
}
