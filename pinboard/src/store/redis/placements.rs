//! Who holds which id.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value, cmd};

use super::RedisStore;
use super::answer::{only, read};
use super::error::unexpected;
use super::keys::{self, Member, Place};
use super::router::{Call, Request};
use super::rows;
use super::scripts::{CLAIM, DEAD, FENCE, RECLAIM, RELEASE, SWEEP, TIDY};
use crate::store::{
    Claim, Claimed, Expected, Fence, FencedRow, PlacementKey, Reclaimed, Release, Row, SessionId,
    StoreError,
};

/// How many rows one call of a script touches, so that it does not hold up the server.
const BATCH: usize = 256;
/// How many dead sessions one sweep looks after in each shard.
const SWEPT: usize = 8;
/// How many members one look at the rows of a session goes through, about.
const PAGE: usize = 1_000;
/// A release that comes within this of its placement is remembered,
const SOON: Duration = Duration::from_secs(1);
/// for so long.
const REMEMBERED: Duration = Duration::from_secs(5);
/// The highest epoch that claims are asked to be above. So there are always more, and all fit 63 bits.
const HIGHEST: u64 = 1 << 62;
/// Where the number of the shard begins in a cursor; below it is the server's, which has fewer bits.
const SHARD_BITS: u32 = 48;

impl RedisStore {
    pub(super) async fn read_row(&self, key: &PlacementKey) -> Result<Option<Row>, StoreError> {
        let member = self.member(key);
        let request = Request::new(member.place())
            .plain(remember())
            .plain(get(&member))
            .plain(cmd("TIME"));
        let answers = self.router.one(request).await?;
        let [_, text, time] = three(answers)?;
        let text: Option<String> = read(text)?;
        let (seconds, micros): (u64, u64) = read(time)?;
        let now = seconds * 1_000 + micros / 1_000;
        Ok(text.and_then(|text| rows::parse(&text, now)))
    }

    pub(super) async fn claim_row(&self, claim: Claim) -> Result<Claimed, StoreError> {
        if claim.above > HIGHEST {
            return Err(StoreError::Unusable(format!(
                "no epoch is left above {}",
                claim.above
            )));
        }
        let member = self.member(&claim.key);
        let place = member.place();
        let mut call = Call::new(place, &CLAIM)
            .key(member.row())
            .key(place.rows_of(&claim.candidate));
        if let Expected::HeldByDead { session, .. } = &claim.expected {
            call = call.key(place.rows_of(session));
        }
        call = call
            .arg(claim.candidate.as_str())
            .arg(&member.text)
            .number(claim.above)
            .arg(match claim.expected {
                Expected::VacantForAnyone => "a",
                Expected::Vacant | Expected::HeldByDead { .. } => "v",
            });
        if let Expected::HeldByDead { session, epoch } = &claim.expected {
            call = call.arg(session.as_str()).number(epoch);
        }
        // The server remembers for this connection what is read last: the row as the script has left it.
        let request = Request::new(place)
            .call(call)
            .plain(remember())
            .plain(get(&member));
        let answers = self.router.one(request).await?;
        let [answer, _, seen] = three(answers)?;
        let claimed = claimed(&read::<String>(answer)?)?;
        let seen: Option<String> = read(seen)?;
        if !agree(&claimed, &claim.candidate, seen.as_deref()) {
            // It has changed since, before the server watched it.
            self.router.invalidations().row(claim.key);
        }
        Ok(claimed)
    }

