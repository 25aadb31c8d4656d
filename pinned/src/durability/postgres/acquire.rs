//! Acquiring one instance, and an operation behind that fence (D9.2 to D9.5).

use std::future::Future;

use futures_util::future;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error as PgError};

use super::failure::Failure;
use super::transaction::Work;
use crate::durability::{Claim, FenceLost, InstanceKey, StoreError};

const LOCK: &str = "SELECT epoch FROM pinned_epoch WHERE ns = $1 AND id = $2 FOR UPDATE";

/// Waits for another first writer that has not committed yet.
const INSERT: &str = "\
    INSERT INTO pinned_epoch (ns, id, epoch) VALUES ($1, $2, $3) ON CONFLICT (ns, id) DO NOTHING";

const RAISE: &str = "UPDATE pinned_epoch SET epoch = $3 WHERE ns = $1 AND id = $2";

/// What an operation does once its instance is acquired.
pub(super) trait Act: Send + Sync {
    /// What it comes to.
    type Output: Send;

    /// Its own statements (D9.2, 6).
    fn act(
        &self,
        client: &Client,
        instance: &InstanceKey,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// `act`, behind the fence of `claim`.
pub(super) struct Acquire<'a, A> {
    pub(super) claim: &'a Claim,
    /// The claim's epoch, as PostgreSQL keeps it.
    pub(super) epoch: i64,
    pub(super) act: A,
}

impl<A: Act> Work for Acquire<'_, A> {
    type Found = Option<i64>;
    type Output = A::Output;

    async fn find(&self, client: &Client) -> Result<Option<i64>, PgError> {
        lock(client, &self.claim.instance).await
    }

    async fn proceed(&self, client: &Client, found: Option<i64>) -> Result<A::Output, Failure> {
        let instance = &self.claim.instance;
        let stored = match found {
            Some(stored) => stored,
            None => self.make(client).await?,
        };
        if self.epoch < stored {
            return Err(Failure::Refused(FenceLost::from(self.claim).into()));
        }
        // At an equal epoch the row keeps its version (D9.4).
        if self.epoch > stored {
            client
                .execute_typed(
                    RAISE,
                    &[
                        (&&*instance.namespace, Type::TEXT),
                        (&&*instance.id, Type::TEXT),
                        (&self.epoch, Type::INT8),
                    ],
                )
                .await?;
        }
        self.act.act(client, instance).await
    }
}

impl<A: Act> Acquire<'_, A> {
    /// Makes the missing epoch row, or adopts the one of another first writer (D9.5).
    async fn make(&self, client: &Client) -> Result<i64, Failure> {
        let instance = &self.claim.instance;
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] = [
            (&&*instance.namespace, Type::TEXT),
            (&&*instance.id, Type::TEXT),
            (&self.epoch, Type::INT8),
        ];
        let insert = client.execute_typed(INSERT, &params);
        let (_, stored) = future::try_join(insert, lock(client, instance)).await?;
        stored.ok_or_else(|| {
            // Nobody deletes epoch rows; a row that was made and is not there is no fence to rely on.
            Failure::Refused(StoreError::failed("the epoch row is gone again"))
        })
    }
}

async fn lock(client: &Client, instance: &InstanceKey) -> Result<Option<i64>, PgError> {
    let row = client
        .query_typed_opt(
            LOCK,
            &[
                (&&*instance.namespace, Type::TEXT),
                (&&*instance.id, Type::TEXT),
            ],
        )
        .await?;
    row.map(|row| row.try_get(0)).transpose()
}
