//! Whether the file that is written to is still the one that the next process would open.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ffi;

/// Where the files of an open store are. A file that was removed or replaced takes writes as before, and nobody would
/// ever read them: SQLite looks for that with other journals, but not with a write-ahead log.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    log: PathBuf,
    found: Identity,
}

/// What a file is, whatever its name. Where the system does not tell, any file at the place is the one.
#[derive(Debug, PartialEq, Eq)]
struct Identity(#[cfg(unix)] (u64, u64));

impl Identity {
    /// That of the file at `path`, without asking for its times.
    ///
    /// Since Linux 6.13 a file whose times somebody has asked for gets a finer one at its next write, which the flush after it
    /// has to write as well: a question after each commit would double what each commit writes.
    #[cfg(target_os = "linux")]
    fn of(path: &Path) -> io::Result<Self> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

        match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
            Ok(found) => {
                let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
                Ok(Self((device, found.stx_ino)))
            }
            // No such file; or a kernel from before 2017, or a sandbox that knows no `statx` and forbids it (`EPERM`).
            Err(_) => Self::with_times_of(path),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(path: &Path) -> io::Result<Self> {
        Self::with_times_of(path)
    }

    fn with_times_of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;

            Self((found.dev(), found.ino()))
        };
        #[cfg(not(unix))]
        let identity = {
            drop(found);
            Self()
        };
        Ok(identity)
    }
}

impl Place {
    /// The place of the file at `path`, which has just been opened.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Ok(Self {
            found: Identity::of(path)?,
            path: path.to_owned(),
            log: log.into(),
        })
    }

    /// Where the file is, whatever links led there.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// After a commit: what was committed is where it will be looked for.
    pub(super) fn check(&self) -> rusqlite::Result<()> {
        let is_same = Identity::of(&self.path).is_ok_and(|found| found == self.found);
        let is_logged = Identity::of(&self.log).is_ok();
        let said = match (is_same, is_logged) {
            (true, true) => return Ok(()),
            (true, false) => "its write-ahead log was removed",
            (false, _) => "the file was removed or replaced",
        };
        let code = ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED);
        let said = format!("{}: {said} while it was open", self.path.display());
        Err(rusqlite::Error::SqliteFailure(code, Some(said)))
    }
}
