use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::content::Content;
use super::delivery::Callback;
use super::group::{Group, Held};
use super::path::Segment;

/// One observable: what every handle, cursor, view and mount of it shares.
pub(super) struct Node {
    /// The group as last seen; it is followed to where it went.
    pub(super) group: Mutex<Arc<Group>>,
    /// Taken under the group's lock only, so never contended.
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) content: Content,
    /// Where the node is mounted.
    pub(super) link: Option<Link>,
    /// Whom to tell, in order of subscription and mounting.
    pub(super) listeners: Vec<Listener>,
}

pub(super) enum Listener {
    Subscriber {
        id: u64,
        callback: Callback,
    },
    /// The parent's listeners, at the place in the order at which the node was mounted.
    Parent,
}

/// A mount as the mounted node sees it.
pub(super) struct Link {
    /// Unique in the process: tells this mount from a later one at the same place.
    pub(super) id: u64,
    pub(super) parent: Weak<Node>,
    /// Where in the parent's own content.
    pub(super) path: Vec<Segment>,
}

/// Numbers for what must be told apart in the process: subscriptions and mounts.
pub(super) fn fresh_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Node {
    pub(super) fn new(content: Content) -> Arc<Self> {
        Arc::new(Self {
            group: Mutex::new(Group::new()),
            state: Mutex::new(State {
                content,
                link: None,
                listeners: Vec::new(),
            }),
        })
    }

    /// The node's state. `_held` shows that the group's lock is held; do not ask for it twice at once.
    pub(super) fn state(&self, _held: &Held) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The nodes it is mounted in, the closest first.
    pub(super) fn ancestors(&self, held: &Held) -> Vec<Arc<Node>> {
        let parent = |node: &Node| node.state(held).parent();
        std::iter::successors(parent(self), |node| parent(node)).collect()
    }
}

impl State {
    /// The node it is mounted in. A parent that nobody can reach any more is none.
    pub(super) fn parent(&self) -> Option<Arc<Node>> {
        self.link.as_ref()?.parent.upgrade()
    }

    pub(super) fn mount(&mut self, parent: &Arc<Node>, path: Vec<Segment>) {
        self.unmount();
        self.link = Some(Link {
            id: fresh_id(),
            parent: Arc::downgrade(parent),
            path,
        });
        self.listeners.push(Listener::Parent);
    }

    pub(super) fn unmount(&mut self) {
        self.link = None;
        self.listeners
            .retain(|listener| !matches!(listener, Listener::Parent));
    }
}
