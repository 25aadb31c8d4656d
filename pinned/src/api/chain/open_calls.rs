//! The calls of this worker that others work on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
#[cfg(feature = "fleet")]
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use pinned_wire::chain::{self, Link};

use super::Caller;
#[cfg(feature = "fleet")]
use super::Steps;
#[cfg(feature = "fleet")]
use crate::api::scope::current;
use crate::domain::Domain;

/// The calls of this worker that others work on at the moment, by the numbers that their chains carry.
pub(crate) struct OpenCalls {
    /// Tells the numbers of this process from those of others.
    process: String,
    #[cfg_attr(not(feature = "fleet"), allow(dead_code, reason = "nothing leaves"))]
    next: AtomicU64,
    calls: Mutex<HashMap<u64, Arc<Caller>>>,
}

impl OpenCalls {
    pub(crate) fn new(domain: &Domain) -> Self {
        Self {
            process: domain.token_hex(8),
            next: AtomicU64::new(0),
            calls: Mutex::default(),
        }
    }

    /// The callers behind a chain from outside, outermost first.
    ///
    /// From the innermost outwards they are names, up to one of this worker's own calls: that leads to the scope which
    /// made it, and to what is known here of the callers before. Where it is not open any more, its caller does not wait,
    /// so nobody before it waits for this chain either.
    pub(super) fn recall(&self, chain: &[String]) -> Option<Arc<Caller>> {
        if chain.len() > chain::MOST_LINKS {
            return None;
        }
        let mut names = Vec::new();
        let mut caller = None;
        for text in chain.iter().rev() {
            let link = Link::parse(text).ok()?;
            match link.call().and_then(|call| self.number(call)) {
                None => names.push(link),
                Some(number) => {
                    let known = self.calls.lock().get(&number).map(Arc::clone);
                    caller = known.filter(|known| known.is_named(link.name()));
                    break;
                }
            }
        }
        names.into_iter().rev().fold(caller, |caller, link| {
            Some(Arc::new(Caller::Elsewhere { link, caller }))
        })
    }

    /// The number of a call of this worker.
    fn number(&self, call: &str) -> Option<u64> {
        let number = call.strip_prefix(&*self.process)?.strip_prefix('.')?;
        u64::from_str_radix(number, 16).ok()
    }
}

#[cfg(feature = "fleet")]
impl OpenCalls {
    /// Writes down a call by whatever runs here and now; its chain, as other workers are told of it. `None` where nothing
    /// runs that could be called back.
    pub(crate) fn open(calls: &Arc<Self>) -> Option<(String, OpenCall)> {
        let scope = current()?;
        let number = calls.next.fetch_add(1, Ordering::Relaxed);
        let mut links: Vec<Link> = Steps::of(&scope).map(|step| step.link()).collect();
        if let Some(innermost) = links.first_mut() {
            let call = format!("{}.{number:x}", calls.process);
            *innermost = innermost.clone().called(call);
        }
        links.reverse();
        let caller = Arc::new(Caller::waiting(scope));
        calls.calls.lock().insert(number, Arc::clone(&caller));
        let open = OpenCall {
            calls: Arc::clone(calls),
            number,
        };
        Some((chain::header(&links), open))
    }
}

/// A call that others work on. Dropping it says that nobody waits for it any more.
#[cfg(feature = "fleet")]
#[must_use = "nobody waits for the call any more once this is dropped"]
pub(crate) struct OpenCall {
    calls: Arc<OpenCalls>,
    number: u64,
}

#[cfg(feature = "fleet")]
impl Drop for OpenCall {
    fn drop(&mut self) {
        let caller = self.calls.calls.lock().remove(&self.number);
        // What it owns is dropped with no lock held.
        if let Some(caller) = caller {
            caller.gives_up();
        }
    }
}
