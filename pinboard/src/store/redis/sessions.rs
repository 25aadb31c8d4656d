//! Sessions: their beginning, their heartbeats, their end, and what a node reads of them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use redis::{Value, cmd};

use super::RedisStore;
use super::answer::{Answer, only};
use super::error::unexpected;
use super::keys::{self, Place};
use super::orders;
use super::request::{Call, Request};
use super::scripts::{BEGIN, END, FINISH, HEARTBEAT, PEEK, REGISTER, RENEW, SINCE};
use crate::store::{
    ClientRecord, EndMode, Heartbeat, HeartbeatOutcome, NewSession, QueuedMessage, Registered,
    SessionChanges, SessionId, SessionRecord, SessionUpdate, SessionView, StoreError,
};

/// How many control messages one heartbeat is answered with; the next follow once these are confirmed.
const MESSAGES: usize = 1_000;

/// How the scripts are told that a session ends at once,
const NOW: &str = "now";
/// or when its lease would have run out.
const LATER: &str = "later";

impl RedisStore {
    /// Begins a session in three steps: what stands before it, the shards, and last the fleet. So no node sees a session that
    /// a shard does not know, and none takes it to live longer than the shards do.
    pub(super) async fn begin_session(
        &self,
        session: NewSession,
    ) -> Result<Registered, StoreError> {
        let NewSession { id, record } = session;
        let peek = Call::new(Place::Fleet, &PEEK).arg(&record.client_id);
        let answers = self.router.one(peek.at(Place::Fleet)).await?;
        let (now, earlier): (u64, Option<String>) = only(answers)?;
        let earlier = earlier.filter(|earlier| *earlier != id.as_str());
        let expires = now + super::request::millis(self.options.lease_ttl);

        self.begin_in_shards(&id, &record.client_id, earlier.as_deref())
            .await?;

        let remembered = ClientRecord {
            client_id: record.client_id.clone(),
            namespaces: record.namespaces.clone(),
            hostname: record.hostname.clone(),
            envs: envs(&record),
        };
        let mut call = Call::new(Place::Fleet, &REGISTER)
            .arg(id.as_str())
            .arg(&record.client_id)
            .number(expires)
            .arg(json(&record)?)
            .arg(json(&record.update)?)
            .arg(json(&remembered)?)
            .millis(orders::REMEMBERED);
        for ns in &record.namespaces {
            call = call.arg(keys::namespace(record.env_of(ns), ns));
        }
        let answers = self.router.one(call.at(Place::Fleet)).await?;
        let (last, drain): (Option<String>, Option<String>) = only(answers)?;
        if let Some(last) = last
            .as_deref()
            .filter(|last| Some(*last) != earlier.as_deref())
        {
            // Another register of the same client came in between. Only that one is retired: this session may have been
            // too, meanwhile.
            self.end_in_shards(&SessionId::new(last), LATER).await?;
        }
        Ok(Registered {
            earlier: last.map(SessionId::new),
            drain: orders::parse_drain(drain.as_deref(), now)?,
        })
    }

    async fn begin_in_shards(
        &self,
        session: &SessionId,
        client: &str,
        earlier: Option<&str>,
    ) -> Result<(), StoreError> {
        let calls = Place::shards(self.options.shards).map(|place| {
            Call::new(place, &BEGIN)
                .arg(session.as_str())
                .arg(client)
                .millis(self.options.lease_ttl)
                .arg(earlier.unwrap_or_default())
                .at(place)
        });
        self.router.all(calls.collect()).await?;
        Ok(())
    }

    pub(super) async fn renew_session(
        &self,
        heartbeat: Heartbeat,
    ) -> Result<HeartbeatOutcome, StoreError> {
        let Heartbeat {
            session,
            update,
            acks,
        } = heartbeat;
        let ttl = self.options.lease_ttl;
        let addresses = match &update.moved_to {
            Some(addresses) => json(addresses)?,
            None => String::new(),
        };
        let mut call = with_messages(Call::new(Place::Fleet, &HEARTBEAT), &session)
            .arg(session.as_str())
            .millis(ttl)
            .arg(json(&update)?)
            .arg(addresses)
            .number(MESSAGES)
            .millis(orders::REMEMBERED);
        // What is no number is the id of no message.
        for number in acks.iter().filter_map(|id| id.parse::<u64>().ok()) {
            call = call.number(number);
        }
        // The fleet comes first: what the nodes see of a lease then ends no later than the lease.
        let mut requests = vec![call.at(Place::Fleet)];
        requests.extend(Place::shards(self.options.shards).map(|place| {
            let renew = Call::new(place, &RENEW).arg(session.as_str()).millis(ttl);
            renew.at(place)
        }));
        let mut answers = self.router.all(requests).await?.into_iter();
        let fleet = answers.next().unwrap_or_default();
        for shard in answers {
            if only::<u64>(shard)? == 0 {
                return Ok(HeartbeatOutcome::Unknown);
            }
        }
        match fleet.into_iter().next() {
            Some(Value::Nil) => Ok(HeartbeatOutcome::Unknown),
            Some(renewed) => {
                let mut answer = Answer::parts(renewed)?;
                let drain: Option<String> = answer.next()?;
                let now: u64 = answer.next()?;
                Ok(HeartbeatOutcome::Renewed {
                    drain: orders::parse_drain(drain.as_deref(), now)?,
                    messages: messages(answer.list()?)?,
                })
            }
            None => Err(unexpected("an answer was due")),
        }
    }

