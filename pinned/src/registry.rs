//! Every annotated struct that is linked into the program.
//!
//! `#[pinned_api("/ns")]` submits a [`Registration`] with the `inventory` crate; the linker gathers them.

use crate::api::definition::{Blueprint, PinnedApi};
use crate::error::{Error, Result};
use crate::worker::{PinnedWorker, WorkerBuilder};

/// What an annotated struct with a namespace leaves for the worker to find.
#[doc(hidden)]
pub struct Registration {
    blueprint: fn() -> Blueprint,
    module: &'static str,
    file: &'static str,
    line: u32,
}

impl Registration {
    /// Used by generated code alone.
    pub const fn new<T: PinnedApi>(module: &'static str, file: &'static str, line: u32) -> Self {
        Self {
            blueprint: Blueprint::of::<T>,
            module,
            file,
            line,
        }
    }

    fn place(&self) -> String {
        let Blueprint {
            type_name, package, ..
        } = (self.blueprint)();
        format!("{type_name} ({}:{}, crate {package})", self.file, self.line)
    }
}

inventory::collect!(Registration);

impl PinnedWorker {
    /// A worker of every annotated struct that is linked in, set up from the environment.
    ///
    /// | variable | meaning | default |
    /// |---|---|---|
    /// | `PORT` | where [`PinnedWorker::serve`] listens | 8000 |
    /// | `BIND` | on which address | 0.0.0.0 |
    /// | `PINNED_STORE` | `memory:`, `sqlite:PATH` or `postgres://USER@HOST/DATABASE`; opened only if something that is mounted keeps state | `sqlite:pinned.db` |
    /// | `PINBOARD_URL` | the control plane whose fleet it joins (feature `fleet`) | local mode |
    /// | `PINBOARD_TOKEN`, `ADVERTISE_URL` | what the control plane knows this worker by, and where it reaches it; an error without its URL | none |
    /// | `PINNED_HOSTNAME` | see [`WorkerBuilder::hostname`] | none |
    /// | `PINNED_PROBE_INTERVAL_MS`, `PINNED_PROBE_THRESHOLD_MS` | see [`WorkerBuilder::self_probe`]; an interval of 0 turns it off | 1000, 5000 |
    /// | `PINNED_PROBE_PORT` | see [`WorkerBuilder::probe_address`] | none |
    ///
    /// Local mode is dev mode: it logs a warning, and is refused when `NODE_ENV`, `ENVIRONMENT` or `APP_ENV` says
    /// `production` or `prod`, unless `PINBOARD_ALLOW_DEV_IN_PRODUCTION=1`.
    ///
    /// A struct is found when the linker keeps it. It keeps whatever a binary refers to; a library crate of which
    /// nothing at all is used may be dropped whole, and [`link!`](crate::link) prevents that.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateNamespace`] when two structs claim one namespace, [`Error::Config`] for a malformed setting, and
    /// when no struct is linked in.
    pub fn from_registry() -> Result<Self> {
        Self::builder().hosts_from_registry().environment().build()
    }
}

impl WorkerBuilder {
    /// Mounts every annotated struct that is linked in and has a namespace.
    pub fn hosts_from_registry(self) -> Self {
        self.registry(registered)
    }
}

/// All registered structs, by namespace.
///
/// # Errors
///
/// [`Error::DuplicateNamespace`], which names both structs.
fn registered() -> Result<Vec<Blueprint>> {
    let mut all: Vec<&'static Registration> = inventory::iter::<Registration>.into_iter().collect();
    // The linker's order means nothing; this one is the same in every build.
    all.sort_by_key(|registration| {
        let namespace = (registration.blueprint)().namespace;
        (namespace, registration.module, registration.line)
    });
    for pair in all.windows(2) {
        let namespace = (pair[0].blueprint)().namespace;
        if namespace == (pair[1].blueprint)().namespace {
            return Err(Error::DuplicateNamespace(format!(
                "two structs claim the namespace {:?}: {} and {}",
                namespace.unwrap_or_default(),
                pair[0].place(),
                pair[1].place()
            )));
        }
    }
    Ok(all
        .into_iter()
        .map(|registration| (registration.blueprint)())
        .collect())
}
