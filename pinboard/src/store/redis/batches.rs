//! Many rows at once: handing them back, reclaiming and sweeping them. They go in batches, so that no script holds up its
//! server for long.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::cmd;

use super::RedisStore;
use super::answer::only;
use super::keys::Place;
use super::orders;
use super::request::{Call, Request};
use super::scripts::{DEAD, RECLAIM, RELEASE, SWEEP, TIDY};
use crate::store::{PlacementKey, Reclaimed, Release, SessionId, StoreError};

/// How many rows one call of a script touches.
const BATCH: usize = 256;
/// How many dead sessions one sweep looks after in each shard.
const SWEPT: usize = 8;
/// A release that comes within this of its placement is remembered,
const SOON: Duration = Duration::from_secs(1);
/// for so long.
const REMEMBERED: Duration = Duration::from_secs(5);

impl RedisStore {
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
            .millis(orders::REMEMBERED);
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

    /// For how long what is dead is remembered.
    fn remembered(&self) -> Duration {
        self.options.lease_ttl.saturating_mul(4)
    }
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
}
