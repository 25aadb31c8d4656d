//! One admitted request on its way to its handler: what generated code drives.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::Request;
use http::request::Parts;
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::auth::AuthOutput;
use super::context::Context;
use super::definition::PinnedApi;
use super::instance::Instance;
use super::refusal::{Refusal, Unavailable, internal_error};
use super::scope::{Held, Origin, Scope, TakenTurns, chain_hold};
use super::seam::{Begin, Seam, TurnKind, WorkClass, boxed};
use super::socket::Session;
use super::turn::{ReadTurn, Tracked, WriteTurn, name_chain, settle_turn};
use crate::Attestation;

/// What a handler's generated code returns.
#[doc(hidden)]
pub type HandlerFuture = BoxFuture<'static, Response>;

/// The state of extractors in handlers: an extractor of your own that needs the instance's context or the
/// authorizer's result implements `FromRequestParts<RequestState>`.
///
/// ```
/// use axum::extract::FromRequestParts;
/// use axum::http::{StatusCode, request::Parts};
/// use pinned::RequestState;
///
/// struct Owner;
///
/// impl FromRequestParts<RequestState> for Owner {
///     type Rejection = StatusCode;
///
///     async fn from_request_parts(_: &mut Parts, state: &RequestState) -> Result<Self, StatusCode> {
///         match state.auth::<String>() {
///             Some(user) if *user == state.context().id() => Ok(Self),
///             _ => Err(StatusCode::FORBIDDEN),
///         }
///     }
/// }
/// ```
pub struct RequestState {
    context: Context,
    seam: Seam,
    attestation: Attestation,
    auth: Option<AuthOutput>,
}

impl RequestState {
    pub(crate) fn new(seam: Seam, attestation: Attestation, auth: Option<AuthOutput>) -> Self {
        Self {
            context: Context::new(Arc::clone(&seam)),
            seam,
            attestation,
            auth,
        }
    }

    /// The context of the instance that the request is for.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Who calls, as far as a control plane or another instance vouches for it.
    pub fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    /// What the route's authorizer returned, if that is a `T`; nothing on a public route (H2.5).
    pub fn auth<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.auth.as_ref()?.downcast()
    }

    pub(crate) fn seam(&self) -> &Seam {
        &self.seam
    }
}

impl std::fmt::Debug for RequestState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestState")
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

impl FromRequestParts<RequestState> for Attestation {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        _parts: &mut Parts,
        state: &RequestState,
    ) -> Result<Self, Self::Rejection> {
        Ok(state.attestation.clone())
    }
}

/// A request's body; boxed only for a handler that wants it.
pub(crate) enum RequestBody {
    Incoming(Incoming),
    Body(Body),
}

impl RequestBody {
    pub(crate) fn into_body(self) -> Body {
        match self {
            Self::Incoming(incoming) => Body::new(incoming),
            Self::Body(body) => body,
        }
    }
}

/// A request that counts as standing before its instance. Dropping it leaves again.
pub(crate) struct Entry {
    seam: Option<Seam>,
}

impl Entry {
    /// Wraps an admission that `seam` has already counted.
    pub(crate) fn adopt(seam: Seam) -> Self {
        Self { seam: Some(seam) }
    }

    /// It counts as work now.
    pub(crate) fn begun(mut self) {
        self.seam = None;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(seam) = self.seam.take() {
            seam.depart();
        }
    }
}

/// Records how long an admitted request took, once, when it is dropped (H5.9).
pub(crate) struct Sample {
    seam: Seam,
    started: Option<Instant>,
}

impl Sample {
    pub(crate) fn new(seam: Seam, started: Instant) -> Self {
        Self {
            seam,
            started: Some(started),
        }
    }

    /// Records nothing.
    fn discard(&mut self) {
        self.started = None;
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        if let Some(started) = self.started.take() {
            self.seam.sample(started);
        }
    }
}

/// One admitted request on its way to its handler.
#[doc(hidden)]
pub struct Call {
    pub(crate) handler: &'static str,
    pub(crate) state: RequestState,
    pub(crate) parts: Parts,
    pub(crate) body: RequestBody,
    pub(crate) origin: Origin,
    pub(crate) entry: Entry,
    pub(crate) sample: Sample,
    pub(crate) session: Option<Session>,
}

