//! Whose rows an operation is about, and on whose behalf it comes.

use std::fmt;
use std::sync::Arc;

/// One instance: its namespace, with its slash, and its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceKey {
    /// The namespace, with its slash.
    pub namespace: Arc<str>,
    /// The id.
    pub id: Arc<str>,
}

impl InstanceKey {
    /// The key of `id` under `namespace`.
    ///
    /// ```
    /// use pinned::durability::InstanceKey;
    ///
    /// assert_eq!(InstanceKey::new("/rooms", "blue").to_string(), "/rooms/blue");
    /// ```
    pub fn new(namespace: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            id: id.into(),
        }
    }
}

impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.id)
    }
}

/// An activation's claim on its instance: every operation carries one, and every operation is refused whose epoch is
/// below the stored one (D2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The instance.
    pub instance: InstanceKey,
    /// The placement epoch that the activation writes at; 0 without a control plane.
    pub epoch: u64,
}

impl Claim {
    /// The claim of an activation at `epoch`.
    pub fn new(instance: InstanceKey, epoch: u64) -> Self {
        Self { instance, epoch }
    }
}

/// One row of an instance: the name of its tray, and the id within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrayKey {
    /// The declared name of the tray.
    pub tray_ns: Arc<str>,
    /// The id within a map of trays; `"~"` for a single one (T1.2).
    pub tray_id: Arc<str>,
}

impl TrayKey {
    /// The key of tray `tray_id` of `tray_ns`.
    pub fn new(tray_ns: impl Into<Arc<str>>, tray_id: impl Into<Arc<str>>) -> Self {
        Self {
            tray_ns: tray_ns.into(),
            tray_id: tray_id.into(),
        }
    }
}

impl fmt::Display for TrayKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tray_ns, self.tray_id)
    }
}
