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

/// A write that has its turn in the line of its instance, and waits for a group.
pub(super) struct Waiting {
    pub(super) claim: Claim,
    /// The claim's epoch, as PostgreSQL keeps it.
    pub(super) epoch: i64,
    /// No two of them are on one row.
    pub(super) ops: Vec<RowOp>,
    /// Stays with the write until its outcome is known, also when nobody waits for that any more: the next operation of
    /// the instance must not overtake it.
    pub(super) place: Place,
    pub(super) reply: oneshot::Sender<Verdict>,
}

/// What became of a write in a group.
pub(super) enum Verdict {
    /// This is its outcome.
    Done(Result<(), StoreError>),
    /// It is to have a transaction of its own: its epoch row is locked or missing, or a write of its group was refused by
    /// the server.
    Alone(Box<Turn>),
}

/// A write that still has its turn.
pub(super) struct Turn {
    pub(super) claim: Claim,
    pub(super) epoch: i64,
    pub(super) ops: Vec<RowOp>,
    pub(super) place: Place,
}

impl Waiting {
    /// About how many bytes it sends.
    pub(super) fn weight(&self) -> usize {
        let docs = self.ops.iter().filter_map(|op| op.state.as_ref());
        docs.map(|state| state.doc.as_str().len()).sum::<usize>() + 256 * self.ops.len()
    }

    fn answer(self, outcome: Result<(), StoreError>) {
        // First: whoever gets the answer may call again, and then finds the line empty.
        drop(self.place);
        let _ = self.reply.send(Verdict::Done(outcome));
    }

    fn send_alone(self) {
        let turn = Turn {
            claim: self.claim,
            epoch: self.epoch,
            ops: self.ops,
            place: self.place,
        };
        // If nobody waits any more, this leaves the line.
        let _ = self.reply.send(Verdict::Alone(Box::new(turn)));
    }
}

/// Tells each member what became of it.
pub(super) fn answer(members: Vec<Waiting>, outcome: Result<Vec<Fate>, Fault>) {
    match outcome {
        Ok(fates) => {
            for (member, fate) in members.into_iter().zip(fates) {
                match fate {
                    Fate::Written => member.answer(Ok(())),
                    Fate::Fenced => {
                        let lost = FenceLost::from(&member.claim).into();
                        member.answer(Err(lost));
                    }
                    Fate::Passed => member.send_alone(),
                }
            }
        }
        Err(fault) if fault.blames_values() => {
            for member in members {
                member.send_alone();
            }
        }
        Err(fault) => {
            let shared = SharedError::new(fault.into());
            for member in members {
                member.answer(Err(StoreError::failed(shared.clone())));
            }
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
    pub(super) members: &'a [Waiting],
    pub(super) stamp: &'a Stamp,
}

/// Waits for nobody: an instance whose epoch row is held from outside must not stall the others (D10.7), and a
/// transaction that waits for nothing while it holds locks has no part in a deadlock.
const LOCK: &str = "\
    SELECT w.n, e.epoch FROM unnest($1, $2) WITH ORDINALITY AS w (ns, id, n) \
    JOIN pinned_epoch AS e ON e.ns = w.ns AND e.id = w.id \
    ORDER BY e.ns, e.id FOR UPDATE OF e SKIP LOCKED";

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
    fn push(&mut self, member: &'a Waiting) {
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
