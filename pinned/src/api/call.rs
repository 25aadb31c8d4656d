//! One admitted request on its way to its handler: what generated code drives.

use std::future::Future;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts};
use axum::response::{IntoResponse, Response};
use futures_util::future::{Either, ready};
use http::Request;
use http::request::Parts;
use tokio::time::Instant;

use super::chain::{Origin, chain_hold};
use super::definition::PinnedApi;
use super::handler::HandlerFuture;
use super::instance::Instance;
use super::refusal::{Refusal, Unavailable, internal_error};
use super::request::{LazyState, RequestBody, RequestState};
use super::route::RouteSpec;
use super::scope::{Held, Scope, TakenTurns};
use super::seam::{Begin, Seam, Turn, TurnAnswer, TurnKind, Work, WorkClass};
use super::socket::Session;
use super::turn::{ReadTurn, Tracked, WriteTurn, name_chain, settle_turn};

/// A request that counts as standing before its instance. Dropping it leaves again.
pub(crate) struct Entry {
    /// Until it has begun.
    seam: Option<Seam>,
    started: Option<Instant>,
}

impl Entry {
    /// Wraps an admission that `seam` has counted. With `started`, the duration since then is sampled at its end.
    pub(crate) fn adopt(seam: Seam, started: Option<Instant>) -> Self {
        Self {
            seam: Some(seam),
            started,
        }
    }

    pub(crate) fn seam(&self) -> &Seam {
        self.seam.as_ref().expect(STANDS)
    }

    /// It counts as work now, of the instance that it stood before; the work takes its start along.
    pub(crate) fn begun(mut self) -> (Seam, Option<Instant>) {
        (self.seam.take().expect(STANDS), self.started)
    }
}

/// Only [`Entry::begun`] takes the seam, and the entry with it.
const STANDS: &str = "an entry stands before its instance for as long as there is one";

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(seam) = self.seam.take() else {
            return;
        };
        if let Some(started) = self.started {
            seam.sample(started);
        }
        seam.depart();
    }
}

/// One admitted request on its way to its handler.
#[doc(hidden)]
pub struct Call {
    pub(crate) route: &'static RouteSpec,
    pub(crate) state: LazyState,
    pub(crate) parts: Parts,
    pub(crate) body: RequestBody,
    pub(crate) origin: Origin,
    pub(crate) entry: Entry,
    pub(crate) session: Option<Session>,
}

/// An argument that its extractor refused, with the answer that says why.
#[doc(hidden)]
pub struct Rejected(Response);

/// A call whose arguments have been read: it needs nothing but its instance.
struct Prepared {
    route: &'static RouteSpec,
    origin: Origin,
    entry: Entry,
}

/// A call whose work has begun.
struct Begun {
    route: &'static RouteSpec,
    origin: Origin,
    tracked: Tracked,
}

impl Call {
    /// The scope under which the request's arguments are read.
    pub(crate) fn entering(&self) -> Scope {
        Scope::entering(Arc::clone(self.entry.seam()), self.origin.clone())
    }

    /// One argument of the handler that needs no body.
    pub async fn part<A: FromRequestParts<RequestState>>(&mut self) -> Result<A, Rejected> {
        let state = self.state.get(self.entry.seam());
        let taken = async {
            A::from_request_parts(&mut self.parts, state)
                .await
                .map_err(|rejection| Rejected(rejection.into_response()))
        };
        let Some(session) = &self.session else {
            return taken.await;
        };
        // Once its socket is accepted, nobody waits for this argument but the instance.
        tokio::select! {
            biased;
            taken = taken => return taken,
            () = self.entry.seam().cut_off(WorkClass::Stream) => {}
        }
        Err(Rejected(session.instance_closed().await))
    }

    /// The handler's last argument, which may take the body.
    pub async fn last<A: FromRequest<RequestState, M>, M>(&mut self) -> Result<A, Rejected> {
        let body = std::mem::replace(&mut self.body, RequestBody::Body(Body::empty()));
        let (empty, ()) = Request::new(()).into_parts();
        let parts = std::mem::replace(&mut self.parts, empty);
        let state = self.state.get(self.entry.seam());
        A::from_request(Request::from_parts(parts, body.into_body()), state)
            .await
            .map_err(|rejection| Rejected(rejection.into_response()))
    }

