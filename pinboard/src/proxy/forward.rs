//! From a request to its answer: who may ask, who holds the id, what they say, and whether that is the last word.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, Version, header};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use pinned_domain::{Domain, ErrorChain};
use pinned_wire::attestation::Account;
use tokio::time::Instant;

use super::Client;
use super::answer::Failure;
use super::body::AnswerBody;
use super::cluster_call::{Call, CallError, CallHeaders};
use super::head::{self, Asked, Token};
use super::headers::{self, RequestRules};
use super::host;
use super::metrics::ProxyMetrics;
use super::present::Present;
use super::refusal::{Verdict, verdict};
use super::replay::Replay;
use super::target::Target;
use super::tunnel::Tunnel;
use crate::passport::Passport;
use crate::placement::{NotPlaced, Placed, Placement, WorkerRefusal};
use crate::store::PlacementKey;
use crate::upstream::{ExchangeError, Framing, Reply};
use crate::workers::Workers;

/// How often a request is placed again when it was not run (P5.9).
const MOST_MOVES: u32 = 3;

/// How old the list of sessions may be when a session calls that is not in it. Strangers can say so as often as they like.
const READ_ANEW: Duration = Duration::from_millis(100);

/// The same when one that is in it cannot be reached. It is read once for all who find it so.
const READ_AT_ONCE: Duration = Duration::from_millis(10);

/// The most headers of a request; the parser of HTTP/1.1 takes no more either.
const MOST_HEADERS: usize = 100;

/// The data plane: takes requests for instances to the workers that hold them.
pub struct Proxy {
    placement: Placement,
    workers: Workers,
    passport: Passport,
    domain: Domain,
    metrics: ProxyMetrics,
}

/// An answer, and what its connection becomes when that is a 101.
#[derive(Debug)]
pub struct Handled {
    /// The answer. Dropping its body ends what a worker does for nobody else.
    pub response: Response<AnswerBody>,
    /// To be run beside the connection once the answer is on its way. In a box, because nearly no request has one.
    pub tunnel: Option<Box<Tunnel>>,
}

/// Whom a request is from, as it is attested.
enum Sender<'r> {
    Anyone,
    Account(Arc<Account>),
    Instance(Call<'r>),
}

impl Proxy {
    /// Asks `placement` where instances are, `workers` for sessions that call, and `passport` who may.
    ///
    /// Its metrics go to the recorder that is installed by now.
    #[must_use]
    pub fn new(placement: Placement, workers: Workers, passport: Passport, domain: Domain) -> Self {
        Self {
            placement,
            workers,
            passport,
            domain,
            metrics: ProxyMetrics::new(),
        }
    }

    /// Answers a request. Its head stays where it is: it is large, and every `async fn` keeps a copy of what it is given.
    ///
    /// Takes hyper's `OnUpgrade` out of the extensions of `parts`, so that nobody else can upgrade the connection, and leaves
    /// the rest as it is.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection to the worker: the request may have reached it. The id may have been placed.
    pub async fn handle(&self, client: &Client, parts: &mut Parts, body: Incoming) -> Handled {
        let began = self.domain.monotonic();
        let (handled, ended) = match self.forward(client, parts, body, began).await {
            Ok(answered) => answered,
            Err(failure) => {
                let handled = Handled {
                    response: failure.response(),
                    tunnel: None,
                };
                (handled, self.domain.monotonic())
            }
        };
        self.metrics.answered(handled.response.status());
        let took = ended.saturating_duration_since(began);
        self.metrics.duration.record(took);
        handled
    }

