//! The hosts of a worker: from a path to the one that serves it.

#[cfg(feature = "fleet")]
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::core::Host;
use super::head::Target;
use super::wind_down::{DrainSource, WindDown};
use crate::lease::Lease;

/// The hosts of a worker, by namespace.
pub(crate) struct Hosts {
    /// Sorted by namespace.
    by_segment: Box<[Arc<Host>]>,
    /// In the order in which they were attached.
    attached: Box<[Arc<Host>]>,
    /// Held while drains are set.
    drains: Mutex<()>,
}

impl Hosts {
    pub(crate) fn new(attached: Vec<Arc<Host>>) -> Self {
        let mut by_segment = attached.clone();
        by_segment.sort_by(|a, b| a.segment().cmp(b.segment()));
        Self {
            by_segment: by_segment.into(),
            attached: attached.into(),
            drains: Mutex::default(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.attached.iter()
    }

    /// Sets or lifts a drain of every host, and has their instances act on it.
    pub(crate) fn apply_drain(&self, source: DrainSource, drain: Option<WindDown>, lease: &Lease) {
        {
            // One at a time, so that the cap is that of the drains in force. Instances act on them after the lock: their
            // callbacks may drain or revoke themselves.
            let _one_at_a_time = self.drains.lock();
            for host in self.iter() {
                host.set_drain(source, drain);
            }
            // The lease may not outlive the earliest deadline (H10.6, W7.8).
            lease.cap(self.iter().filter_map(|host| host.drain_deadline()).min());
        }
        for host in self.iter() {
            host.follow_drains();
        }
    }

    /// The host of `/<namespace>/<id>...`, and where in the path the id stands. The path stays as it was sent: an
    /// encoded slash is part of its segment.
    pub(crate) fn find(&self, path: &str) -> Option<(&Arc<Host>, Target)> {
        let segment_end = 1 + slash_in(path.strip_prefix('/')?)?;
        let segment = &path[1..segment_end];
        let index = self
            .by_segment
            .binary_search_by(|host| host.segment().cmp(segment))
            .ok()?;
        Some((&self.by_segment[index], below(path, segment_end)))
    }
}

/// What a registration says of them, and finds them by.
#[cfg(feature = "fleet")]
impl Hosts {
    /// The host of a namespace, with its slash.
    pub(crate) fn named(&self, namespace: &str) -> Option<&Arc<Host>> {
        self.iter().find(|host| &*host.namespace == namespace)
    }

    /// The one host, where there is one only.
    pub(crate) fn only(&self) -> Option<&Arc<Host>> {
        match &*self.attached {
            [host] => Some(host),
            _ => None,
        }
    }

    /// The data identities of the hosts that have one of their own.
    pub(crate) fn envs(&self) -> BTreeMap<String, String> {
        self.iter()
            .filter_map(|host| Some((host.namespace.to_string(), host.options.env.clone()?)))
            .collect()
    }

    /// The ids of all records, in whatever state, of the namespaces that have any (W3.5).
    pub(crate) fn instance_ids(&self) -> BTreeMap<String, Vec<String>> {
        self.iter()
            .map(|host| (host.namespace.to_string(), host.ids()))
            .filter(|(_, ids)| !ids.is_empty())
            .collect()
    }
}

/// Where the first slash stands. Segments are short: a plain loop beats a search that has to warm up.
fn slash_in(text: &str) -> Option<usize> {
    text.bytes().position(|byte| byte == b'/')
}

/// The target of a path whose namespace ends at `namespace_end`, where a slash stands.
fn below(path: &str, namespace_end: usize) -> Target {
    let start = namespace_end + 1;
    let end = slash_in(&path[start..]).map_or(path.len(), |length| start + length);
    Target {
        id: start..end,
        rest: end..path.len(),
    }
}