    /// The answer to an argument that was refused. The handler does not run; a cold instance stays cold and is
    /// discarded (H1.11). Not sampled (H5.9).
    pub fn reject(mut self, rejected: Rejected) -> Response {
        self.entry.started = None;
        rejected.0
    }

    /// Runs a `&self` handler under a shared turn.
    pub fn run_shared<T, F, Fut>(self, run: F) -> HandlerFuture
    where
        T: PinnedApi,
        F: FnOnce(ReadTurn<T>) -> Fut + Send + 'static,
        Fut: Future<Output = (ReadTurn<T>, Response)> + Send + 'static,
    {
        self.run_turn(TurnKind::Shared, |tracked| {
            let turn = ReadTurn::new(tracked)?;
            let work = run(turn);
            Ok(async move {
                let (turn, response) = work.await;
                turn.into_tracked().answer(response)
            })
        })
    }

    /// Runs a `&mut self` handler under the exclusive turn.
    pub fn run_exclusive<T, F, Fut>(self, run: F) -> HandlerFuture
    where
        T: PinnedApi,
        F: FnOnce(WriteTurn<T>) -> Fut + Send + 'static,
        Fut: Future<Output = (WriteTurn<T>, Response)> + Send + 'static,
    {
        self.run_turn(TurnKind::Exclusive, |tracked| {
            let turn = WriteTurn::new(tracked)?;
            let work = run(turn);
            Ok(async move {
                let (turn, response) = work.await;
                turn.into_tracked().answer(response)
            })
        })
    }

    /// Runs a handler that holds no turn of its own.
    pub fn run_instance<T, F, Fut>(self, run: F) -> HandlerFuture
    where
        T: PinnedApi,
        F: FnOnce(Instance<T>) -> Fut + Send + 'static,
        Fut: Future<Output = Response> + Send + 'static,
    {
        let entering = self.entering();
        let prepared = self.prepared();
        HandlerFuture::waiting(entering.run(async move {
            let begun = match prepared.begin(WorkClass::Handler, None).await {
                Ok(begun) => begun,
                Err(unavailable) => return unavailable.into_response(),
            };
            let held = Held::Taken(Arc::<TakenTurns>::default());
            let running = begun.run(held, |tracked| {
                let instance = Instance::new(Arc::clone(tracked.seam()));
                Ok(async move { tracked.answer(run(instance).await) })
            });
            running.await
        }))
    }

    /// Runs a WebSocket handler for the life of its socket. The response is for a socket that was never accepted.
    pub fn run_socket<T, S, F, Fut>(mut self, run: F) -> HandlerFuture
    where
        T: PinnedApi,
        S: crate::ws::FromUpgrade + 'static,
        F: FnOnce(Instance<T>, S) -> Fut + Send + 'static,
        Fut: Future<Output = super::socket::SocketEnd> + Send + 'static,
    {
        let Some(session) = self.session.take() else {
            // A host gives a session to every WebSocket route.
            return HandlerFuture::ready(internal_error());
        };
        let entering = self.entering();
        let prepared = self.prepared();
        HandlerFuture::waiting(async move {
            let begun = entering.run(prepared.begin(WorkClass::Stream, None)).await;
            let begun = match begun {
                Ok(begun) => begun,
                Err(unavailable) => return session.fail_to_begin(unavailable).await,
            };
            let seam = Arc::clone(begun.tracked.seam());
            let instance = Instance::new(Arc::clone(&seam));
            let held = Held::Taken(Arc::<TakenTurns>::default());
            let scope = Scope::new(seam, held, begun.origin);
            session
                .run::<S, _, _>(begun.tracked, begun.route.handler(), scope, |socket| {
                    run(instance, socket)
                })
                .await
        })
    }