    pub(super) async fn release_rows(&self, releases: &[Release]) -> Result<u64, StoreError> {
        let mut groups: BTreeMap<(u16, &SessionId), Vec<(String, String)>> = BTreeMap::new();
        for release in releases {
            let member = self.member(&release.key);
            let epoch = release.epoch.map(|epoch| epoch.to_string());
            groups
                .entry((member.shard, &release.session))
                .or_default()
                .push((member.text, epoch.unwrap_or_default()));
        }
        let mut freed = 0;
        for round in rounds(&groups) {
            let calls = round.into_iter().map(|((shard, session), rows)| {
                let place = Place::Shard(*shard);
                let mut call = Call::new(place, &RELEASE)
                    .key(place.rows_of(session))
                    .keys(rows.iter().map(|(member, _)| place.row(member)))
                    .arg(session.as_str())
                    .millis(SOON)
                    .millis(REMEMBERED);
                for (member, epoch) in rows {
                    call = call.arg(member).arg(epoch);
                }
                call.at(place)
            });
            for answers in self.router.all(calls.collect()).await? {
                freed += only::<u64>(answers)?;
            }
        }
        Ok(freed)
    }

    pub(super) async fn reclaim_rows(
        &self,
        session: &SessionId,
        previous: &[SessionId],
        keys: &[PlacementKey],
    ) -> Result<Vec<Reclaimed>, StoreError> {
        let mut previous: Vec<_> = previous.iter().filter(|other| *other != session).collect();
        previous.sort_unstable();
        previous.dedup();
        let mut groups: BTreeMap<u16, Vec<(usize, String)>> = BTreeMap::new();
        for (n, key) in keys.iter().enumerate() {
            let member = self.member(key);
            let group = groups.entry(member.shard).or_default();
            group.push((n, member.text));
        }
        let mut reclaimed = vec![Reclaimed::Duplicate; keys.len()];
        for round in rounds(&groups) {
            let calls = round.iter().map(|(shard, rows)| {
                let place = Place::Shard(**shard);
                let mut call = Call::new(place, &RECLAIM)
                    .key(place.rows_of(session))
                    .keys(previous.iter().map(|other| place.rows_of(other)))
                    .keys(rows.iter().map(|(_, member)| place.row(member)))
                    .arg(session.as_str())
                    .number(previous.len());
                for other in &previous {
                    call = call.arg(other.as_str());
                }
                for (_, member) in *rows {
                    call = call.arg(member);
                }
                call.at(place)
            });
            let answers = self.router.all(calls.collect()).await?;
            for ((_, rows), answers) in round.iter().zip(answers) {
                let Some(answers) = only::<Option<Vec<(String, u64)>>>(answers)? else {
                    return Err(StoreError::unavailable(
                        "a shard of Redis does not know the session: it has to begin anew",
                    ));
                };
                for ((n, _), (code, epoch)) in rows.iter().zip(answers) {
                    reclaimed[*n] = match &*code {
                        "m" => Reclaimed::Moved { epoch },
                        "c" => Reclaimed::Claimed { epoch },
                        _ => Reclaimed::Duplicate,
                    };
                }
            }
        }
        Ok(reclaimed)
    }

    pub(super) async fn fence_row(
        &self,
        key: &PlacementKey,
        fence: Option<Fence>,
    ) -> Result<Option<FencedRow>, StoreError> {
        let member = self.member(key);
        let mut call = Call::new(member.place(), &FENCE).key(member.row());
        call = match fence {
            Some(fence) => call
                .millis(fence.starts_in)
                .millis(fence.ends_in.max(fence.starts_in)),
            None => call.arg(""),
        };
        let answers = self.router.one(call.at(member.place())).await?;
        let fenced: Option<(String, u64)> = only(answers)?;
        Ok(fenced.map(|(session, epoch)| FencedRow {
            session: SessionId::new(session),
            epoch,
        }))
    }

