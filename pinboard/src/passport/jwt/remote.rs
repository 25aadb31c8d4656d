//! A key set behind a URL.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderValue, StatusCode, header};
use parking_lot::{Mutex, RwLock};
use pinned_domain::{Domain, ErrorChain, until};
use tokio::sync::Notify;
use tokio::time::Instant;
use url::Url;

use super::key_set::{InvalidKeySet, KeySet};
use crate::passport::document;
use crate::passport::due::Due;
use crate::upstream::{Fetch, FetchError, Fetcher};

/// How far apart two refreshes are at least (P7.3).
const REFRESH_INTERVAL: Duration = Duration::from_secs(60);
/// The same, as long as there has never been a key set: until then nobody can come in at all.
const LOAD_INTERVAL: Duration = Duration::from_secs(5);
/// How old a key set gets before it is refreshed although all keys are known: an issuer takes keys back by leaving them out.
const MAX_AGE: Duration = Duration::from_secs(600);
/// How long a fetch may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest key set that is read, in bytes.
const MAX_SET_BYTES: usize = 256 * 1024;

/// A key set behind a URL: kept, and refreshed when it is asked for a key it does not know. What cannot be fetched changes nothing.
///
/// Cheap to clone; clones are the same.
#[derive(Clone)]
pub(in crate::passport) struct RemoteKeys {
    shared: Arc<Shared>,
}

struct Shared {
    provider: Box<str>,
    url: Url,
    fetcher: Arc<dyn Fetcher>,
    domain: Domain,
    keys: RwLock<Arc<KeySet>>,
    /// How many key sets there have been. Stored after the keys of that generation.
    generation: AtomicU64,
    refresh: Mutex<Refresh>,
    /// A refresh has ended.
    ended: Notify,
    /// When the keys are refreshed although nobody asks for an unknown one.
    expiry: Due,
}

#[derive(Debug, Default)]
struct Refresh {
    running: bool,
    /// No refresh begins before.
    not_before: Option<Instant>,
    /// The key set as it came, when one ever did.
    loaded: Option<Box<[u8]>>,
}

/// No key set came.
#[derive(Debug, thiserror::Error)]
enum RefreshError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the answer is {0}; redirects are not followed")]
    Status(StatusCode),
    #[error("the answer is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the answer is no key set: expected {0}")]
    Set(#[from] InvalidKeySet),
    #[error("no answer came in time")]
    Timeout,
}

impl RemoteKeys {
    /// The keys behind `url`, none of which is known yet.
    pub(in crate::passport) fn new(
        provider: &str,
        url: Url,
        domain: &Domain,
        fetcher: &Arc<dyn Fetcher>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                provider: provider.into(),
                url,
                fetcher: Arc::clone(fetcher),
                domain: domain.clone(),
                keys: RwLock::default(),
                generation: AtomicU64::new(0),
                refresh: Mutex::default(),
                ended: Notify::new(),
                expiry: Due::now(domain),
            }),
        }
    }

    /// The keys, as last fetched, and their generation.
    pub(super) fn current(&self) -> (u64, Arc<KeySet>) {
        // Read before the keys: then the keys are at least as new as it says.
        let generation = self.generation();
        (generation, Arc::clone(&self.shared.keys.read()))
    }

    /// How many key sets there have been.
    pub(super) fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Begins a refresh that nobody waits for, when the keys have become old.
    pub(super) fn keep_fresh(&self, now: Instant) {
        if self.shared.expiry.is_due(now) {
            self.begin();
        }
    }

    /// Whether [`refresh`](Self::refresh) would do anything now.
    pub(super) fn may_refresh(&self) -> bool {
        self.shared.refresh.lock().may_run(&self.shared.domain)
    }

    /// Fetches the keys anew, at most once a minute; while a fetch is under way, waits for that one.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the fetch goes on for those who wait with this one, and for those who come later.
    pub(super) async fn refresh(&self) {
        if self.begin() {
            until(&self.shared.ended, || !self.shared.refresh.lock().running).await;
        }
    }

    /// Begins a refresh if none is under way, and tells whether one is.
    pub(in crate::passport) fn begin(&self) -> bool {
        let shared = &self.shared;
        {
            let mut refresh = shared.refresh.lock();
            if refresh.running || !refresh.may_run(&shared.domain) {
                return refresh.running;
            }
            refresh.running = true;
            let now = shared.domain.monotonic();
            let interval = match refresh.loaded {
                Some(_) => REFRESH_INTERVAL,
                None => LOAD_INTERVAL,
            };
            refresh.not_before = Some(now + interval);
            shared.expiry.put_off(now, interval);
        }
        // Made here rather than in the task, so that a task that never runs ends the refresh too; and after the lock, which it takes.
        let running = Running(Arc::clone(shared));
        shared.domain.spawn(async move { running.run().await });
        true
    }
}

impl Refresh {
    fn may_run(&self, domain: &Domain) -> bool {
        self.running || self.not_before.is_none_or(|at| domain.monotonic() >= at)
    }
}

/// A refresh that is under way, until it is dropped.
struct Running(Arc<Shared>);

impl Running {
    async fn run(self) {
        let shared = &*self.0;
        let fetch = async {
            // The fetcher keeps the time too; one that does not must not keep everyone waiting.
            let limit = FETCH_TIMEOUT + Duration::from_secs(1);
            let fetched = shared.domain.timeout(limit, shared.fetch()).await;
            let body = fetched.map_err(|_| RefreshError::Timeout)??;
            shared.adopt(&body)
        };
        if let Err(error) = fetch.await {
            tracing::warn!(
                provider = %shared.provider,
                error = %ErrorChain(&error),
                "cannot fetch the keys of an issuer; those that are known stay"
            );
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.refresh.lock().running = false;
        self.0.ended.notify_waiters();
    }
}

impl Shared {
    async fn fetch(&self) -> Result<bytes::Bytes, RefreshError> {
        let mut fetch = Fetch::get(self.url.clone());
        fetch.timeout = FETCH_TIMEOUT;
        fetch.limit = MAX_SET_BYTES;
        fetch.headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/jwk-set+json, application/json"),
        );
        let fetched = self.fetcher.fetch(fetch).await?;
        match fetched.status {
            StatusCode::OK => Ok(fetched.body),
            status => Err(RefreshError::Status(status)),
        }
    }

    fn adopt(&self, body: &[u8]) -> Result<(), RefreshError> {
        let (keys, unusable) = KeySet::read(&document::from_slice(body)?)?;
        let changed = {
            let mut refresh = self.refresh.lock();
            refresh.not_before = Some(self.domain.monotonic() + REFRESH_INTERVAL);
            let changed = refresh.loaded.as_deref() != Some(body);
            if changed {
                refresh.loaded = Some(body.into());
            }
            changed
        };
        self.expiry.put_off(self.domain.monotonic(), MAX_AGE);
        if !changed {
            return Ok(());
        }
        for key in unusable {
            tracing::info!(
                provider = %self.provider,
                index = key.index,
                "a key of an issuer is left out: expected {}",
                key.expected
            );
        }
        if keys.is_empty() {
            tracing::warn!(provider = %self.provider, "an issuer has no key that can be used");
        }
        tracing::info!(provider = %self.provider, keys = keys.len(), "fetched the keys of an issuer");
        *self.keys.write() = Arc::new(keys);
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

impl fmt::Debug for RemoteKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the URL, which may have a secret in its query.
        f.debug_struct("RemoteKeys")
            .field("generation", &self.generation())
            .field("keys", &self.shared.keys.read().len())
            .finish_non_exhaustive()
    }
}
