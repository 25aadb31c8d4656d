//! The hosts of a worker: from a path to the one that serves it.

use std::sync::Arc;

use super::core::Host;
use super::head::Target;

/// The hosts of a worker, by namespace.
pub(crate) struct Hosts {
    /// Sorted by namespace.
    by_segment: Box<[Arc<Host>]>,
    /// In the order in which they were attached.
    attached: Box<[Arc<Host>]>,
}

impl Hosts {
    pub(crate) fn new(attached: Vec<Arc<Host>>) -> Self {
        let mut by_segment = attached.clone();
        by_segment.sort_by(|a, b| a.segment().cmp(b.segment()));
        Self {
            by_segment: by_segment.into(),
            attached: attached.into(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Host>> {
        self.attached.iter()
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
