//! One transaction, statement by statement (D9).

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future;
use tokio_postgres::{Client, Error as PgError};

use super::config::TransactionHook;
use super::failure::Failure;

/// Sent as one message. The isolation is said outright, because the protocol relies on reading what the lock it waited
/// for has protected, and a database may have another default. 25 s, so that the server errs before the client gives up
/// after 30 (D11.1). Between statements nothing is waited for: whoever is silent there has stopped, and may not keep the
/// next holder of its instances waiting for their epoch rows for as long as it stays stopped.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
                     SET LOCAL lock_timeout = '25s'; SET LOCAL statement_timeout = '25s'; \
                     SET LOCAL idle_in_transaction_session_timeout = '5s'";

/// The part of a transaction that is an operation's own.
pub(super) trait Work: Send + Sync {
    /// What the first statement finds.
    type Found: Send;
    /// What the operation comes to.
    type Output: Send;

    /// The first statement, which takes the locks.
    fn find(&self, client: &Client) -> impl Future<Output = Result<Self::Found, PgError>> + Send;

    /// The statements after it.
    fn proceed(
        &self,
        client: &Client,
        found: Self::Found,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// Runs `work` from the first statement through commit, and sets `committing` right before the commit is sent. After a
/// failure the transaction is still open.
pub(super) async fn transact<W: Work>(
    client: &Client,
    hook: Option<&TransactionHook>,
    work: &W,
    committing: &AtomicBool,
) -> Result<W::Output, Failure> {
    let found = match hook {
        // One round trip: should the timeouts be refused, the transaction is aborted and the locks are too.
        None => {
            let (begun, found) = future::join(client.batch_execute(BEGIN), work.find(client)).await;
            begun?;
            found?
        }
        Some(hook) => {
            client.batch_execute(BEGIN).await?;
            hook(client).await.map_err(Failure::Hook)?;
            work.find(client).await?
        }
    };
    let output = work.proceed(client, found).await?;
    // Apart from the statements before it: what died before this point may be tried again, and nothing after (D11.5).
    committing.store(true, Ordering::Relaxed);
    client.batch_execute("COMMIT").await?;
    Ok(output)
}