    pub(super) async fn list_held(
        &self,
        session: &SessionId,
        env: &str,
        ns: &str,
        cursor: u64,
    ) -> Result<(Vec<Arc<str>>, u64), StoreError> {
        let shard = u16::try_from(cursor >> SHARD_BITS).unwrap_or(u16::MAX);
        if shard >= self.options.shards {
            return Ok((Vec::new(), 0));
        }
        let place = Place::Shard(shard);
        let mut scan = cmd("SSCAN");
        scan.arg(place.rows_of(session))
            .arg(cursor & ((1 << SHARD_BITS) - 1))
            .arg("MATCH")
            .arg(keys::pattern(env, ns))
            .arg("COUNT")
            .arg(PAGE);
        let answers = self.router.one(Request::new(place).plain(scan)).await?;
        let (next, members): (u64, Vec<String>) = only(answers)?;
        let ids = members
            .iter()
            .filter_map(|member| keys::parse_member(member))
            .map(|key| key.id)
            .collect();
        let next = match next {
            0 if shard + 1 == self.options.shards => 0,
            0 => u64::from(shard + 1) << SHARD_BITS,
            next if next >> SHARD_BITS == 0 => cursor >> SHARD_BITS << SHARD_BITS | next,
            _ => return Err(unexpected("a cursor of so many bits")),
        };
        Ok((ids, next))
    }

    pub(super) async fn count_rows(&self) -> Result<Vec<(Arc<str>, Arc<str>, u64)>, StoreError> {
        let counts = Place::shards(self.options.shards).map(|place| {
            let mut counts = cmd("HGETALL");
            counts.arg(place.key("counts"));
            Request::new(place).plain(counts)
        });
        let mut rows: BTreeMap<String, u64> = BTreeMap::new();
        for answers in self.router.all(counts.collect()).await? {
            for (namespace, some) in only::<Vec<(String, u64)>>(answers)? {
                *rows.entry(namespace).or_default() += some;
            }
        }
        let rows = rows.into_iter().filter_map(|(namespace, rows)| {
            let (env, ns) = keys::parse_namespace(&namespace)?;
            Some((env, ns, rows))
        });
        Ok(rows.collect())
    }

    pub(super) async fn sweep_rows(&self) -> Result<bool, StoreError> {
        let remembered = self.remembered();
        let shards: Vec<_> = Place::shards(self.options.shards).collect();
        let mut calls: Vec<_> = shards
            .iter()
            .map(|&place| {
                let call = Call::new(place, &DEAD).millis(remembered).number(SWEPT);
                call.at(place)
            })
            .collect();
        let tidy = Call::new(Place::Fleet, &TIDY)
            .millis(remembered)
            .number(BATCH)
            .millis(super::orders::REMEMBERED);
        calls.push(tidy.at(Place::Fleet));
        let mut answers = self.router.all(calls).await?;
        let mut more = only::<u64>(answers.pop().unwrap_or_default())? == 1;

        let mut dead = Vec::new();
        for (place, answers) in shards.iter().zip(answers) {
            let sessions: Vec<String> = only(answers)?;
            more |= sessions.len() == SWEPT;
            dead.extend(
                sessions
                    .into_iter()
                    .map(|session| (*place, SessionId::new(session))),
            );
        }
        if dead.is_empty() {
            return Ok(more);
        }
        let some = dead.iter().map(|(place, session)| {
            let mut some = cmd("SRANDMEMBER");
            some.arg(place.rows_of(session)).arg(BATCH);
            Request::new(*place).plain(some)
        });
        let members = self.router.all(some.collect()).await?;
        let mut calls = Vec::with_capacity(dead.len());
        for ((place, session), members) in dead.iter().zip(members) {
            let members: Vec<String> = only(members)?;
            more |= members.len() == BATCH;
            let mut call = Call::new(*place, &SWEEP)
                .key(place.rows_of(session))
                .keys(members.iter().map(|member| place.row(member)))
                .arg(session.as_str());
            for member in &members {
                call = call.arg(member);
            }
            calls.push(call.at(*place));
        }
        self.router.all(calls).await?;
        Ok(more)
    }

    fn member(&self, key: &PlacementKey) -> Member {
        Member::new(key, self.options.shards)
    }

    /// For how long what is dead is remembered.
    pub(super) fn remembered(&self) -> Duration {
        self.options.lease_ttl.saturating_mul(4)
    }
}

/// Has the server tell when what the next command reads has changed.
fn remember() -> Cmd {
    let mut remember = cmd("CLIENT");
    remember.arg("CACHING").arg("YES");
    remember
}

fn get(member: &Member) -> Cmd {
    let mut get = cmd("GET");
    get.arg(member.row());
    get
}

