//! How ops reach subscribers: one at a time and in one order per group, on the thread of the mutation.
//!
//! A mutation puts its deliveries at the end of the group's queue under the lock under which it changed the tree. Then,
//! without the lock, it takes deliveries from the front until its own are done. A subscriber that mutates does the same
//! from inside, and so first completes what came before its change: every subscriber sees one order.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};

use parking_lot::Mutex;
use serde_json::Value;

use super::group::{Held, Then};
use super::node::{Listener, Node};
use super::op::{Op, OpKind};
use super::path::Segment;

pub(super) type Callback = Arc<dyn Fn(&Op) + Send + Sync>;
type Panic = Box<dyn Any + Send>;

/// One op for one subscriber.
pub(super) struct Delivery {
    callback: Callback,
    op: Arc<Op>,
    gate: Option<Arc<Gate>>,
    ticket: Arc<Ticket>,
}

/// A mount on the way of an op to the subscribers further out. Closed when the mount ended before the op got there.
struct Gate {
    node: Arc<Node>,
    link: u64,
    inner: Option<Arc<Gate>>,
    /// Decided once, when the op gets to the first subscriber behind it.
    open: OnceLock<bool>,
}

/// What a mutation waits for. Changed under the group's lock.
#[derive(Default)]
pub(super) struct Ticket(Mutex<Progress>);

#[derive(Default)]
struct Progress {
    outstanding: usize,
    /// Nobody waits any more.
    left: bool,
    /// The first panic of a subscriber.
    panic: Option<Panic>,
}

thread_local! {
    /// How many subscribers, of whatever tree, and holders of a lock this thread is inside of.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Puts the op into the queue for everyone who listens to `owner` or to a node it is mounted in. `value` is called when
/// somebody does. `keep` takes what must not be dropped under the lock.
pub(super) fn emit(
    held: &mut Held,
    owner: &Arc<Node>,
    kind: OpKind,
    path: Vec<Segment>,
    value: impl FnOnce(&Held) -> Option<Value>,
    keep: &mut Vec<Arc<Node>>,
) -> Option<Arc<Ticket>> {
    let before = keep.len();
    keep.extend(owner.ancestors(held));
    let listened = std::iter::once(owner).chain(&keep[before..]).any(|node| {
        let is_subscriber = |listener: &_| matches!(listener, Listener::Subscriber { .. });
        node.state(held).listeners.iter().any(is_subscriber)
    });
    if !listened {
        return None;
    }
    let op = Op {
        kind,
        path,
        value: value(held),
    };
    let ticket = Arc::new(Ticket::default());
    let mut deliveries = Vec::new();
    address(held, owner, op, None, &ticket, &mut deliveries);
    ticket.0.lock().outstanding = deliveries.len();
    held.queue.extend(deliveries);
    Some(ticket)
}

fn address(
    held: &Held,
    node: &Arc<Node>,
    op: Op,
    gate: Option<Arc<Gate>>,
    ticket: &Arc<Ticket>,
    deliveries: &mut Vec<Delivery>,
) {
    let op = Arc::new(op);
    let state = node.state(held);
    for listener in &state.listeners {
        match (listener, &state.link) {
            (Listener::Subscriber { callback, .. }, _) => deliveries.push(Delivery {
                callback: callback.clone(),
                op: op.clone(),
                gate: gate.clone(),
                ticket: ticket.clone(),
            }),
            (Listener::Parent, Some(link)) => {
                let Some(parent) = link.parent.upgrade() else {
                    continue;
                };
                let outer = Op {
                    path: [&link.path[..], &op.path[..]].concat(),
                    ..Op::clone(&op)
                };
                let gate = Arc::new(Gate {
                    node: node.clone(),
                    link: link.id,
                    inner: gate.clone(),
                    open: OnceLock::new(),
                });
                address(held, &parent, outer, Some(gate), ticket, deliveries);
            }
            (Listener::Parent, None) => {}
        }
    }
}

impl Gate {
    fn passes(&self, held: &Held) -> bool {
        let inner = self.inner.as_ref().is_none_or(|gate| gate.passes(held));
        let mounted = || {
            let state = self.node.state(held);
            state.link.as_ref().is_some_and(|link| link.id == self.link)
        };
        inner && *self.open.get_or_init(mounted)
    }
}

/// Returns when every subscriber has had the op of `ticket`.
///
/// The one exception keeps two trees whose subscribers mutate each other on two threads from waiting in a circle: a
/// thread that is inside a subscriber never waits for another one. What it leaves in the queue, that other one delivers;
/// it is no more than what one call of a subscriber writes.
pub(super) fn settle(node: &Node, ticket: &Arc<Ticket>) {
    let me = thread::current().id();
    let nested = DEPTH.get() > 0;
    let mut panic = None;
    while let Some(next) = node.locked_until(|held| held.next(me, nested, ticket)) {
        let Next { delivery, passes } = next;
        if passes && let Err(payload) = run(&delivery) {
            let mut progress = delivery.ticket.0.lock();
            let slot = if progress.left {
                &mut panic
            } else {
                &mut progress.panic
            };
            slot.get_or_insert(payload);
        }
        node.locked_and_notify(|held| {
            if let Some(at) = held.running.iter().position(|thread| *thread == me) {
                held.running.swap_remove(at);
            }
            delivery.ticket.0.lock().outstanding -= 1;
        });
    }
    // The guard of the lock must not live into the unwinding.
    let own = ticket.0.lock().panic.take();
    if let Some(payload) = own.or(panic) {
        resume_unwind(payload);
    }
}

fn run(delivery: &Delivery) -> Result<(), Panic> {
    // The subscriber's own state is its own to keep whole; ours is not open while it runs.
    let callback = AssertUnwindSafe(|| (delivery.callback)(&delivery.op));
    without_waiting(|| catch_unwind(callback))
}

/// Runs `mutations` as if within a subscriber: they wait for no subscriber on another thread. For a thread that holds a
/// lock which such a one may ask for.
pub(crate) fn without_waiting<R>(mutations: impl FnOnce() -> R) -> R {
    struct Inside;

    impl Drop for Inside {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }

    DEPTH.set(DEPTH.get() + 1);
    let _inside = Inside;
    mutations()
}

struct Next {
    delivery: Delivery,
    passes: bool,
}

impl Held {
    /// The next delivery for a thread that waits for `ticket`, or `None` when it may go.
    fn next(&mut self, me: ThreadId, nested: bool, ticket: &Arc<Ticket>) -> Then<Option<Next>> {
        let alone = self.running.iter().all(|thread| *thread == me);
        let mut progress = ticket.0.lock();
        if progress.outstanding == 0 && (self.owed == 0 || !alone) {
            return Then::Return(None);
        }
        if !alone {
            if !nested {
                return Then::Wait;
            }
            progress.left = true;
            let mine = |delivery: &&Delivery| Arc::ptr_eq(&delivery.ticket, ticket);
            self.owed += self.queue.iter().filter(mine).count();
            return Then::Return(None);
        }
        drop(progress);
        let Some(delivery) = self.queue.pop_front() else {
            return Then::Return(None);
        };
        if delivery.ticket.0.lock().left {
            self.owed -= 1;
        }
        let passes = delivery.gate.as_ref().is_none_or(|gate| gate.passes(self));
        self.running.push(me);
        Then::Return(Some(Next { delivery, passes }))
    }
}
