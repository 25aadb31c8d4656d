//! The store itself.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use futures_util::future::ready as resolved;
use tokio::sync::{Mutex, oneshot};
use tokio_postgres::Client;

use super::acquire::{Acquire, Act};
use super::attempts::Engine;
use super::batcher::Batcher;
use super::config::{PostgresConfigError, PostgresOptions, parse, place};
use super::connection::Connection;
use super::group::Pending;
use super::hold::Hold;
use super::lines::Lines;
use super::ops::{Get, List, Marked};
use super::pool::Pool;
use super::rows::last_of_each;
use super::schema::Setup;
use crate::domain::TaskHandle;
use crate::durability::store::prove_fences;
use crate::durability::{
    Claim, Doc, InstanceKey, Row, RowFilter, RowOp, RowState, StateStore, StoreError, StoreFuture,
    TrayKey,
};

/// Rows in PostgreSQL, shared by all workers of a fleet. A cheap handle; clones are the same store, with the same
/// connections.
///
/// Connections are dialled when they are first needed. An operation is tried again on another connection when the one
/// it was on turns out to be dead, unless its commit may have been sent (D11).
///
/// Each operation on an instance is at work from the moment it is called, which has to be inside a runtime, whether or not
/// its future is polled. It is ended when its future is dropped; a write that is already on its way in a group goes on.
///
/// ```no_run
/// use pinned::durability::StateStore;
/// use pinned::durability::postgres::{PostgresOptions, PostgresStore};
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::from_dsn("postgres://worker@db.internal/app", PostgresOptions::new())?;
/// store.setup().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Arc<Engine>,
    batcher: Batcher,
    lines: Arc<Lines>,
    place: String,
    hold: Mutex<Option<Hold>>,
}

impl PostgresStore {
    /// The store that `dsn` leads to: `postgres://user:password@host:port/database`, or `key=value` pairs. Dials nothing
    /// yet.
    ///
    /// # Errors
    ///
    /// The DSN or an option is malformed, or demands what this store does not have (D12.1).
    pub fn from_dsn(dsn: &str, options: PostgresOptions) -> Result<Self, PostgresConfigError> {
        let config = parse(dsn)?;
        options.check()?;
        let place = place(&config);
        let pool = Pool::dialling(options.domain.clone(), config, options.pool_size);
        Ok(Self::new(pool, options, place))
    }

    /// A store on one connection that is already there, whose other half the caller keeps polling. It is never dialled
    /// again: once it has closed, every operation fails. `pool_size` does not matter.
    ///
    /// # Errors
    ///
    /// An option is malformed.
    pub fn from_client(
        client: Client,
        options: PostgresOptions,
    ) -> Result<Self, PostgresConfigError> {
        options.check()?;
        let pool = Pool::of_one(options.domain.clone(), Connection::supplied(client));
        let place = "PostgreSQL on a supplied connection".to_owned();
        Ok(Self::new(pool, options, place))
    }

    fn new(pool: Pool, options: PostgresOptions, place: String) -> Self {
        let engine = Arc::new(Engine {
            domain: options.domain,
            pool,
            hook: options.hook,
            stamp: options.stamp,
        });
        Self {
            shared: Arc::new(Shared {
                batcher: Batcher::new(Arc::clone(&engine)),
                engine,
                lines: Arc::default(),
                place,
                hold: Mutex::new(None),
            }),
        }
    }

    /// Runs `task` from now on, whether or not what is returned is polled: the next operation of the instance is behind
    /// it, and may be what the caller awaits first.
    fn start<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> StoreFuture<T> {
        Started(self.shared.engine.domain.spawn(task)).boxed()
    }

    /// One operation in a transaction of its own.
    fn alone<A: Act + 'static>(&self, claim: Claim, act: A) -> StoreFuture<A::Output>
    where
        A::Output: 'static,
    {
        let epoch = match check(&claim) {
            Ok(epoch) => epoch,
            Err(error) => return refused(error),
        };
        let mut place = self.shared.lines.enter(&claim.instance);
        let engine = Arc::clone(&self.shared.engine);
        self.start(async move {
            place.turn().await;
            let claim = &claim;
            Ok(engine.run(&Acquire { claim, epoch, act }).await?)
        })
    }

    /// A write, in a group if that can be.
    fn write(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        let checked = ops.iter().try_for_each(check_op);
        let epoch = match checked.and_then(|()| check(&claim)) {
            Ok(epoch) => epoch,
            Err(error) => return refused(error),
        };
        let (reply, outcome) = oneshot::channel();
        self.shared.batcher.accept(Pending {
            place: self.shared.lines.enter(&claim.instance),
            ops: last_of_each(ops),
            claim,
            epoch,
            reply,
        });
        Box::pin(async move {
            outcome.await.unwrap_or_else(|_| {
                Err(StoreError::failed(
                    "this write was dropped with its runtime",
                ))
            })
        })
    }
}

// --- Checks -----------------------------------------------------------------------------------------------------------

