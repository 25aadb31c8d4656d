//! A client without sockets.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pinned::PinnedWorker;
use pinned::wire::attestation::{Claims, mint};

use crate::request::TestRequest;
use crate::socket::SocketRequest;

/// Makes requests to a worker of this process, without sockets. A cheap handle.
///
/// A worker that has a control plane's seam ([`ScriptedPlacements`](crate::ScriptedPlacements)) takes no request that
/// is not vouched for, so a valid attestation is added for it, unless a request brings its own (H17.5).
/// [`TestClient::unattested`] leaves it out; [`TestClient::attested_as`] says who calls.
///
/// ```
/// # use pinned::{pinned_api, route};
/// # #[derive(Default)] struct Room;
/// # #[pinned_api("/rooms")]
/// # impl Room {
/// #     #[route::get("/")] async fn name(&self) -> &'static str { "a room" }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// let app = pinned_testing::pinned_app::<Room>().await?;
/// let answer = app.client().get("/rooms/blue").header("accept", "text/plain").send().await;
/// assert_eq!(answer.status(), 200);
/// # app.shutdown().await
/// # }
/// ```
#[derive(Clone)]
pub struct TestClient {
    worker: PinnedWorker,
    router: Router,
    vouch: Vouch,
    headers: HeaderMap,
}

type Edit = Arc<dyn Fn(Claims) -> Claims + Send + Sync>;

/// Who vouches for the requests of a client.
#[derive(Clone)]
enum Vouch {
    Nobody,
    ControlPlane(Option<Edit>),
}

/// A client of `worker`, whose lifespan somebody else runs.
///
/// ```
/// # use pinned::{PinnedWorker, pinned_api, route};
/// # #[derive(Default)] struct Room;
/// # #[pinned_api("/rooms")]
/// # impl Room {
/// #     #[route::get("/")] async fn name(&self) -> &'static str { "a room" }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> pinned::Result<()> {
/// let worker = PinnedWorker::builder().host::<Room>("/rooms").build()?;
/// let running = worker.run_lifespan().await?;
/// let client = pinned_testing::client_for(&worker);
/// assert_eq!(client.get("/rooms/blue").send().await.status(), 200);
/// # running.shutdown().await
/// # }
/// ```
#[must_use]
pub fn client_for(worker: &PinnedWorker) -> TestClient {
    TestClient::for_router(worker, worker.into_router())
}

