//! Idle connections.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::time::Duration;

use parking_lot::Mutex;
use pinned_domain::Domain;
use tokio::time::Instant;

use super::connection::Connection;

/// How long a connection may have been idle and still be used: uvicorn closes its end after 5 s, and a request that
/// meets that would be lost.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How many idle connections a lane keeps to one worker; the oldest goes first.
const MOST_IDLE: usize = 256;
/// How many that have been idle for too long are closed by one that comes back, so that none pays for all.
const CLOSED_AT_ONCE: usize = 2;

/// The idle connections of one lane to one worker, the last used one last.
///
/// A lane is one thread's runtime, so the lock is hardly ever waited for, and only there so that a lane may be several
/// threads where it has to be. It is a cache line of its own.
#[repr(align(128))]
pub(super) struct Lane {
    idle: Mutex<VecDeque<Idle>>,
    domain: Domain,
}

struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

impl Lane {
    pub(super) fn new(domain: Domain) -> Self {
        Self {
            idle: Mutex::default(),
            domain,
        }
    }

    /// The connection that was used last, unless that was too long ago. It may have been closed since: only a read tells.
    pub(super) fn take(&self, now: Instant) -> Option<Box<Connection>> {
        let mut idle = self.idle.lock();
        let mut last = idle.pop_back()?;
        if !last.is_expired(now) {
            drop(idle);
            last.connection.wake();
            return Some(last.connection);
        }
        // So is every other, then. Closed after the lock is free.
        let all = mem::take(&mut *idle);
        drop(idle);
        drop(all);
        None
    }

    /// Keeps a connection whose last response has been read to its end, and nothing beyond.
    pub(super) fn put(&self, connection: Box<Connection>) {
        self.put_at(connection, self.domain.monotonic());
    }

    /// As [`put`](Self::put), for whoever has just read the clock.
    pub(super) fn put_at(&self, mut connection: Box<Connection>, since: Instant) {
        connection.rest();
        let mut closed: [Option<Idle>; CLOSED_AT_ONCE] = Default::default();
        let mut idle = self.idle.lock();
        for closed in &mut closed {
            let full = idle.len() >= MOST_IDLE;
            match idle.front() {
                Some(oldest) if full || oldest.is_expired(since) => *closed = idle.pop_front(),
                _ => break,
            }
        }
        idle.push_back(Idle { connection, since });
        drop(idle);
    }

    /// Closes those that have been idle for too long.
    pub(super) fn reap(&self) {
        let now = self.domain.monotonic();
        let mut idle = self.idle.lock();
        let expired = idle.partition_point(|idle| idle.is_expired(now));
        let closed: Vec<Idle> = idle.drain(..expired).collect();
        drop(idle);
        drop(closed);
    }

    pub(super) fn len(&self) -> usize {
        self.idle.lock().len()
    }
}

impl Idle {
    fn is_expired(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= IDLE_TIMEOUT
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("idle", &self.len()).finish()
    }
}
