//! What the fleet shares beside sessions: events and leases.

use std::time::Duration;

use redis::cmd;

use super::RedisStore;
use super::answer::only;
use super::error::unexpected;
use super::keys::Place;
use super::request::{Call, Request};
use super::scripts::{APPEND, LEAD, Script};
use super::sessions::{from_json, json};
use crate::store::{Event, EventPage, StoreError};

/// How many events the ring keeps (P3.3).
const RING: usize = 1_000;
/// How many events one call of a script appends.
const BATCH: usize = 250;

impl RedisStore {
    pub(super) async fn append(&self, events: Vec<Event>) -> Result<(), StoreError> {
        // What the ring would not keep is not sent either.
        let kept = &events[events.len().saturating_sub(RING)..];
        for batch in kept.chunks(BATCH) {
            let mut call = fleet_call(&APPEND)
                .key(Place::Fleet.key("events"))
                .key(Place::Fleet.key("events-last"))
                .number(RING);
            for event in batch {
                call = call.arg(json(event)?);
            }
            self.router.one(call.at(Place::Fleet)).await?;
        }
        Ok(())
    }

    pub(super) async fn events(&self, after: u64, limit: usize) -> Result<EventPage, StoreError> {
        let mut page = EventPage {
            events: Vec::new(),
            next: after,
        };
        let (Some(first), 1..) = (after.checked_add(1), limit) else {
            return Ok(page);
        };
        let mut range = cmd("XRANGE");
        range
            .arg(Place::Fleet.key("events"))
            .arg(first)
            .arg("+")
            .arg("COUNT")
            .arg(limit.min(RING));
        let answers = self
            .router
            .one(Request::new(Place::Fleet).plain(range))
            .await?;
        let entries: Vec<(String, Vec<String>)> = only(answers)?;
        for (id, fields) in entries {
            let seq = id.split_once('-').and_then(|(seq, _)| seq.parse().ok());
            let seq = seq.ok_or_else(|| unexpected("the number of an event was due"))?;
            let text = fields.get(1).map(String::as_str).unwrap_or_default();
            page.events.push(Event {
                seq,
                ..from_json(text)?
            });
            page.next = seq;
        }
        Ok(page)
    }

    pub(super) async fn take_lead(
        &self,
        name: &str,
        node: &str,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let call = lease_call(name)
            .arg(node)
            .number(super::request::millis(ttl).max(1));
        let answers = self.router.one(call.at(Place::Fleet)).await?;
        Ok(only::<u64>(answers)? == 1)
    }

    pub(super) async fn give_up_lead(&self, name: &str, node: &str) -> Result<(), StoreError> {
        let call = lease_call(name).arg(node).arg("");
        self.router.one(call.at(Place::Fleet)).await?;
        Ok(())
    }

    pub(super) async fn read_leader(
        &self,
        name: &str,
    ) -> Result<Option<(String, Duration)>, StoreError> {
        let key = lease_key(name);
        let (mut holder, mut left) = (cmd("GET"), cmd("PTTL"));
        holder.arg(&key);
        left.arg(&key);
        let request = Request::new(Place::Fleet).plain(holder).plain(left);
        let mut answers = self.router.one(request).await?.into_iter();
        let mut next = || answers.next().into_iter().collect();
        let holder: Option<String> = only(next())?;
        // It may run out between the two.
        let left = u64::try_from(only::<i64>(next())?).ok();
        Ok(holder.zip(left.map(Duration::from_millis)))
    }
}

fn lease_key(name: &str) -> String {
    Place::Fleet.key_of("lease", name)
}

fn fleet_call(script: &'static Script) -> Call {
    Call::with_keys(script, vec![Place::Fleet.key("boot")])
}

fn lease_call(name: &str) -> Call {
    fleet_call(&LEAD).key(lease_key(name))
}
