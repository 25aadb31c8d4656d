//! Every annotated struct that is linked into the program.
//!
//! `#[pinned_api("/ns")]` submits a [`Registration`] with the `inventory` crate; the linker gathers them.

use crate::api::definition::{Blueprint, PinnedApi};
use crate::error::Error;

/// What an annotated struct with a namespace leaves for the worker to find.
#[doc(hidden)]
pub struct Registration {
    pub(crate) blueprint: fn() -> Blueprint,
    pub(crate) module: &'static str,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) package: &'static str,
}

impl Registration {
    /// Used by generated code alone.
    pub const fn new<T: PinnedApi>(
        module: &'static str,
        file: &'static str,
        line: u32,
        package: &'static str,
    ) -> Self {
        Self {
            blueprint: Blueprint::of::<T>,
            module,
            file,
            line,
            package,
        }
    }

    fn place(&self) -> String {
        format!(
            "{} ({}:{}, crate {})",
            (self.blueprint)().type_name,
            self.file,
            self.line,
            self.package
        )
    }
}

inventory::collect!(Registration);

/// All registrations, by namespace.
///
/// # Errors
///
/// [`Error::DuplicateNamespace`], which names both structs.
pub(crate) fn registered() -> Result<Vec<&'static Registration>, Error> {
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
    Ok(all)
}
