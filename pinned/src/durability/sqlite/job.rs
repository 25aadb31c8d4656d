//! An operation on its way to the thread, and its answer on the way back.

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot::{self, Receiver};

use super::schema::Checked;
use super::tables::Tables;
use super::watch::watch;
use crate::durability::StoreError;

/// One operation, in a transaction with others.
pub(super) trait Job: Send {
    /// Does its part of the transaction that is open. Again, in another, when the first did not come to its end.
    ///
    /// # Errors
    ///
    /// What breaks the transaction. What is refused is an answer instead.
    fn run(&mut self, tables: &Tables<'_>) -> rusqlite::Result<()>;

    /// Gives the answer, now that the transaction is at its end.
    fn answer(self: Box<Self>, committed: &Result<(), Broken>);

    /// Nobody waits for it any more: it need not be begun.
    fn is_abandoned(&self) -> bool;

    /// About how many bytes it writes.
    fn bytes(&self) -> usize;
}

/// Why a transaction came to nothing, for each of those who were in it.
#[derive(Clone, Debug)]
pub(super) struct Broken(Arc<rusqlite::Error>);

/// The way back of an answer.
pub(super) struct Answer<T, F>(Receiver<Answered<T, F>>);

/// What was written goes back with the answer: the thread on which all wait has better things to do than to free it.
type Answered<T, F> = (Result<T, StoreError>, F);

/// A job of what `run` does, and its answer.
pub(super) fn job<T, F>(bytes: usize, run: F) -> (Box<dyn Job>, Answer<T, F>)
where
    T: Send + 'static,
    F: Fn(&Tables<'_>) -> Checked<T> + Send + 'static,
{
    let (answer, answered) = oneshot::channel();
    let pending = Pending {
        run,
        outcome: None,
        answer,
        bytes,
    };
    (Box::new(pending), Answer(answered))
}

impl<T, F> Answer<T, F> {
    /// Waits for it. One that is `due` soon is watched for at first, between the other tasks of the runtime.
    pub(super) async fn wait(self, due: bool) -> Result<T, StoreError> {
        if due {
            watch(&self.0).await;
        }
        match self.0.await {
            Ok((answer, _run)) => answer,
            Err(_) => Err(StoreError::failed("the store was closed")),
        }
    }
}

struct Pending<T, F> {
    run: F,
    outcome: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Answered<T, F>>,
    bytes: usize,
}

impl<T, F> Job for Pending<T, F>
where
    T: Send,
    F: Fn(&Tables<'_>) -> Checked<T> + Send,
{
    fn run(&mut self, tables: &Tables<'_>) -> rusqlite::Result<()> {
        self.outcome = Some((self.run)(tables)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: &Result<(), Broken>) {
        let answer = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => outcome,
            // Refused whatever the store holds. A fence may have come from what was lost with the transaction.
            (Err(_), Some(Err(refused @ StoreError::Invalid(_)))) => Err(refused),
            (Err(broken), _) => Err(StoreError::failed(broken.clone())),
            // Dropping the sender says that it was never done.
            (Ok(()), None) => return,
        };
        // Nobody may wait for it any more.
        let _ = self.answer.send((answer, self.run));
    }

    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

// ===== impl Broken =====

impl From<rusqlite::Error> for Broken {
    fn from(error: rusqlite::Error) -> Self {
        Self(Arc::new(error))
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SQLite: ")?;
        self.0.fmt(f)
    }
}

impl std::error::Error for Broken {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_watched_for_and_never_comes_is_an_error() {
        let (job, answer) = job(0, |_| Ok(Ok(())));
        drop(job);
        assert!(answer.wait(true).await.is_err());
    }

    #[tokio::test]
    async fn who_stops_watching_is_not_waited_for() {
        let (job, answer) = job(0, |_| Ok(Ok(())));
        let mut watching = answer.wait(true).boxed();
        assert!((&mut watching).now_or_never().is_none());
        assert!(!job.is_abandoned());
        drop(watching);
        assert!(job.is_abandoned());
    }
}
