//! Placing an id: reading its row, deciding, and setting it only if it is still what was read (P4.2).

use std::sync::Arc;
use std::time::Duration;

use super::choose::{Rules, choose, is_candidate};
use super::known::{KeyRef, Recall, Ticket};
use super::service::Inner;
use super::{NotPlaced, Placed};
use crate::metrics::Resolution;
use crate::store::{Claim, Claimed, Expected, FenceState, PlacementKey, Row, SessionId};
use crate::workers::{Namespace, Promise, Worker};

/// How often the store is asked about one id: more often than chance takes, when others place it or workers end
/// meanwhile.
const ROUNDS: usize = 8;

/// How old the reading of the sessions may be by which a request is turned away: strangers can ask for anything, and must not
/// cause a reading each time.
const NEWS: Duration = Duration::from_millis(100);

/// What is asked for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) key: PlacementKey,
    /// The new epoch is above this one.
    pub(super) above: u64,
    pub(super) rules: Rules,
    /// A holding that is no answer.
    pub(super) unless: Option<(SessionId, u64)>,
}

impl Wanted {
    pub(super) fn new(key: &PlacementKey) -> Self {
        Self {
            key: key.clone(),
            above: 0,
            rules: Rules::default(),
            unless: None,
        }
    }

    fn is_no_answer(&self, row: &Row) -> bool {
        is_holding(self.unless.as_ref(), &row.session, row.epoch)
    }
}

fn is_holding(holding: Option<&(SessionId, u64)>, session: &SessionId, epoch: u64) -> bool {
    holding.is_some_and(|holding| holding.0 == *session && holding.1 == epoch)
}

/// What came of asking.
#[derive(Debug)]
pub(super) enum Answer {
    Placed(Arc<Placed>),
    /// It is held as it was, by the holding that is no answer.
    Unmoved,
}

impl Answer {
    pub(super) fn into_placed(self) -> Option<Arc<Placed>> {
        match self {
            Self::Placed(placed) => Some(placed),
            Self::Unmoved => None,
        }
    }
}

/// One attempt to find out who holds an id.
struct Attempt {
    wanted: Wanted,
    expected: Expected,
    /// Whom the store wants, because it has just let go.
    preferred: Option<Arc<Worker>>,
}

/// What follows from a row.
enum Verdict {
    Answer(Answer),
    /// Ask the store again.
    Again,
}

impl Inner {
    /// Who holds an id, placing it when nobody does; remembers it, and waits until the worker can take requests. While the store
    /// is away, whoever was known to hold it (P12.4).
    ///
    /// # Errors
    ///
    /// There is no holder.
    ///
    /// # Cancel safety
    ///
    /// The id may have been placed.
    pub(super) async fn place(&self, wanted: Wanted) -> Result<Answer, NotPlaced> {
        let (key, unless) = (wanted.key.clone(), wanted.unless.clone());
        let outcome = self.attempt(wanted).await;
        if outcome.as_ref().err() != Some(&NotPlaced::StoreAway) {
            return outcome;
        }
        let now = self.domain.monotonic();
        match self.known.recall(KeyRef::of(&key), now) {
            Recall::Fresh(placed) | Recall::Doubtful(placed)
                if !is_holding(unless.as_ref(), &placed.worker.id, placed.epoch) =>
            {
                self.still_served(&placed)
                    .map(|placed| self.found(placed, Resolution::Cached))
                    .ok_or(NotPlaced::StoreAway)
            }
            _ => outcome,
        }
    }

    async fn attempt(&self, wanted: Wanted) -> Result<Answer, NotPlaced> {
        let mut attempt = Attempt {
            wanted,
            expected: Expected::Vacant,
            preferred: None,
        };
        for _ in 0..ROUNDS {
            let now = self.domain.monotonic();
            let ticket = self.known.ticket(&attempt.wanted.key, now);
            let Some(promise) = self.candidate(&mut attempt).await? else {
                return self.held_at_all(&attempt, &ticket).await;
            };
            let claim = Claim {
                key: attempt.wanted.key.clone(),
                candidate: promise.worker().id.clone(),
                expected: attempt.expected.clone(),
                above: attempt.wanted.above,
            };
            match self.ask(self.store.claim(claim)).await? {
                Claimed::Placed { epoch, replaced } => {
                    let placed = Placed::new(attempt.wanted.key.clone(), promise.keep(), epoch);
                    return Ok(self.placed(&ticket, placed, replaced).await);
                }
                Claimed::Held(row) => {
                    drop(promise);
                    match self.judge(&mut attempt, row, &ticket).await? {
                        Verdict::Answer(answer) => return Ok(answer),
                        Verdict::Again => {}
                    }
                }
                Claimed::Preferred(session) => attempt.prefer(self, &session),
                Claimed::CandidateGone => {
                    promise.worker().close();
                    attempt.wanted.rules.exclude(&promise.worker().id);
                    self.workers.refresh_soon();
                }
                Claimed::Quarantined { ends_in } => return Err(NotPlaced::Quarantined(ends_in)),
            }
        }
        tracing::warn!(
            namespace = &*attempt.wanted.key.ns,
            instance_id = &*attempt.wanted.key.id,
            "gave up placing an id: each time, something else had become of it"
        );
        Err(NotPlaced::NoWorkers)
    }