/// The claim's epoch as PostgreSQL keeps it.
fn check(claim: &Claim) -> Result<i64, StoreError> {
    check_text(&claim.instance.namespace)?;
    check_text(&claim.instance.id)?;
    i64::try_from(claim.epoch)
        .map_err(|_| StoreError::Invalid(format!("the epoch {} exceeds a BIGINT", claim.epoch)))
}

fn check_op(op: &RowOp) -> Result<(), StoreError> {
    check_key(&op.key)?;
    match &op.state {
        Some(state) if has_nul(state.doc.as_str()) => Err(StoreError::Invalid(
            "a doc with a NUL character in a string or key, which jsonb does not hold".to_owned(),
        )),
        _ => Ok(()),
    }
}

fn check_key(key: &TrayKey) -> Result<(), StoreError> {
    check_text(&key.tray_ns)?;
    check_text(&key.tray_id)
}

fn check_text(text: &str) -> Result<(), StoreError> {
    if text.contains('\0') {
        return Err(StoreError::Invalid(
            "a key with a NUL character, which TEXT does not hold".to_owned(),
        ));
    }
    Ok(())
}

/// Whether a string of this JSON has a NUL: the escape, unless its backslash is itself escaped.
fn has_nul(json: &str) -> bool {
    json.match_indices("\\u0000").any(|(at, _)| {
        let before = json.as_bytes()[..at].iter().rev();
        before.take_while(|byte| **byte == b'\\').count() % 2 == 0
    })
}

fn refused<T: Send + 'static>(error: StoreError) -> StoreFuture<T> {
    resolved(Err(error)).boxed()
}

// --- Started ----------------------------------------------------------------------------------------------------------

/// A task that ends with whoever waits for it.
struct Started<T>(TaskHandle<Result<T, StoreError>>);

impl<T> Future for Started<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(
            ready!(self.0.poll_unpin(cx)).unwrap_or_else(|error| Err(StoreError::failed(error))),
        )
    }
}

impl<T> Drop for Started<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// --- StateStore -------------------------------------------------------------------------------------------------------

impl StateStore for PostgresStore {
    /// Needs the right to create tables only where they are missing.
    fn setup(&self) -> StoreFuture<()> {
        let store = self.clone();
        Box::pin(async move {
            let place = &store.shared.place;
            store.shared.engine.run(&Setup { place }).await?;
            prove_fences(&store).await
        })
    }

    /// Takes an advisory lock on a connection kept for that, which must lead to PostgreSQL itself rather than to a pooler
    /// in transaction mode. PostgreSQL frees the lock with the connection, so a worker that was killed blocks nobody. For
    /// the same reason a worker whose connection breaks has lost the lock for that time: it logs an error and takes it
    /// again as soon as it can, but does not stop. If another worker has started meanwhile, both run until one is
    /// stopped, and the one that does not hold the lock logs an error each second.
    fn hold_alone(&self) -> StoreFuture<()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let mut hold = shared.hold.lock().await;
            if hold.is_none() {
                let engine = Arc::clone(&shared.engine);
                *hold = Some(Hold::take(engine, shared.place.clone()).await?);
            }
            Ok(())
        })
    }

    fn let_go(&self) {
        // Nobody is just taking it: the worker that does so has not started yet.
        if let Ok(mut hold) = self.shared.hold.try_lock() {
            *hold = None;
        }
    }

    fn batches(&self) -> bool {
        true
    }

    fn set_tray(&self, claim: Claim, key: TrayKey, marked: bool, doc: Doc) -> StoreFuture<()> {
        self.write(claim, vec![RowOp::set(key, marked, doc)])
    }

    fn delete_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<()> {
        self.write(claim, vec![RowOp::delete(key)])
    }

    fn get_tray(&self, claim: Claim, key: TrayKey) -> StoreFuture<Option<RowState>> {
        match check_key(&key) {
            Ok(()) => self.alone(claim, Get { key }),
            Err(error) => refused(error),
        }
    }

    fn list(&self, claim: Claim, filter: RowFilter) -> StoreFuture<Vec<Row>> {
        match filter.tray_ns.as_deref().map_or(Ok(()), check_text) {
            Ok(()) => self.alone(claim, List { filter }),
            Err(error) => refused(error),
        }
    }

    fn apply_batch(&self, claim: Claim, ops: Vec<RowOp>) -> StoreFuture<()> {
        self.write(claim, ops)
    }

    fn marked_instances(
        &self,
        after: Option<InstanceKey>,
        limit: usize,
    ) -> StoreFuture<Vec<InstanceKey>> {
        let engine = Arc::clone(&self.shared.engine);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        Box::pin(async move { Ok(engine.run(&Marked { after, limit }).await?) })
    }

    fn describe(&self) -> String {
        self.shared.place.clone()
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("place", &self.shared.place)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D9.10
    #[test]
    fn a_nul_is_found_where_its_escape_is_one() {
        for (json, expected) in [
            (r#"{"a":"\u0000"}"#, true),
            (r#"{"a\u0000":1}"#, true),
            (r#"{"a":"\\\u0000"}"#, true),
            (r#"{"a":"\\u0000"}"#, false),
            (r#"{"a":"\u0001 u0000"}"#, false),
            ("{}", false),
        ] {
            assert_eq!(has_nul(json), expected, "{json}");
        }
    }
}
