//! The writes of several instances in one transaction, with one commit between them.

use futures_util::future;
use tokio::sync::oneshot;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error as PgError};

use super::attempts::Fault;
use super::config::Stamp;
use super::failure::{Failure, SharedError};
use super::lines::Place;
use super::rows::RowWrites;
use super::transaction::Work;
use crate::durability::{Claim, FenceLost, RowOp, StoreError};

/// A write of one instance, from its call to its answer.
pub(super) struct Pending {
    pub(super) claim: Claim,
    /// The claim's epoch, as PostgreSQL keeps it.
    pub(super) epoch: i64,
    /// No two of them are on one row.
    pub(super) ops: Vec<RowOp>,
    /// Stays with the write until its outcome is known, also when nobody waits for that any more: the next operation of
    /// the instance must not overtake it.
    pub(super) place: Place,
    /// Closed once nobody waits for the outcome.
    pub(super) reply: oneshot::Sender<Result<(), StoreError>>,
}

impl Pending {
    /// About how many bytes it sends.
    pub(super) fn weight(&self) -> usize {
        let docs = self.ops.iter().filter_map(|op| op.state.as_ref());
        docs.map(|state| state.doc.as_str().len()).sum::<usize>() + 256 * self.ops.len()
    }

    pub(super) fn answer(self, outcome: Result<(), StoreError>) {
        // First: whoever gets the answer may call again, and then finds the line empty.
        drop(self.place);
        // Nobody may wait any more.
        let _ = self.reply.send(outcome);
    }
}

/// Answers those whose outcome is known, and gives back those that are to have a transaction of their own.
pub(super) fn settle(members: Vec<Pending>, outcome: Result<Vec<Fate>, Fault>) -> Vec<Pending> {
    match outcome {
        Ok(fates) => {
            let mut passed = Vec::new();
            for (member, fate) in members.into_iter().zip(fates) {
                match fate {
                    Fate::Written => member.answer(Ok(())),
                    Fate::Fenced => {
                        let lost = FenceLost::from(&member.claim).into();
                        member.answer(Err(lost));
                    }
                    Fate::Passed => passed.push(member),
                }
            }
            passed
        }
        // Alone each shows whether it is the one.
        Err(fault) if fault.blames_values() => members,
        Err(fault) => {
            let shared = SharedError::new(fault.into());
            for member in members {
                member.answer(Err(StoreError::failed(shared.clone())));
            }
            Vec::new()
        }
    }
}

/// What a group's transaction did with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Written,
    Fenced,
    /// Its epoch row was not to be had at once.
    Passed,
}

/// The transaction of a group, of which no two members are of one instance.
pub(super) struct Group<'a> {
    pub(super) members: &'a [Pending],
    pub(super) stamp: &'a Stamp,
}

/// Waits for nobody: an instance whose epoch row is held from outside must not stall the others (D10.7), and a
/// transaction that waits for nothing while it holds locks has no part in a deadlock.
const LOCK: &str = "\
    SELECT w.n, e.epoch FROM unnest($1, $2) WITH ORDINALITY AS w (ns, id, n) \
    JOIN pinned_epoch AS e ON e.ns = w.ns AND e.id = w.id FOR UPDATE OF e SKIP LOCKED";

const RAISE: &str = "\
    UPDATE pinned_epoch AS e SET epoch = r.epoch FROM unnest($1, $2, $3) AS r (ns, id, epoch) \
    WHERE e.ns = r.ns AND e.id = r.id";

impl Work for Group<'_> {
    type Found = Vec<Option<i64>>;
    type Output = Vec<Fate>;

    /// The stored epochs of those whose rows are locked now.
    async fn find(&self, client: &Client) -> Result<Vec<Option<i64>>, PgError> {
        let instances = self.members.iter().map(|member| &member.claim.instance);
        let (ns, id): (Vec<&str>, Vec<&str>) = instances
            .map(|instance| (&*instance.namespace, &*instance.id))
            .unzip();
        let rows = client
            .query_typed(LOCK, &[(&ns, Type::TEXT_ARRAY), (&id, Type::TEXT_ARRAY)])
            .await?;
        let mut stored = vec![None; self.members.len()];
        for row in rows {
            let (n, epoch): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            // Counted from 1.
            let slot = usize::try_from(n - 1).ok().and_then(|n| stored.get_mut(n));
            if let Some(slot) = slot {
                *slot = Some(epoch);
            }
        }
        Ok(stored)
    }

    async fn proceed(
        &self,
        client: &Client,
        found: Vec<Option<i64>>,
    ) -> Result<Vec<Fate>, Failure> {
        let mut writes = RowWrites::default();
        let mut raised = Raised::default();
        let fates = self.members.iter().zip(found).map(|(member, stored)| {
            let Some(stored) = stored else {
                return Fate::Passed;
            };
            if member.epoch < stored {
                return Fate::Fenced;
            }
            if member.epoch > stored {
                raised.push(member);
            }
            writes.push(&member.claim.instance, &member.ops);
            Fate::Written
        });
        let fates = fates.collect();
        future::try_join(raised.apply(client), writes.apply(client, self.stamp)).await?;
        Ok(fates)
    }
}

/// The epochs that move; at an equal epoch the row keeps its version (D9.4).
#[derive(Default)]
struct Raised<'a> {
    ns: Vec<&'a str>,
    id: Vec<&'a str>,
    epoch: Vec<i64>,
}

impl<'a> Raised<'a> {
    fn push(&mut self, member: &'a Pending) {
        self.ns.push(&member.claim.instance.namespace);
        self.id.push(&member.claim.instance.id);
        self.epoch.push(member.epoch);
    }

    async fn apply(&self, client: &Client) -> Result<(), PgError> {
        if self.ns.is_empty() {
            return Ok(());
        }
        client
            .execute_typed(
                RAISE,
                &[
                    (&self.ns, Type::TEXT_ARRAY),
                    (&self.id, Type::TEXT_ARRAY),
                    (&self.epoch, Type::INT8_ARRAY),
                ],
            )
            .await?;
        Ok(())
    }
}
