//! A transaction under its deadline, tried again where that is safe (D11).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::config::{Stamp, TransactionHook};
use super::failure::{Class, DialError, Failure};
use super::pool::{Lease, Pool};
use super::transaction::{Work, transact};
use crate::domain::Domain;

/// D11.1
const DEADLINE: Duration = Duration::from_secs(30);
/// How long a rollback may take on a connection that seems well.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a transaction is tried again that the server gave up for now: 100 s of waiting for one lock are enough, and
/// the instance behind it is better aborted than hung (D11.7).
const BUSY_RETRIES: usize = 3;

/// What every transaction of a store is run with.
pub(super) struct Engine {
    pub(super) domain: Domain,
    pub(super) pool: Pool,
    pub(super) hook: Option<TransactionHook>,
    pub(super) stamp: Stamp,
}

/// Why an operation failed for good.
#[derive(Debug)]
pub(super) enum Fault {
    /// No connection was to be had.
    Dial(DialError),
    /// Its last transaction failed before the commit was sent: nothing was changed.
    Undone(Failure),
    /// The commit failed: whether it happened is not known (D11.5).
    Unknown(Failure),
}

impl Engine {
    /// Carries `work` through in a transaction of its own.
    ///
    /// # Cancel safety
    ///
    /// Dropping it rolls back what is not committed, and frees the slot; a commit that was sent may take effect.
    pub(super) async fn run<W: Work>(&self, work: &W) -> Result<W::Output, Fault> {
        let (mut broken, mut busy) = (0, 0);
        loop {
            let lease = self.pool.check_out().await.map_err(Fault::Dial)?;
            let was_open = lease.was_open;
            let failure = match self.attempt(lease, work).await {
                Ok(output) => return Ok(output),
                Err(Fault::Undone(failure)) => failure,
                Err(other) => return Err(other),
            };
            let class = failure.class();
            let again = match class {
                // Each of these emptied a slot, so that a dial is near whatever the others do (D11.6).
                Class::Broken => {
                    broken += 1;
                    broken <= self.pool.size()
                }
                Class::Busy => {
                    busy += 1;
                    busy <= BUSY_RETRIES
                }
                Class::Permanent => false,
            };
            // On a fresh connection it is the database that is down (D11.4).
            if !(was_open && again) {
                return Err(Fault::Undone(failure));
            }
            tracing::debug!(target: "pinned::postgres", cause = ?class, "trying a transaction again");
        }
    }

    async fn attempt<W: Work>(&self, lease: Lease, work: &W) -> Result<W::Output, Fault> {
        let committing = AtomicBool::new(false);
        let connection = lease.connection().map_err(Fault::Dial)?;
        let hook = self.hook.as_ref();
        let outcome = self
            .domain
            .timeout(
                DEADLINE,
                transact(connection.client(), hook, work, &committing),
            )
            .await;
        let failure = match outcome {
            Ok(Ok(output)) => {
                lease.check_in();
                return Ok(output);
            }
            Ok(Err(failure)) => failure,
            Err(_) => Failure::Deadline,
        };
        if committing.load(Ordering::Relaxed) {
            lease.discard();
            return Err(Fault::Unknown(failure));
        }
        if failure.class() == Class::Broken {
            lease.discard();
        } else {
            self.roll_back(lease).await;
        }
        Err(Fault::Undone(failure))
    }

    /// A rollback that fails costs the connection, and nothing else (D11.2).
    async fn roll_back(&self, lease: Lease) {
        let Ok(connection) = lease.connection() else {
            return;
        };
        let rollback = connection.client().batch_execute("ROLLBACK");
        match self.domain.timeout(ROLLBACK_TIMEOUT, rollback).await {
            Ok(Ok(())) => lease.check_in(),
            Ok(Err(_)) | Err(_) => lease.discard(),
        }
    }
}

impl Fault {
    /// Whether the server objects to the values of this very operation, so that others may fare better without it.
    pub(super) fn blames_values(&self) -> bool {
        matches!(self, Self::Undone(failure) if failure.blames_values())
    }
}

impl From<Fault> for crate::durability::StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Dial(error) => Self::failed(error),
            Fault::Undone(failure) => failure.into(),
            Fault::Unknown(failure) => failure.of_unknown_outcome(),
        }
    }
}