    /// The answer, and when it came. `now` has just been read, and is read again only after a wait.
    async fn forward(
        &self,
        client: &Client,
        parts: &mut Parts,
        body: Incoming,
        mut now: Instant,
    ) -> Result<(Handled, Instant), Failure> {
        // Before the parts are borrowed; nearly no request has it.
        let on_upgrade = parts.extensions.remove::<OnUpgrade>();
        let parts = &*parts;
        if parts.method == Method::CONNECT {
            return Err(Failure::Connect);
        }
        if parts.headers.len() > MOST_HEADERS {
            return Err(Failure::TooManyHeaders);
        }
        let raw = parts.uri.path_and_query().map_or("", |raw| raw.as_str());
        let target = Target::parse(raw)?;
        let host = host::host(parts)?;
        let present = Present::of(&parts.headers);
        let framing = head::framing(parts, present, is_empty(&body))?;
        let upgrade = on_upgrade
            .is_some()
            .then(|| head::upgrade(parts, present, framing))
            .flatten();
        let is_websocket = upgrade.is_some_and(head::is_websocket);

        let mut rules = RequestRules {
            join_cookies: parts.version == Version::HTTP_2,
            keep_trailer: framing == Framing::Chunked,
            ..RequestRules::default()
        };
        let sender = self
            .identify(&target, parts, present, is_websocket, &mut rules, &mut now)
            .await?;
        let placed = self.find(&target, &mut now).await?;

        let asked = Asked {
            parts,
            present,
            target: raw,
            host,
            peer: client.peer(),
            framing,
            upgrade,
            rules,
        };
        let reply = self
            .ask(client, &asked, &sender, placed, Replay::new(body), now)
            .await?;
        let tunnel = match (reply.upgraded, on_upgrade) {
            (Some(worker), Some(on_upgrade)) => Some(Box::new(Tunnel::new(
                on_upgrade,
                *worker,
                is_websocket,
                self.domain.clone(),
                self.metrics.tunnels.clone(),
            ))),
            _ => None,
        };
        let mut headers = reply.headers;
        match &tunnel {
            None => headers::strip_response(&mut headers),
            Some(_) => strip_switch(&mut headers, &asked),
        }
        let mut response = Response::new(AnswerBody::reply(reply.body));
        *response.status_mut() = reply.status;
        *response.headers_mut() = headers;
        Ok((Handled { response, tunnel }, reply.came_at))
    }

