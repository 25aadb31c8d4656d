//! Asking a node.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Method, StatusCode};
use pinned_wire::registry::Refusal;
use serde::Serialize;
use serde_json::Value;
use url::Url;

use super::{CliError, Remote};
use crate::upstream::{Fetch, Fetched, Fetcher};

/// Statistics are asked of every worker, and each may take 5 s.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A fleet of many instances has long statistics.
const LIMIT: usize = 256 << 20;
/// As much of a message as is shown.
const SHOWN: usize = 500;

/// A node, and who is asking.
pub(super) struct Node {
    base: Url,
    authorization: Option<HeaderValue>,
    fetcher: Arc<dyn Fetcher>,
}

impl Node {
    pub(super) fn new(remote: &Remote, fetcher: Arc<dyn Fetcher>) -> Result<Self, CliError> {
        let token = remote.token.as_ref().map(|token| token.expose());
        let authorization = match token.filter(|token| !token.is_empty()) {
            None => None,
            Some(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                    .map_err(|_| CliError::MalformedToken)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Self {
            base: remote.url.clone(),
            authorization,
            fetcher,
        })
    }

    pub(super) async fn get(&self, path: &str, query: Option<&str>) -> Result<Value, CliError> {
        self.ask(Fetch::get(self.url(path, query)), false).await
    }

    /// Sends an order; one to a single worker is refused alike when that is not known.
    pub(super) async fn order(
        &self,
        path: &str,
        order: &(impl Serialize + Sync),
        to_worker: bool,
    ) -> Result<Value, CliError> {
        let mut fetch = Fetch::get(self.url(path, None));
        fetch.method = Method::POST;
        // These are strings, numbers and nulls.
        fetch.body = Bytes::from(serde_json::to_vec(order).unwrap_or_default());
        let json = HeaderValue::from_static("application/json");
        fetch.headers.insert(CONTENT_TYPE, json);
        self.ask(fetch, to_worker).await
    }

    /// A path under the URL of the node, which may have one of its own.
    fn url(&self, path: &str, query: Option<&str>) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url.set_query(query);
        url.set_fragment(None);
        url
    }

    async fn ask(&self, mut fetch: Fetch, to_worker: bool) -> Result<Value, CliError> {
        fetch.timeout = TIMEOUT;
        fetch.limit = LIMIT;
        if let Some(authorization) = &self.authorization {
            fetch.headers.insert(AUTHORIZATION, authorization.clone());
        }
        let answer = self.fetcher.fetch(fetch).await;
        let answer = answer.map_err(|source| CliError::Unreachable {
            url: self.base.clone(),
            source,
        })?;
        if answer.status.is_success() {
            return serde_json::from_slice(&answer.body)
                .map_err(|_| self.not_pinboard("its answer is not JSON".to_owned()));
        }
        Err(self.refusal(&answer, to_worker))
    }

    fn refusal(&self, answer: &Fetched, order: bool) -> CliError {
        let status = answer.status;
        if status.is_redirection() {
            let to = answer.headers.get(LOCATION);
            let to = to.and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            return self.not_pinboard(format!("it redirects to {}", shown(to)));
        }
        let said = serde_json::from_slice::<Refusal>(&answer.body).ok();
        let message = said.map(|said| shown(&said.error));
        match (status, message) {
            (StatusCode::UNAUTHORIZED, _) => CliError::Unauthorized {
                with_token: self.authorization.is_some(),
            },
            (StatusCode::FORBIDDEN, message) => CliError::Forbidden {
                message: message.unwrap_or_else(|| "forbidden".to_owned()),
                order,
            },
            (status, Some(message)) if !message.is_empty() => CliError::Refused { status, message },
            (status, _) => self.not_pinboard(format!("it answers {status}")),
        }
    }

    fn not_pinboard(&self, what: String) -> CliError {
        CliError::NotPinboard {
            url: self.base.clone(),
            what,
        }
    }
}

/// What somebody else wrote, fit for a terminal.
fn shown(text: &str) -> String {
    let text: String = text.chars().take(SHOWN).collect();
    super::table::plain(&text)
}
