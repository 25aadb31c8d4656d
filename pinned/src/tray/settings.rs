//! What a tray type declares (T1.4).

use std::time::Duration;

/// The settings of a tray type.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct TraySettings {
    pub version: i64,
    pub max_attempts: u64,
    pub dispatch_timeout: Duration,
    pub drain_on_eviction: bool,
}

impl TraySettings {
    /// What holds where nothing is said: ten deliveries, each of at most half a day.
    pub const DEFAULT: Self = Self {
        version: 0,
        max_attempts: 10,
        dispatch_timeout: Duration::from_secs(12 * 60 * 60),
        drain_on_eviction: false,
    };
}

/// Whether a declaration stands for one tray, or for any number with ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Single,
    Map { always_open: bool },
}

impl Form {
    /// Always open: opened with every activation, and closed with the instance (T1.3).
    pub(crate) fn is_always_open(self) -> bool {
        matches!(self, Self::Single | Self::Map { always_open: true })
    }
}

/// The id of a single tray (T1.2).
pub(crate) const SINGLE_ID: &str = "~";