impl TestClient {
    /// A client of a program's own router, into which `worker` was merged.
    ///
    /// ```
    /// # use pinned::{PinnedWorker, pinned_api};
    /// # #[derive(Default)] struct Room;
    /// # #[pinned_api("/rooms")] impl Room {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pinned::Result<()> {
    /// use axum::routing::get;
    /// use pinned_testing::TestClient;
    ///
    /// let worker = PinnedWorker::builder().host::<Room>("/rooms").build()?;
    /// let app = axum::Router::new().route("/hi", get(|| async { "hello" })).merge(worker.into_router());
    /// let client = TestClient::for_router(&worker, app);
    /// assert_eq!(client.get("/hi").send().await.text().await, "hello");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn for_router(worker: &PinnedWorker, router: Router) -> Self {
        Self {
            worker: worker.clone(),
            router,
            vouch: Vouch::ControlPlane(None),
            headers: HeaderMap::new(),
        }
    }

    /// The same client, with a header on every request.
    ///
    /// # Panics
    ///
    /// When the name or the value is not valid in a header.
    ///
    /// ```
    /// # use pinned_testing::TestClient;
    /// # fn demo(client: TestClient) {
    /// let placed = client.header("pinboard-epoch", "7");
    /// # }
    /// ```
    #[must_use]
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName>,
        N::Error: fmt::Debug,
        V: TryInto<HeaderValue>,
        V::Error: fmt::Debug,
    {
        let name = name.try_into().expect("the name of a header");
        let value = value.try_into().expect("the value of a header");
        self.headers.append(name, value);
        self
    }

    /// The same client, with a valid attestation of nobody in particular where the worker needs one. The default.
    #[must_use]
    pub fn attested(mut self) -> Self {
        self.vouch = Vouch::ControlPlane(None);
        self
    }

    /// The same client, with the claims that `edit` makes of an anonymous caller's.
    ///
    /// ```
    /// # use pinned_testing::TestClient;
    /// # fn demo(client: TestClient) {
    /// let room = client.attested_as(|claims| claims.with_caller("/rooms/blue", 1));
    /// # }
    /// ```
    #[must_use]
    pub fn attested_as(mut self, edit: impl Fn(Claims) -> Claims + Send + Sync + 'static) -> Self {
        self.vouch = Vouch::ControlPlane(Some(Arc::new(edit)));
        self
    }

    /// The same client, for whose requests nobody vouches.
    #[must_use]
    pub fn unattested(mut self) -> Self {
        self.vouch = Vouch::Nobody;
        self
    }

    /// The worker that this client talks to.
    #[must_use]
    pub fn worker(&self) -> &PinnedWorker {
        &self.worker
    }

    /// A `GET`.
    pub fn get(&self, path: impl Into<String>) -> TestRequest {
        self.request(Method::GET, path)
    }

    /// A `POST`.
    pub fn post(&self, path: impl Into<String>) -> TestRequest {
        self.request(Method::POST, path)
    }

    /// A `PUT`.
    pub fn put(&self, path: impl Into<String>) -> TestRequest {
        self.request(Method::PUT, path)
    }

    /// A `PATCH`.
    pub fn patch(&self, path: impl Into<String>) -> TestRequest {
        self.request(Method::PATCH, path)
    }

    /// A `DELETE`.
    pub fn delete(&self, path: impl Into<String>) -> TestRequest {
        self.request(Method::DELETE, path)
    }

    /// A request of any method for `path`, which may have a query.
    pub fn request(&self, method: Method, path: impl Into<String>) -> TestRequest {
        TestRequest::new(self.clone(), method, path.into())
    }

    /// Opens a WebSocket at `path`: await it, or set headers and subprotocols first.
    ///
    /// ```
    /// # use pinned::{WebSocket, Instance, pinned_api, route, ws::SocketError};
    /// # #[derive(Default)] struct Room;
    /// # #[pinned_api("/rooms")]
    /// # impl Room {
    /// #     #[route::websocket("/chat")]
    /// #     async fn chat(_this: Instance<Self>, socket: WebSocket) -> Result<(), SocketError> {
    /// #         socket.send_text("hello").await
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> pinned::Result<()> {
    /// # let app = pinned_testing::pinned_app::<Room>().await?;
    /// let mut socket = app.client().websocket("/rooms/blue/chat").await.expect("accepted");
    /// assert_eq!(socket.recv_text().await.as_deref(), Some("hello"));
    /// assert_eq!(socket.recv_close().await, (1000, String::new()));
    /// # app.shutdown().await
    /// # }
    /// ```
    pub fn websocket(&self, path: impl Into<String>) -> SocketRequest {
        SocketRequest::new(self.get(path))
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(crate) fn router(&self) -> &Router {
        &self.router
    }

    /// The attestation for a request to `path`, if one is to be added.
    pub(crate) fn attestation(&self, path: &str) -> Option<HeaderValue> {
        let Vouch::ControlPlane(edit) = &self.vouch else {
            return None;
        };
        let namespace_end = path[1..].find('/').map_or(path.len(), |at| at + 1);
        let audience = self.worker.attestation_audience(&path[..namespace_end])?;
        let mut claims = Claims::new(audience, self.worker.domain().now());
        if let Some(edit) = edit {
            claims = edit(claims);
        }
        HeaderValue::try_from(mint(self.worker.secret(), &claims)).ok()
    }
}

impl fmt::Debug for TestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestClient").field(&self.worker).finish()
    }
}