    /// Who asks, and whether they may. Notes in `rules` which headers were for us.
    async fn identify<'r>(
        &self,
        target: &Target<'_>,
        parts: &'r Parts,
        present: Present,
        is_websocket: bool,
        rules: &mut RequestRules,
        now: &mut Instant,
    ) -> Result<Sender<'r>, Failure> {
        if present.own
            && let Some(call) = CallHeaders::read(&parts.headers)?
        {
            // The worker vouches for its instances; the rules of namespaces are for those from outside.
            let call = self.verify(call).await?;
            *now = self.domain.monotonic();
            return Ok(Sender::Instance(call));
        }
        let admit = self.passport.admit(target.ns, &parts.headers, is_websocket);
        let admitted = match admit.now() {
            Ok(admitted) => admitted?,
            Err(later) => {
                let admitted = later.await?;
                *now = self.domain.monotonic();
                admitted
            }
        };
        rules.strip_authorization = admitted.strip_authorization;
        rules.strip_bearer_subprotocol = admitted.strip_bearer_subprotocol;
        Ok(match admitted.account {
            Some(account) => Sender::Account(account),
            None => Sender::Anyone,
        })
    }

    /// Whether the instance that is said to call does (P5.8).
    async fn verify<'r>(&self, call: CallHeaders<'r>) -> Result<Call<'r>, Failure> {
        let session = call.session();
        let mut worker = self.workers.get(&session);
        if worker.is_none() && !self.workers.has_ended(&session) {
            // It may have registered a moment ago, on another node.
            let _ = self.workers.refresh_if_older(READ_ANEW).await;
            worker = self.workers.get(&session);
        }
        let worker = worker.ok_or(CallError::Secret)?;
        let view = Arc::clone(&worker.view.read());
        call.is_from(view.record.secret.expose())?;
        let (ns, id) = call.caller()?;
        let caller = self.placement.key(view.record.env_of(ns), ns, id);
        if !self.placement.is_held_by(&caller, &session).await? {
            return Err(CallError::Placement.into());
        }
        Ok(call.verified()?)
    }

    /// Who holds the instance.
    async fn find(&self, target: &Target<'_>, now: &mut Instant) -> Result<Arc<Placed>, NotPlaced> {
        let env = PlacementKey::SINGLE;
        if let Some(placed) = self.placement.known_at(env, target.ns, &target.id, *now) {
            return Ok(placed);
        }
        let key = self.placement.key(env, target.ns, &target.id);
        let placed = self.placement.resolve(&key).await;
        *now = self.domain.monotonic();
        placed
    }

    /// Asks the holder, and where it has not run the request, the next one.
    async fn ask(
        &self,
        client: &Client,
        asked: &Asked<'_>,
        sender: &Sender<'_>,
        mut placed: Arc<Placed>,
        replay: Replay<Incoming>,
        mut now: Instant,
    ) -> Result<Reply, Failure> {
        let mut moves = 0;
        let reply = loop {
            let token = sender.token(&placed);
            let token = match &token {
                Some(token) => Token::Of(token),
                None => Token::Anonymous(now),
            };
            let head = asked.head(&placed, token);
            let sent = placed
                .worker
                .backend
                .send_at(now, client.lane(), head, replay.upload())
                .await;
            let may_move = moves < MOST_MOVES && replay.is_whole();
            let next = match sent {
                Ok(mut reply) => {
                    let verdict = verdict(reply.status, &reply.headers);
                    match self.judge(verdict, &placed, may_move).await? {
                        Some(next) => next,
                        None => {
                            if verdict != Verdict::Answered {
                                // It has perhaps been waited for the id to move (P5.10).
                                reply.came_at = self.domain.monotonic();
                            }
                            break reply;
                        }
                    }
                }
                Err(error) => self.after_failure(error, &placed, may_move).await?,
            };
            placed = next;
            now = self.domain.monotonic();
            moves += 1;
        };
        replay.settle();
        Ok(reply)
    }

    /// Where else a request goes that `placed` has answered like this; `None` when that is the answer (P5.9, P5.10).
    async fn judge(
        &self,
        verdict: Verdict,
        placed: &Arc<Placed>,
        may_move: bool,
    ) -> Result<Option<Arc<Placed>>, Failure> {
        let (refusal, unless_moved) = match verdict {
            Verdict::Answered => return Ok(None),
            Verdict::Busy => {
                self.metrics.refused();
                return Ok(None);
            }
            Verdict::Refused(refusal) => (refusal, Ok(None)),
            // The holder is as good as unreachable, and keeps the id while its lease runs (P5.11).
            Verdict::Stranger => (WorkerRefusal::Moving, Err(Failure::Unreachable)),
        };
        if !may_move {
            // The client has to ask again, and shall not be sent there then.
            self.placement.forget(placed);
            self.metrics.refused();
            return unless_moved;
        }
        let next = self.placement.after_refusal(placed, refusal).await?;
        if next.is_none() {
            self.metrics.refused();
            return unless_moved;
        }
        Ok(next)
    }

    /// Where else a request goes that `placed` does not answer. It stays with its holder while that one's lease runs (P5.11), but
    /// what this node knows may be older than the end of the holder.
    async fn after_failure(
        &self,
        error: ExchangeError,
        placed: &Arc<Placed>,
        may_move: bool,
    ) -> Result<Arc<Placed>, Failure> {
        self.metrics.failed(error.kind);
        tracing::debug!(
            target: "pinboard::proxy",
            namespace = &*placed.key.ns, instance_id = &*placed.key.id, session = %placed.worker.id,
            error = %ErrorChain(&error), may_have_reached = error.may_have_reached, "no answer from a worker",
        );
        let failure = Failure::from(error.kind);
        if failure != Failure::Unreachable {
            return Err(failure);
        }
        self.placement.forget(placed);
        if error.may_have_reached || !may_move {
            return Err(failure);
        }
        // It may have left without this node having heard of it.
        let _ = self.workers.refresh_if_older(READ_AT_ONCE).await;
        match self.placement.resolve(&placed.key).await {
            Ok(next) if !next.is_same_holding(placed) => Ok(next),
            _ => Err(failure),
        }
    }
}

impl Sender<'_> {
    /// The token that says so to the holder; `None` for the one that is the same for everybody.
    fn token(&self, placed: &Placed) -> Option<HeaderValue> {
        match self {
            Self::Anyone => None,
            Self::Account(account) => {
                let token = |claims: pinned_wire::attestation::Claims| {
                    claims.with_account(Account::clone(account))
                };
                Some(placed.worker.token(token))
            }
            Self::Instance(call) => Some(placed.worker.token(|claims| call.claims(claims))),
        }
    }
}

fn is_empty(body: &Incoming) -> bool {
    http_body::Body::is_end_stream(body)
}

/// A 101 says what the connection becomes, which is about this connection after all.
fn strip_switch(headers: &mut HeaderMap, asked: &Asked<'_>) {
    let protocol = headers.remove(header::UPGRADE);
    headers::strip_response(headers);
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    if let Some(protocol) = protocol {
        headers.insert(header::UPGRADE, protocol);
    }
    // A browser ends a connection on which none of the subprotocols was chosen that it has offered.
    if asked.rules.strip_bearer_subprotocol
        && !headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL)
        && let Some(chosen) = headers::lone_bearer_subprotocol(&asked.parts.headers)
    {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, chosen);
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("placement", &self.placement)
            .finish_non_exhaustive()
    }
}
