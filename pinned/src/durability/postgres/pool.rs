//! The connections of a store (D10.1 to D10.5).
//!
//! Not a pool from a crate: those check, recycle and dial behind one `get()`, while the rule for retries (D11.3) turns on
//! whether a connection was already open when it was taken, and a broken one must empty exactly its own slot (D11.6).

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::Config;

use super::connection::Connection;
use super::failure::DialError;
use crate::domain::Domain;

/// Slots, each with an open connection or nothing.
pub(super) struct Pool {
    domain: Domain,
    /// How to dial; `None` where the one connection came from outside (D10.1).
    dial: Option<Config>,
    /// One permit for each slot that is not taken.
    slots: Arc<Semaphore>,
    size: usize,
    /// The connections of the slots that are not taken; the rest of those are empty.
    parked: Arc<Mutex<Vec<Connection>>>,
}

impl Pool {
    pub(super) fn dialling(domain: Domain, config: Config, size: usize) -> Self {
        Self::new(domain, Some(config), size, Vec::new())
    }

    pub(super) fn of_one(domain: Domain, connection: Connection) -> Self {
        Self::new(domain, None, 1, vec![connection])
    }

    fn new(domain: Domain, dial: Option<Config>, size: usize, parked: Vec<Connection>) -> Self {
        Self {
            domain,
            dial,
            slots: Arc::new(Semaphore::new(size.min(Semaphore::MAX_PERMITS))),
            size,
            parked: Arc::new(Mutex::new(parked)),
        }
    }

    /// How many connections there are at most.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Waits for a slot, and dials if it is empty or its connection has ended (D10.2). A dial that fails leaves the slot
    /// to others (D10.3), as dropping the future does.
    pub(super) async fn check_out(&self) -> Result<Lease, DialError> {
        let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
            return Err(DialError::Closed);
        };
        // The one parked last: those that are never needed may then go to sleep behind a firewall.
        let parked = self.parked.lock().pop();
        let (connection, was_open) = match parked.filter(|connection| !connection.is_closed()) {
            Some(connection) => (connection, true),
            None => match &self.dial {
                Some(config) => (Connection::dial(&self.domain, config).await?, false),
                None => return Err(DialError::Closed),
            },
        };
        Ok(Lease {
            connection: Some(connection),
            was_open,
            domain: self.domain.clone(),
            parked: Arc::clone(&self.parked),
            slot: Some(slot),
        })
    }

    /// How to dial beside the slots; `None` where the connection came from outside.
    pub(super) fn config(&self) -> Option<&Config> {
        self.dial.as_ref()
    }
}

/// A slot that is taken. Dropped in the middle of a transaction, it ends the transaction and empties the slot (D11.9).
pub(super) struct Lease {
    /// Until the lease ends, in one way or another.
    connection: Option<Connection>,
    /// Whether the connection was in the pool rather than dialled for this lease.
    pub(super) was_open: bool,
    domain: Domain,
    parked: Arc<Mutex<Vec<Connection>>>,
    slot: Option<OwnedSemaphorePermit>,
}

impl Lease {
    pub(super) fn connection(&self) -> Result<&Connection, DialError> {
        self.connection.as_ref().ok_or(DialError::Closed)
    }

    /// Gives the connection back between two transactions (D10.4).
    pub(super) fn check_in(mut self) {
        if let Some(connection) = self.connection.take().filter(|open| !open.is_closed()) {
            self.parked.lock().push(connection);
        }
        // Only now: whoever gets the slot must find the connection.
        self.slot.take();
    }

    /// Closes the connection and empties the slot.
    pub(super) fn discard(mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.cancel(&self.domain);
        }
    }
}
