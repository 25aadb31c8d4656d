//! The lock of all trees that were ever mounted together.
//!
//! Every node belongs to one group, and everything a node holds is read and written under its group's lock. A write that
//! mounts a node first unites both groups; groups are never divided again, so what was found united stays so. The lock is
//! short: no subscriber, no closure and no destructor of a user runs under it, which is why it cannot be part of a deadlock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::ThreadId;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::delivery::Delivery;
use super::node::Node;

pub(super) struct Group {
    lock: Mutex<Standing>,
    /// Something that a thread may wait for has changed: a subscriber returned, or the group went into another.
    changed: Condvar,
}

enum Standing {
    Live(Held),
    /// United with another group, which took over everything.
    Merged(Arc<Group>),
}

/// What a group keeps, and the proof that its lock is held.
#[derive(Default)]
pub(super) struct Held {
    /// What subscribers are still to be told, in the order in which it happened.
    pub(super) queue: VecDeque<Delivery>,
    /// The threads that are inside a subscriber, each as often as it is. More than one only since groups were united.
    pub(super) running: Vec<ThreadId>,
    /// How many entries of the queue no thread waits for: whoever delivers next delivers them too.
    pub(super) owed: usize,
}

/// What to do after a look at a group's state.
pub(super) enum Then<R> {
    Return(R),
    /// Wait for a change, then look again.
    Wait,
}

impl Group {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            lock: Mutex::new(Standing::Live(Held::default())),
            changed: Condvar::new(),
        })
    }
}

impl Node {
    /// Runs `act` under the lock of the node's group.
    pub(super) fn locked<R>(&self, act: impl FnOnce(&mut Held) -> R) -> R {
        loop {
            let group = self.group.lock().clone();
            let next = match &mut *group.lock.lock() {
                Standing::Live(held) => return act(held),
                Standing::Merged(next) => next.clone(),
            };
            *self.group.lock() = next;
        }
    }

    /// Runs `look` under the lock of the node's group, again after each change, until it has something to return.
    pub(super) fn locked_until<R>(&self, mut look: impl FnMut(&mut Held) -> Then<R>) -> R {
        loop {
            let group = self.group.lock().clone();
            let mut standing = group.lock.lock();
            let next = loop {
                match &mut *standing {
                    Standing::Merged(next) => break next.clone(),
                    Standing::Live(held) => match look(held) {
                        Then::Return(result) => return result,
                        Then::Wait => group.changed.wait(&mut standing),
                    },
                }
            };
            drop(standing);
            *self.group.lock() = next;
        }
    }

    /// As [`Node::locked`], and wakes every thread that waits for a change of the group.
    pub(super) fn locked_and_notify<R>(&self, act: impl FnOnce(&mut Held) -> R) -> R {
        let result = self.locked(act);
        // A group that was united in between has woken its waiters itself.
        let group = self.group.lock().clone();
        group.changed.notify_all();
        result
    }

    /// The group the node belongs to at the moment; it may go into another as soon as this returns.
    fn current_group(&self) -> Arc<Group> {
        self.locked(|_| ());
        self.group.lock().clone()
    }

    /// Makes both nodes share one lock, from now on.
    pub(super) fn unite(&self, other: &Node) {
        loop {
            let into = self.current_group();
            let from = other.current_group();
            if Arc::ptr_eq(&into, &from) {
                return;
            }
            // In the order of their addresses, whoever asks: two threads that unite in opposite directions do not block.
            let (mut kept, mut merged): (MutexGuard<'_, _>, MutexGuard<'_, _>);
            if Arc::as_ptr(&into) < Arc::as_ptr(&from) {
                kept = into.lock.lock();
                merged = from.lock.lock();
            } else {
                merged = from.lock.lock();
                kept = into.lock.lock();
            }
            let (Standing::Live(held), Standing::Live(other)) = (&mut *kept, &mut *merged) else {
                // One of them went elsewhere between the look and the lock.
                continue;
            };
            held.queue.append(&mut other.queue);
            held.running.append(&mut other.running);
            held.owed += other.owed;
            *merged = Standing::Merged(into.clone());
            from.changed.notify_all();
            into.changed.notify_all();
            return;
        }
    }
}
