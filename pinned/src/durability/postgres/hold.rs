//! One worker alone on a store: a lock of a session, on a connection kept for that (`hold_alone`).

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Error as PgError};

use super::attempts::Engine;
use super::config::process_name;
use super::connection::Connection;
use super::failure::Failure;
use super::transaction::{Work, transact};
use crate::domain::TaskHandle;
use crate::durability::StoreError;

/// The upper half of the lock's key; the lower half is a hash of the schema, so that two stores in one database do not
/// meet.
const CLASS: i64 = i64::from_be_bytes(*b"\0\0\0\0pind");
/// A predecessor that was killed has its session for a moment longer, and a restart comes fast.
const GRACE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(200);
/// How often a lock that was lost is tried for.
const RETAKE: Duration = Duration::from_secs(1);
/// The whole of one try, after the dial.
const DEADLINE: Duration = Duration::from_secs(30);

/// The lock, until it is dropped.
pub(super) struct Hold {
    keeper: TaskHandle<()>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        // With it goes the connection, and with that the lock.
        self.keeper.abort();
    }
}

impl Hold {
    /// Takes the lock, and keeps it: should its connection end, it is taken again as soon as that is possible.
    pub(super) async fn take(engine: Arc<Engine>, place: String) -> Result<Self, StoreError> {
        let taker = Taker::new(engine, place)?;
        let until = taker.engine.domain.monotonic() + GRACE;
        let connection = loop {
            match taker.take().await {
                Ok(connection) => break connection,
                Err(StoreError::Held { .. }) if taker.engine.domain.monotonic() < until => {
                    taker.engine.domain.sleep(STEP).await;
                }
                Err(error) => return Err(error),
            }
        };
        let domain = taker.engine.domain.clone();
        let keeper = domain.spawn(keep(taker, connection));
        Ok(Self { keeper })
    }
}

async fn keep(taker: Taker, mut connection: Connection) {
    loop {
        connection.ended().await;
        tracing::error!(
            target: "pinned::postgres",
            store = taker.place,
            "the connection that kept this store to this worker alone has ended; until the lock is taken again another \
             worker could start on the store"
        );
        connection = loop {
            match taker.take().await {
                Ok(connection) => break connection,
                Err(error) => {
                    let error = crate::error::causes(&error).map(ToString::to_string);
                    let error = error.collect::<Vec<_>>().join(": ");
                    tracing::error!(target: "pinned::postgres", error, "the store is not held by this worker");
                }
            }
            taker.engine.domain.sleep(RETAKE).await;
        };
        tracing::info!(target: "pinned::postgres", store = taker.place, "the store is held again");
    }
}

struct Taker {
    engine: Arc<Engine>,
    config: Config,
    place: String,
}

impl Taker {
    fn new(engine: Arc<Engine>, place: String) -> Result<Self, StoreError> {
        let Some(config) = engine.pool.config() else {
            return Err(StoreError::failed(
                "a store on a supplied connection cannot be held alone: that takes a connection of its own",
            ));
        };
        let mut config = config.clone();
        config
            .application_name(process_name())
            // It is idle for its whole life, so nothing else would tell that the link is dead.
            .keepalives_idle(Duration::from_secs(30))
            .keepalives_interval(Duration::from_secs(10))
            .keepalives_retries(3);
        Ok(Self {
            engine,
            config,
            place,
        })
    }

    async fn take(&self) -> Result<Connection, StoreError> {
        let domain = &self.engine.domain;
        let connection = Connection::dial(domain, &self.config)
            .await
            .map_err(StoreError::failed)?;
        let committing = Default::default();
        let hook = self.engine.hook.as_ref();
        let trying = transact(connection.client(), hook, &Try, &committing);
        let holder = match domain.timeout(DEADLINE, trying).await {
            Ok(tried) => tried?,
            Err(_) => return Err(Failure::Deadline.into()),
        };
        match holder {
            None => Ok(connection),
            Some(holder) => Err(StoreError::Held {
                store: self.place.clone(),
                holder,
            }),
        }
    }
}

/// Tries for the lock, in a transaction because the hook may choose the schema; tells who has it.
struct Try;

/// Whether the lock was free, and the schema's half of its key.
struct Tried {
    taken: bool,
    schema: i64,
}

impl Work for Try {
    type Found = Tried;
    type Output = Option<String>;

    async fn find(&self, client: &Client) -> Result<Tried, PgError> {
        const TRY: &str = "\
            SELECT pg_try_advisory_lock($1 << 32 | k.schema), k.schema FROM \
            (SELECT hashtext(coalesce(current_schema(), ''))::bigint & 4294967295 AS schema) AS k";
        let row = client.query_typed_one(TRY, &[(&CLASS, Type::INT8)]).await?;
        Ok(Tried {
            taken: row.try_get(0)?,
            schema: row.try_get(1)?,
        })
    }

    async fn proceed(&self, client: &Client, tried: Tried) -> Result<Option<String>, Failure> {
        if tried.taken {
            return Ok(None);
        }
        const HOLDER: &str = "\
            SELECT format('%s at %s (session %s, since %s)', \
                coalesce(nullif(a.application_name, ''), 'a session without a name'), \
                coalesce(host(a.client_addr), 'a local socket'), a.pid, \
                coalesce(to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'), '?')) \
            FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) \
            WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 \
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
            AND l.classid::bigint = $1 AND l.objid::bigint = $2";
        let row = client
            .query_typed_opt(HOLDER, &[(&CLASS, Type::INT8), (&tried.schema, Type::INT8)])
            .await?;
        let holder: Option<String> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(Some(holder.unwrap_or_else(|| "another session".to_owned())))
    }
}
