//! What is listed of rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use redis::cmd;

use super::RedisStore;
use super::answer::only;
use super::error::unexpected;
use super::keys::{self, Place};
use super::request::Request;
use crate::store::{SessionId, StoreError};

/// How many members one look at the rows of a session goes through, about.
const PAGE: usize = 1_000;
/// Where the number of the shard begins in a cursor; below it is the server's, which has fewer bits.
const SHARD_BITS: u32 = 48;

impl RedisStore {
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
}