/// An argument that could not be had, with the answer that says why.
#[doc(hidden)]
pub struct Rejected(Response);

/// What outlives the request's own future: the rest of a call once its work has begun.
struct Begun {
    handler: &'static str,
    origin: Origin,
    sample: Sample,
}

impl Call {
    /// One argument of the handler that needs no body.
    pub async fn part<A: FromRequestParts<RequestState>>(&mut self) -> Result<A, Rejected> {
        A::from_request_parts(&mut self.parts, &self.state)
            .await
            .map_err(|rejection| Rejected(rejection.into_response()))
    }

    /// The handler's last argument, which may take the body.
    pub async fn last<A: FromRequest<RequestState, M>, M>(&mut self) -> Result<A, Rejected> {
        let body = std::mem::replace(&mut self.body, RequestBody::Body(Body::empty()));
        let (empty, ()) = Request::new(()).into_parts();
        let parts = std::mem::replace(&mut self.parts, empty);
        A::from_request(Request::from_parts(parts, body.into_body()), &self.state)
            .await
            .map_err(|rejection| Rejected(rejection.into_response()))
    }

    /// The answer to an argument that could not be had. The handler does not run; a cold instance stays cold and is
    /// discarded (H1.11). Not sampled (H5.9).
    pub fn reject(mut self, rejected: Rejected) -> Response {
        self.sample.discard();
        rejected.0
    }

    /// Runs a `&self` handler under a shared turn.
    pub async fn run_shared<T, F, Fut>(self, run: F) -> Response
    where
        T: PinnedApi,
        F: FnOnce(ReadTurn<T>) -> Fut + Send + 'static,
        Fut: Future<Output = (ReadTurn<T>, Response)> + Send + 'static,
    {
        let (tracked, begun) = match self.begin_turn(TurnKind::Shared).await {
            Ok(begun) => begun,
            Err(response) => return response,
        };
        let seam = Arc::clone(tracked.seam());
        let turn = match ReadTurn::new(tracked) {
            Ok(turn) => turn,
            Err(refusal) => return refusal.into_response(),
        };
        let work = async move {
            let (turn, response) = run(turn).await;
            turn.into_tracked().answer(response)
        };
        drive(seam, begun, Held::Whole(TurnKind::Shared), work).await
    }

    /// Runs a `&mut self` handler under the exclusive turn.
    pub async fn run_exclusive<T, F, Fut>(self, run: F) -> Response
    where
        T: PinnedApi,
        F: FnOnce(WriteTurn<T>) -> Fut + Send + 'static,
        Fut: Future<Output = (WriteTurn<T>, Response)> + Send + 'static,
    {
        let (tracked, begun) = match self.begin_turn(TurnKind::Exclusive).await {
            Ok(begun) => begun,
            Err(response) => return response,
        };
        let seam = Arc::clone(tracked.seam());
        let turn = match WriteTurn::new(tracked) {
            Ok(turn) => turn,
            Err(refusal) => return refusal.into_response(),
        };
        let work = async move {
            let (turn, response) = run(turn).await;
            turn.into_tracked().answer(response)
        };
        drive(seam, begun, Held::Whole(TurnKind::Exclusive), work).await
    }

    /// Runs a handler that holds no turn of its own.
    pub async fn run_instance<T, F, Fut>(self, run: F) -> Response
    where
        T: PinnedApi,
        F: FnOnce(Instance<T>) -> Fut + Send + 'static,
        Fut: Future<Output = Response> + Send + 'static,
    {
        let (tracked, begun) = match self.begin(WorkClass::Handler, None).await {
            Ok(begun) => begun,
            Err(failure) => return failure.into_response(),
        };
        let seam = Arc::clone(tracked.seam());
        let instance = Instance::new(Arc::clone(&seam));
        let work = async move {
            let response = run(instance).await;
            tracked.answer(response)
        };
        let held = Held::Taken(Arc::<TakenTurns>::default());
        drive(seam, begun, held, work).await
    }

