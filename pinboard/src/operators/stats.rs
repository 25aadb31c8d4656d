//! `GET /registry/stats`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use pinned_wire::headers::PROXY_SECRET;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::Operators;
use crate::passport::Principal;
use crate::sessions::{AdvertisedUrl, RegistryError, addresses_of, secret_header};
use crate::store::SessionView;
use crate::upstream::{Fetch, FetchError};

/// How long one worker may take (P3.2).
const WORKER_TIME: Duration = Duration::from_secs(5);
/// How long all of them may take; whoever has not been asked by then is not.
const ALL_TIME: Duration = Duration::from_secs(15);
/// How many are asked at once.
const AT_ONCE: usize = 32;
/// The longest answer of one, in bytes: some fifty thousand instances.
const LONGEST_ANSWER: usize = 8 << 20;
/// The most that all answers may be together, in bytes.
const LONGEST_TOGETHER: usize = 64 << 20;

/// What each worker says of itself (P3.2).
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StatsTable {
    /// One row for each worker that the caller's claims cover, in the order of `GET /registry/workers`.
    pub workers: Vec<StatsRow>,
}

/// What one worker says of itself: the members of its `GET /_pinned/stats` (W10.3), and before them `clientId`, `sessionId` and
/// `advertiseUrl`; or `error` in place of its own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StatsRow(BTreeMap<String, Box<RawValue>>);

/// A worker, and its answer or why there is none.
pub(super) struct Asked {
    pub(super) view: SessionView,
    pub(super) answer: Result<Bytes, Cow<'static, str>>,
}

impl StatsRow {
    /// The text of one member.
    #[must_use]
    pub fn get(&self, member: &str) -> Option<&str> {
        self.0.get(member).map(|value| value.get())
    }

    fn of(asked: &Asked) -> Result<Self, serde_json::Error> {
        // Read as it is, and not taken apart: what a worker counts is its own business.
        let read = asked.answer.as_ref().map_err(|why| &**why);
        let read = read.and_then(|body| {
            serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(body)
                .map_err(|_| "its answer is not a JSON object")
        });
        let mut members = match read {
            Ok(mut members) => {
                members.remove("error");
                members
            }
            Err(why) => BTreeMap::from([("error".to_owned(), to_raw_value(why)?)]),
        };
        let record = &asked.view.record;
        for (name, value) in [
            ("clientId", record.client_id.as_str()),
            ("sessionId", asked.view.id.as_str()),
            ("advertiseUrl", record.advertise_url.as_str()),
        ] {
            members.insert(name.to_owned(), to_raw_value(value)?);
        }
        Ok(Self(members))
    }
}

impl Operators {
    /// What each worker says of itself (P3.2). A worker that does not answer has a row that says so.
    ///
    /// # Errors
    ///
    /// The store does not answer, or others are asking already.
    pub async fn stats(&self, caller: &Principal) -> Result<StatsTable, RegistryError> {
        let asked = self.ask_workers(caller).await?;
        let rows = asked.iter().map(StatsRow::of).collect::<Result<_, _>>();
        let workers = rows.map_err(|error| {
            tracing::error!(%error, "stats could not be written");
            RegistryError::Internal
        })?;
        Ok(StatsTable { workers })
    }

    /// Asks all workers that the caller's claims cover, in the order of `GET /registry/workers`.
    pub(super) async fn ask_workers(
        &self,
        caller: &Principal,
    ) -> Result<Vec<Asked>, RegistryError> {
        let domain = &self.registry.domain;
        let room = domain.timeout(WORKER_TIME, self.collections.acquire());
        let Ok(Ok(_room)) = room.await else {
            return Err(RegistryError::Unavailable(
                "the workers are being asked for others".to_owned(),
            ));
        };
        let views = self.covered_sessions(caller).await?;
        let until = domain.monotonic() + ALL_TIME;
        let mut answers = stream::iter(views)
            .map(|view| self.ask(view, until))
            .buffered(AT_ONCE);
        let (mut all, mut room) = (Vec::new(), LONGEST_TOGETHER);
        while let Some(mut asked) = answers.next().await {
            if let Ok(body) = &asked.answer {
                match room.checked_sub(body.len()) {
                    Some(left) => room = left,
                    None => asked.answer = Err("the answers are too long together".into()),
                }
            }
            all.push(asked);
        }
        Ok(all)
    }

    async fn ask(&self, view: SessionView, until: Instant) -> Asked {
        let left = until.saturating_duration_since(self.registry.domain.monotonic());
        let timeout = WORKER_TIME.min(left);
        let answer = match stats_request(&view, timeout) {
            _ if timeout.is_zero() => Err("not asked: others took too long".into()),
            None => Err("it cannot be asked".into()),
            Some(fetch) => self.fetch_stats(fetch, timeout).await,
        };
        Asked { view, answer }
    }

    async fn fetch_stats(
        &self,
        fetch: Fetch,
        timeout: Duration,
    ) -> Result<Bytes, Cow<'static, str>> {
        let fetched = self.registry.fetcher.fetch(fetch);
        let error = match self.registry.domain.timeout(timeout, fetched).await {
            Ok(Ok(fetched)) if fetched.status == StatusCode::OK => return Ok(fetched.body),
            Ok(Ok(fetched)) => return Err(format!("it answered {}", fetched.status).into()),
            Ok(Err(error)) => error,
            Err(_) => FetchError::Timeout(timeout),
        };
        Err(Cow::Borrowed(match error {
            FetchError::Connect(_) => "no connection could be made",
            FetchError::TooLong(_) => "its answer is too long",
            FetchError::Timeout(_) => "it did not answer in time",
            _ => "no valid answer came",
        }))
    }
}

/// The secret goes to this route of the worker alone, at the addresses that were proved to be its own (P6.2).
fn stats_request(view: &SessionView, timeout: Duration) -> Option<Fetch> {
    let record = &view.record;
    let url = AdvertisedUrl::parse(&record.advertise_url).ok()?;
    let mut fetch = Fetch::get(url.stats());
    fetch.addresses = Some(addresses_of(record).to_vec());
    fetch
        .headers
        .insert(PROXY_SECRET, secret_header(&record.secret)?);
    fetch.timeout = timeout;
    fetch.limit = LONGEST_ANSWER;
    Some(fetch)
}
