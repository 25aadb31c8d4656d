//! What a worker calls an instance.

use std::fmt;
use std::sync::Arc;

/// An instance, as workers know it. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceKey {
    /// The namespace, with the slash.
    pub ns: Arc<str>,
    /// The id.
    pub id: Arc<str>,
}

impl InstanceKey {
    /// `id` in `ns`.
    pub fn new(ns: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self {
            ns: ns.into(),
            id: id.into(),
        }
    }
}

impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ns, self.id)
    }
}