    /// Runs a WebSocket handler for the life of its socket. The response is for a socket that was never accepted.
    pub async fn run_socket<T, S, F, Fut>(mut self, run: F) -> Response
    where
        T: PinnedApi,
        S: crate::ws::FromUpgrade,
        F: FnOnce(Instance<T>, S) -> Fut + Send + 'static,
        Fut: Future<Output = super::socket::SocketEnd> + Send + 'static,
    {
        let Some(session) = self.session.take() else {
            // A host gives a session to every WebSocket route.
            return internal_error();
        };
        let (tracked, begun) = match self.begin(WorkClass::Stream, None).await {
            Ok(begun) => begun,
            Err(failure) => return session.fail_to_begin(failure).await,
        };
        let seam = Arc::clone(tracked.seam());
        let instance = Instance::new(Arc::clone(&seam));
        let scope = Scope::new(
            Arc::clone(&seam),
            Held::Taken(Arc::<TakenTurns>::default()),
            begun.origin,
        );
        session
            .run::<S, _, _>(tracked, begun.handler, begun.sample, scope, |socket| {
                run(instance, socket)
            })
            .await
    }

    async fn begin_turn(self, turn: TurnKind) -> Result<(Tracked, Begun), Response> {
        self.begin(WorkClass::Handler, Some(turn))
            .await
            .map_err(Unavailable::into_response)
    }

    /// Activates the instance if it must be, and turns the admitted request into work.
    async fn begin(
        self,
        class: WorkClass,
        turn: Option<TurnKind>,
    ) -> Result<(Tracked, Begun), Unavailable> {
        let seam = self.state.seam;
        let answer = loop {
            let wish = turn.map(|turn| (turn, chain_hold(&seam)));
            match seam.begin(class, wish) {
                Begin::Started(answer) => break answer,
                Begin::NotResident => {
                    let activated = Arc::clone(&seam).activate().await;
                    if let Err(Unavailable::SetupFailed(error)) = &activated
                        && error.as_http().is_none()
                    {
                        seam.setup_failed(class == WorkClass::Stream);
                    }
                    activated?;
                }
                Begin::Refused(refusal) => {
                    let refusal = match turn {
                        Some(turn) => name_chain(refusal, &seam, turn),
                        None => refusal,
                    };
                    return Err(Unavailable::Refused(refusal));
                }
            }
        };
        self.entry.begun();
        let tracked = match turn.zip(answer) {
            None => Tracked::adopt(seam, Some(class), None),
            Some((turn, answer)) => settle_turn(seam, Some(class), turn, answer)
                .await
                .map_err(Unavailable::Refused)?,
        };
        let begun = Begun {
            handler: self.handler,
            origin: self.origin,
            sample: self.sample,
        };
        Ok((tracked, begun))
    }
}

/// Runs a handler to its end, whether or not its client stays.
///
/// The first poll happens here and now: a handler that never waits costs no task. One that waits moves to a task of
/// its own, so that neither a client that leaves nor one that is slow to read can tear it, and the host can cut it off.
async fn drive<F>(seam: Seam, begun: Begun, held: Held, work: F) -> Response
where
    F: Future<Output = Response> + Send + 'static,
{
    let Begun {
        handler,
        origin,
        sample,
    } = begun;
    let scope = Scope::new(Arc::clone(&seam), held, origin);
    let mut work = boxed(scope.run(async move {
        let response = AssertUnwindSafe(work).catch_unwind().await;
        drop(sample);
        response
    }));
    if let Poll::Ready(outcome) = futures_util::poll!(&mut work) {
        return outcome.unwrap_or_else(|_panic| {
            Arc::clone(&seam).abort_after_panic(handler);
            internal_error()
        });
    }
    let (answer, response) = oneshot::channel();
    let domain = seam.domain().clone();
    domain.spawn(async move {
        let response = tokio::select! {
            biased;
            outcome = &mut work => outcome.unwrap_or_else(|_panic| {
                Arc::clone(&seam).abort_after_panic(handler);
                internal_error()
            }),
            () = seam.cut_off(WorkClass::Handler) => {
                // The handler's cleanup runs before its client hears of it (H5.3).
                drop(work);
                Refusal::Aborted.into_response()
            }
        };
        // A client that has left drops the answer, and with it a body that only it would have read.
        let _ = answer.send(response);
    });
    response.await.unwrap_or_else(|_| Refusal::Aborted.into_response())
}