    pub(super) async fn finish_session(
        &self,
        session: &SessionId,
        mode: EndMode,
    ) -> Result<bool, StoreError> {
        let mode = match mode {
            EndMode::Now => NOW,
            EndMode::AtExpiry => LATER,
        };
        let fleet = with_messages(Call::new(Place::Fleet, &FINISH), session);
        let mut requests = vec![fleet.arg(session.as_str()).arg(mode).at(Place::Fleet)];
        requests.extend(self.ends(session, mode));
        let mut lived = false;
        for answers in self.router.all(requests).await? {
            lived |= only::<u64>(answers)? == 1;
        }
        Ok(lived)
    }

    async fn end_in_shards(&self, session: &SessionId, mode: &str) -> Result<(), StoreError> {
        self.router.all(self.ends(session, mode).collect()).await?;
        Ok(())
    }

    /// Ends a session in every shard.
    fn ends(&self, session: &SessionId, mode: &str) -> impl Iterator<Item = Request> {
        Place::shards(self.options.shards).map(move |place| {
            let end = Call::new(place, &END).arg(session.as_str()).arg(mode);
            end.at(place)
        })
    }

    pub(super) async fn client_of_session(
        &self,
        session: &SessionId,
    ) -> Result<Option<String>, StoreError> {
        // The fleet's data and each shard's may be lost alone.
        let places: Vec<_> = Place::all(self.options.shards).collect();
        let requests = places.iter().map(|place| {
            let mut get = cmd("HGET");
            get.arg(place.key("sessions")).arg(session.as_str());
            Request::new(*place).plain(get)
        });
        let answers = self.router.all(requests.collect()).await?;
        for (place, answers) in places.into_iter().zip(answers) {
            // What stands before the client: four things in the fleet, three in a shard.
            let before = if place == Place::Fleet { 4 } else { 3 };
            let known: Option<String> = only(answers)?;
            if let Some(client) = known
                .as_deref()
                .and_then(|known| known.splitn(before + 1, ' ').nth(before))
            {
                return Ok(Some(client.to_owned()));
            }
        }
        Ok(None)
    }

    pub(super) async fn changes_since(&self, version: u64) -> Result<SessionChanges, StoreError> {
        let call = Call::new(Place::Fleet, &SINCE).number(version);
        let answers = self.router.one(call.at(Place::Fleet)).await?;
        let mut answer = Answer::parts(answers.into_iter().next().unwrap_or(Value::Nil))?;
        let version = answer.next()?;
        let complete = answer.next::<u64>()? == 1;
        let now: u64 = answer.next()?;
        let mut changed = Vec::new();
        for session in answer.list()? {
            changed.push(view(session, now)?);
        }
        let ended: Vec<String> = answer.next()?;
        let namespaces: Option<Vec<String>> = answer.next()?;
        Ok(SessionChanges {
            version,
            complete,
            changed,
            ended: ended.into_iter().map(SessionId::new).collect(),
            namespaces: namespaces.map(|namespaces| {
                let namespaces = namespaces.iter();
                namespaces
                    .filter_map(|ns| keys::parse_namespace(ns))
                    .collect()
            }),
        })
    }
}

/// A call that is given the messages of a session too.
pub(super) fn with_messages(call: Call, session: &SessionId) -> Call {
    call.key(Place::Fleet.key_of("messages", session.as_str()))
        .key(Place::Fleet.key_of("deadlines", session.as_str()))
}

fn envs(record: &SessionRecord) -> Vec<std::sync::Arc<str>> {
    let others = record.envs.values().filter(|env| **env != record.env);
    let others: BTreeSet<_> = others.cloned().collect();
    std::iter::once(record.env.clone()).chain(others).collect()
}

/// Control messages: of each its number, whose it is, and what is left until its deadline.
fn messages(parts: Vec<Value>) -> Result<Vec<QueuedMessage>, StoreError> {
    let mut messages = Vec::with_capacity(parts.len() / 3);
    let mut parts = Answer::parts(Value::Array(parts))?;
    while !parts.is_empty() {
        let id: String = parts.next()?;
        let member: String = parts.next()?;
        let left: i64 = parts.next()?;
        let key = keys::parse_member(&member).ok_or_else(|| unexpected("an id was due"))?;
        messages.push(QueuedMessage {
            id,
            body: crate::store::MessageBody {
                key,
                deadline: u64::try_from(left).ok().map(Duration::from_millis),
            },
        });
    }
    Ok(messages)
}

fn view(session: Value, now: u64) -> Result<SessionView, StoreError> {
    let mut parts = Answer::parts(session)?;
    let id = SessionId::new(parts.next::<String>()?);
    let ending = parts.next::<String>()? != "l";
    let expires_in = Duration::from_millis(parts.next()?);
    let last_heartbeat_at = parts.next()?;
    let mut record: SessionRecord = from_json(&parts.next::<String>()?)?;
    if let Some(update) = parts.next::<Option<String>>()? {
        record.update = from_json::<SessionUpdate>(&update)?;
    }
    if let Some(addresses) = parts.next::<Option<String>>()? {
        record.addresses = from_json::<Vec<SocketAddr>>(&addresses)?;
    }
    let drain: Option<String> = parts.next()?;
    Ok(SessionView {
        id,
        record,
        drain: orders::parse_drain(drain.as_deref(), now)?,
        expires_in,
        last_heartbeat_at,
        ending,
    })
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Unusable(error.to_string()))
}

/// Says nothing of what was there: a record has a secret in it.
pub(super) fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| {
        unexpected(&format!(
            "JSON, line {} column {}",
            error.line(),
            error.column()
        ))
    })
}