fn three(answers: Vec<Value>) -> Result<[Value; 3], StoreError> {
    <[Value; 3]>::try_from(answers).map_err(|_| unexpected("three answers were due"))
}

/// What came of a claim, as the script says it.
fn claimed(line: &str) -> Result<Claimed, StoreError> {
    let unexpected = || unexpected("what came of a claim was due");
    let number = |text: &str| text.parse::<u64>().map_err(|_| unexpected());
    let (code, rest) = line.split_once(' ').unwrap_or((line, ""));
    match code {
        "placed" | "replaced" => Ok(Claimed::Placed {
            epoch: number(rest)?,
            replaced: code == "replaced",
        }),
        "held" => {
            let (now, row) = rest.split_once(' ').ok_or_else(unexpected)?;
            let row = rows::parse(row, number(now)?).ok_or_else(unexpected)?;
            Ok(Claimed::Held(row))
        }
        "quarantined" => Ok(Claimed::Quarantined {
            ends_in: Duration::from_millis(number(rest)?),
        }),
        "preferred" => Ok(Claimed::Preferred(SessionId::new(rest))),
        "gone" => Ok(Claimed::CandidateGone),
        _ => Err(unexpected()),
    }
}

/// Whether the row that was seen after a claim is the one that the claim came to.
fn agree(claimed: &Claimed, candidate: &SessionId, seen: Option<&str>) -> bool {
    let (session, epoch, fenced) = match claimed {
        Claimed::Placed { epoch, .. } => (candidate, *epoch, false),
        Claimed::Held(row) => (&row.session, row.epoch, row.fence.is_some()),
        // No row to remember.
        _ => return true,
    };
    let seen = seen.and_then(|seen| rows::parse(seen, 0));
    seen.is_some_and(|seen| {
        seen.session == *session && seen.epoch == epoch && seen.fence.is_some() == fenced
    })
}

/// The rows of all groups in rounds, each of which has one batch of each group at most.
fn rounds<K, V>(groups: &BTreeMap<K, Vec<V>>) -> Vec<Vec<(&K, &[V])>> {
    let longest = groups.values().map(Vec::len).max().unwrap_or(0);
    let round = |n: usize| {
        let batches = groups
            .iter()
            .filter_map(|(key, rows)| Some((key, rows.chunks(BATCH).nth(n)?)));
        batches.collect()
    };
    (0..longest.div_ceil(BATCH)).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::router::millis;

    #[test]
    fn rounds_have_everything_once() {
        let groups = BTreeMap::from([(1, (0..600).collect()), (2, vec![]), (3, vec![7])]);
        let rounds = rounds(&groups);
        let sizes: Vec<Vec<_>> = rounds
            .iter()
            .map(|round| {
                round
                    .iter()
                    .map(|(key, rows)| (**key, rows.len()))
                    .collect()
            })
            .collect();
        assert_eq!(
            sizes,
            [vec![(1, 256), (3, 1)], vec![(1, 256)], vec![(1, 88)]]
        );
        let first: Vec<_> = rounds
            .iter()
            .flat_map(|round| round[0].1)
            .copied()
            .collect();
        assert_eq!(first, (0..600).collect::<Vec<_>>());
    }

    #[test]
    fn only_what_a_claim_comes_to_is_taken_for_it() {
        for line in [
            "",
            "placed",
            "placed -1",
            "held 7",
            "held 7 f 9 s",
            "held x h 1 2 3 0 0 s",
            "quarantined",
            "else",
        ] {
            assert!(claimed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn epochs_keep_all_of_their_digits() {
        let claimed = claimed("placed 9007199254740993").expect("it is well formed");
        let expected = Claimed::Placed {
            epoch: (1 << 53) + 1,
            replaced: false,
        };
        assert_eq!(claimed, expected);
        assert_eq!(millis(Duration::from_nanos(1)), 1);
        assert_eq!(millis(Duration::MAX), 3_153_600_000_000);
    }
}