    /// Begins at once where nothing has to be waited for, which is the hot path: one lock, and one allocation for the
    /// handler's future.
    fn run_turn<W, Fut>(self, turn: TurnKind, work: W) -> HandlerFuture
    where
        W: FnOnce(Tracked) -> Result<Fut, Refusal> + Send + 'static,
        Fut: Future<Output = Response> + Send + 'static,
    {
        let seam = self.entry.seam();
        let held = Held::Whole(turn);
        let hold = self.origin.hold(&**seam);
        match seam.begin(WorkClass::Handler, Some((turn, hold))) {
            Begin::Started(Some(TurnAnswer::Granted(turn))) => self
                .prepared()
                .started(WorkClass::Handler, Some(turn))
                .run(held, work),
            Begin::Started(answer) => {
                let entering = self.entering();
                let settled = self.prepared().settle(WorkClass::Handler, answer);
                HandlerFuture::waiting(entering.run(async move {
                    match settled.await {
                        Ok(begun) => begun.run(held, work).await,
                        Err(unavailable) => unavailable.into_response(),
                    }
                }))
            }
            Begin::Refused(refusal) => {
                let named = || name_chain(refusal, seam, turn);
                HandlerFuture::ready(self.entering().enter(named).into_response())
            }
            Begin::NotResident => {
                let entering = self.entering();
                let prepared = self.prepared();
                HandlerFuture::waiting(entering.run(async move {
                    match prepared.begin(WorkClass::Handler, Some(turn)).await {
                        Ok(begun) => begun.run(held, work).await,
                        Err(unavailable) => unavailable.into_response(),
                    }
                }))
            }
        }
    }

    fn prepared(self) -> Prepared {
        Prepared {
            route: self.route,
            origin: self.origin,
            entry: self.entry,
        }
    }
}

impl Prepared {
    /// Activates the instance if it must be, and turns the admitted request into work.
    async fn begin(self, class: WorkClass, turn: Option<TurnKind>) -> Result<Begun, Unavailable> {
        let answer = loop {
            let seam = self.entry.seam();
            let wish = turn.map(|turn| (turn, chain_hold(seam)));
            match seam.begin(class, wish) {
                Begin::Started(answer) => break answer,
                Begin::NotResident => {
                    let activated = Arc::clone(seam).activate().await;
                    if let Err(Unavailable::SetupFailed(error)) = &activated
                        && error.as_http().is_none()
                    {
                        seam.setup_failed(class == WorkClass::Stream);
                    }
                    activated?;
                }
                Begin::Refused(refusal) => {
                    let refusal = match turn {
                        Some(turn) => name_chain(refusal, seam, turn),
                        None => refusal,
                    };
                    return Err(Unavailable::Refused(refusal));
                }
            }
        };
        self.settle(class, answer).await
    }

    /// Waits for the turn of work that counts already. Not an `async fn`: the work ends with the future, polled or not.
    fn settle(
        self,
        class: WorkClass,
        turn: Option<TurnAnswer>,
    ) -> impl Future<Output = Result<Begun, Unavailable>> + Send {
        let (seam, started) = self.entry.begun();
        let work = Some(Work { class, started });
        let tracked = match turn {
            None => Either::Left(ready(Ok(Tracked::adopt(seam, work, None)))),
            Some(answer) => Either::Right(settle_turn(seam, work, answer)),
        };
        let (route, origin) = (self.route, self.origin);
        async move {
            Ok(Begun {
                route,
                origin,
                tracked: tracked.await?,
            })
        }
    }

    /// The work counts, and holds its turn.
    fn started(self, class: WorkClass, turn: Option<Turn>) -> Begun {
        let (seam, started) = self.entry.begun();
        let work = Work { class, started };
        Begun {
            route: self.route,
            origin: self.origin,
            tracked: Tracked::adopt(seam, Some(work), turn),
        }
    }
}

impl Begun {
    /// Runs the handler, whose work `work` makes of the guard. A refusal says that the instance has gone meanwhile.
    fn run<W, Fut>(self, held: Held, work: W) -> HandlerFuture
    where
        W: FnOnce(Tracked) -> Result<Fut, Refusal>,
        Fut: Future<Output = Response> + Send + 'static,
    {
        let seam = Arc::clone(self.tracked.seam());
        let scope = Scope::new(Arc::clone(&seam), held, self.origin);
        match work(self.tracked) {
            Ok(work) => HandlerFuture::begun(seam, self.route, scope.run(work)),
            Err(refusal) => HandlerFuture::ready(refusal.into_response()),
        }
    }
}