    /// A worker to place the id on; `None` when there is none.
    async fn candidate(&self, attempt: &mut Attempt) -> Result<Option<Promise>, NotPlaced> {
        if let Some(worker) = attempt.preferred.take() {
            return Ok(Some(worker.promise()));
        }
        let key = &attempt.wanted.key;
        let rules = &attempt.wanted.rules;
        if let Some(promise) = self
            .workers
            .namespace(&key.env, &key.ns)
            .and_then(|namespace| self.choose(&namespace, rules))
        {
            return Ok(Some(promise));
        }
        // One may have registered with another node a moment ago.
        let read = self.workers.refresh_if_older(NEWS).await;
        match self.workers.namespace(&key.env, &key.ns) {
            Some(namespace) => Ok(self.choose(&namespace, rules)),
            None if read.is_ok() => Err(NotPlaced::UnknownNamespace),
            None => Err(NotPlaced::StoreAway),
        }
    }

    fn choose(&self, namespace: &Namespace, rules: &Rules) -> Option<Promise> {
        let now = self.domain.monotonic();
        choose(
            &namespace.workers,
            rules,
            now,
            self.forward_needs,
            &self.rng,
        )
    }

    /// Nobody can take the id; somebody may hold it, though.
    async fn held_at_all(&self, attempt: &Attempt, ticket: &Ticket) -> Result<Answer, NotPlaced> {
        let wanted = &attempt.wanted;
        let row = self.ask(self.store.row(&wanted.key)).await?;
        let Some(row) = row else {
            return Err(NotPlaced::NoWorkers);
        };
        if let Some(FenceState::Standing { ends_in }) = row.fence {
            return Err(NotPlaced::Fenced(ends_in));
        }
        if wanted.is_no_answer(&row) {
            return Ok(Answer::Unmoved);
        }
        if !row.current {
            return Err(NotPlaced::NoWorkers);
        }
        let worker = match self.workers.get(&row.session) {
            Some(worker) => worker,
            None if self.workers.has_ended(&row.session) => return Err(NotPlaced::NoWorkers),
            None => {
                self.read_sessions().await?;
                let worker = self.workers.get(&row.session);
                worker.ok_or(NotPlaced::NoWorkers)?
            }
        };
        Ok(self.held(ticket, &wanted.key, &row, worker).await)
    }

    /// Somebody holds the id.
    async fn judge(
        &self,
        attempt: &mut Attempt,
        row: Row,
        ticket: &Ticket,
    ) -> Result<Verdict, NotPlaced> {
        match row.fence {
            Some(FenceState::Standing { ends_in }) => return Err(NotPlaced::Fenced(ends_in)),
            // It was asked to let go, and lives. What it had has ended, or it never had it when the order came; then it may have
            // begun the id since, and nobody else may (P4.6).
            Some(FenceState::Ahead { .. } | FenceState::Passed) | None => {}
        }
        if !row.current {
            // The store alone can tell whose it is now, once all who live have had the time to say so.
            attempt.expect_dead(&row);
            return Ok(Verdict::Again);
        }
        if attempt.wanted.is_no_answer(&row) {
            let lives = self.workers.get(&row.session).is_some();
            // A holder that this node takes for dead is put to the test once.
            if lives || attempt.expects_dead(&row) {
                return Ok(Verdict::Answer(Answer::Unmoved));
            }
        }
        if let Some(worker) = self.workers.get(&row.session) {
            let answer = self.held(ticket, &attempt.wanted.key, &row, worker).await;
            return Ok(Verdict::Answer(answer));
        }
        // The store alone decides who is dead. One that this node has never read of is more likely new, and one whose lease
        // it saw run out more likely dead.
        let alive_after_all = attempt.expects_dead(&row);
        let unread = !self.workers.has_ended(&row.session) && !self.workers.has_read(&row.session);
        if unread || alive_after_all {
            self.read_sessions().await?;
            if let Some(worker) = self.workers.get(&row.session) {
                let answer = self.held(ticket, &attempt.wanted.key, &row, worker).await;
                return Ok(Verdict::Answer(answer));
            }
        }
        if alive_after_all {
            // It holds the row, and is not on the list: the store has lost one of the two, and the worker will be back.
            return Err(NotPlaced::NoWorkers);
        }
        attempt.expect_dead(&row);
        Ok(Verdict::Again)
    }
}

impl Attempt {
    fn expect_dead(&mut self, row: &Row) {
        self.expected = Expected::HeldByDead {
            session: row.session.clone(),
            epoch: row.epoch,
        };
    }

    fn expects_dead(&self, row: &Row) -> bool {
        matches!(
            &self.expected,
            Expected::HeldByDead { session, epoch } if *session == row.session && *epoch == row.epoch
        )
    }

    /// The id was released a moment after its placement, and goes back if its former holder can take it.
    fn prefer(&mut self, inner: &Inner, session: &SessionId) {
        let now = inner.domain.monotonic();
        let able = |worker: &Arc<Worker>| {
            is_candidate(worker, &self.wanted.rules, now, inner.forward_needs)
        };
        // Only once: if that one was the candidate, the store would have taken it.
        self.preferred = inner.workers.get(session).filter(able);
        self.expected = match self.preferred {
            Some(_) => Expected::Vacant,
            None => Expected::VacantForAnyone,
        };
    }
}
