//! Placing ids that nobody holds, those of a shard together: whoever comes while a claim is on its way goes with the next.
//! What a script costs before it has placed anything is paid once for all of them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use redis::Value;
use tokio::sync::oneshot;

use super::answer::read;
use super::error::unexpected;
use super::keys::{self, Member, Place};
use super::placements::{agree, claimed, remember};
use super::request::{Call, Request};
use super::router::Router;
use super::scripts::CLAIMS;
use crate::store::{Claim, Claimed, SessionId, StoreError};

/// How many ids one call of the script places, so that none holds up its server for long.
const BATCH: usize = 64;
/// How many wait in one shard. More than these are claimed alone.
const WAITING: usize = 4_096;

/// The claims that wait for others of their shard.
pub(super) struct Claims {
    router: Arc<Router>,
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Default)]
struct Shard {
    waiting: Vec<Waiting>,
    /// Someone carries claims of this shard to the server, and will come for those that wait.
    flying: bool,
}

struct Waiting {
    claim: Claim,
    member: Member,
    answer: oneshot::Sender<Outcome>,
}

/// What came of a claim; nothing when it is to be made alone.
type Outcome = Result<Option<Claimed>, StoreError>;

/// One who carries the claims of a shard. However it ends, the next claim finds that nobody does.
struct Flight {
    claims: Arc<Claims>,
    shard: u16,
    /// It has found nobody waiting, and may have a successor since.
    over: bool,
}

/// Why several claims have failed.
#[derive(Debug)]
struct Cause(Arc<StoreError>);

// ===== impl Claims =====

impl Claims {
    pub(super) fn new(router: Arc<Router>, shards: u16) -> Arc<Self> {
        let shards = (0..shards).map(|_| Mutex::default()).collect();
        Arc::new(Self { router, shards })
    }

    /// Makes a claim that expects nobody to hold the id.
    ///
    /// # Errors
    ///
    /// As the call of the script that it went with.
    ///
    /// # Cancel safety
    ///
    /// The id may have been placed.
    pub(super) async fn make(self: &Arc<Self>, claim: Claim, member: Member) -> Outcome {
        let Some(answer) = self.join(claim, member) else {
            return Ok(None);
        };
        // The flight is dropped with the runtime of whoever began it, which need not be that of this caller. Whether it has
        // placed the id is not known; where it has, a claim that is made alone finds that.
        answer.await.unwrap_or(Ok(None))
    }

    /// Puts a claim where the next flight of its shard takes it, and starts that when there is none; `None` when too many wait.
    fn join(self: &Arc<Self>, claim: Claim, member: Member) -> Option<oneshot::Receiver<Outcome>> {
        let number = member.shard;
        let (answer, outcome) = oneshot::channel();
        let mut shard = self.shards.get(usize::from(number))?.lock();
        if shard.waiting.len() >= WAITING {
            return None;
        }
        shard.waiting.push(Waiting {
            claim,
            member,
            answer,
        });
        let flight = (!std::mem::replace(&mut shard.flying, true)).then(|| Flight {
            claims: Arc::clone(self),
            shard: number,
            over: false,
        });
        // Where there is no runtime the flight is dropped at once, and locks the shard.
        drop(shard);
        if let Some(flight) = flight {
            self.router.domain().spawn(flight.run());
        }
        Some(outcome)
    }

    /// Carries claims of one shard to its server, and the answers back.
    async fn carry(&self, shard: u16, batch: Vec<Waiting>) {
        match self.call(Place::Shard(shard), &batch).await {
            Ok(outcomes) => {
                for (waiting, outcome) in batch.into_iter().zip(outcomes) {
                    _ = waiting.answer.send(outcome);
                }
            }
            Err(error) => {
                let error = Arc::new(error);
                for waiting in batch {
                    _ = waiting.answer.send(Err(shared(&error)));
                }
            }
        }
    }

    /// What came of each, in their order.
    async fn call(&self, place: Place, batch: &[Waiting]) -> Result<Vec<Outcome>, StoreError> {
        let answers = self.router.one(request(place, batch)).await?;
        let [answers, _, seen] =
            <[Value; 3]>::try_from(answers).map_err(|_| unexpected("three answers were due"))?;
        let Some(lines) = read::<Option<Vec<String>>>(answers)? else {
            return Ok(batch.iter().map(|_| Ok(None)).collect());
        };
        let seen: Vec<Option<String>> = read(seen)?;
        if lines.len() != batch.len() || seen.len() != batch.len() {
            return Err(unexpected("an answer for each claim was due"));
        }
        let outcome = |((waiting, line), seen): ((&Waiting, &String), &Option<String>)| {
            if line.is_empty() {
                return Ok(None);
            }
            let claimed = claimed(line)?;
            if !agree(&claimed, line, &waiting.claim.candidate, seen.as_deref()) {
                // It has changed since, before the server watched it.
                let key = waiting.claim.key.clone();
                self.router.invalidations().row(key);
            }
            Ok(Some(claimed))
        };
        Ok(batch.iter().zip(&lines).zip(&seen).map(outcome).collect())
    }
}

// ===== impl Flight =====

impl Flight {
    async fn run(mut self) {
        while let Some(batch) = self.take() {
            self.claims.carry(self.shard, batch).await;
        }
    }

    /// The next claims; when there are none, the next that comes starts a flight of its own.
    fn take(&mut self) -> Option<Vec<Waiting>> {
        let mut shard = self.claims.shards[usize::from(self.shard)].lock();
        // Whoever has left is not to be given anything.
        shard.waiting.retain(|waiting| !waiting.answer.is_closed());
        let many = shard.waiting.len().min(BATCH);
        self.over = many == 0;
        shard.flying = many > 0;
        (many > 0).then(|| shard.waiting.drain(..many).collect())
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.over {
            let mut shard = self.claims.shards[usize::from(self.shard)].lock();
            *shard = Shard::default();
        }
    }
}

// ===== impl Cause =====

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            StoreError::Unavailable(cause) => cause.fmt(f),
            error => error.fmt(f),
        }
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.0 {
            StoreError::Unavailable(cause) => cause.source(),
            error => error.source(),
        }
    }
}

/// The script for `batch`, and the rows as it has left them, which the server remembers for this connection.
fn request(place: Place, batch: &[Waiting]) -> Request {
    let mut candidates: Vec<&SessionId> = Vec::new();
    let mut call = Call::new(place, &CLAIMS)
        .keys(batch.iter().map(|waiting| waiting.member.row()))
        .number(batch.len());
    let mut seen = redis::cmd("MGET");
    for Waiting { claim, member, .. } in batch {
        let known = candidates
            .iter()
            .position(|other| **other == claim.candidate);
        let candidate = known.unwrap_or_else(|| {
            candidates.push(&claim.candidate);
            candidates.len() - 1
        });
        call = call
            .arg(&member.text)
            .arg(keys::namespace_of(&member.text))
            .number(claim.above)
            .number(candidate + 1);
        seen.arg(member.row());
    }
    for candidate in &candidates {
        call = call.key(place.rows_of(candidate)).arg(candidate.as_str());
    }
    Request::new(place).call(call).plain(remember()).plain(seen)
}

/// One error for several who wait.
fn shared(error: &Arc<StoreError>) -> StoreError {
    match &**error {
        StoreError::Unusable(why) => StoreError::Unusable(why.clone()),
        StoreError::Unavailable(_) => StoreError::unavailable(Cause(Arc::clone(error))),
    }
}
