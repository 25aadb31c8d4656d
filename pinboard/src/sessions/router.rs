//! The routes of workers.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::routing::post;
use pinned_wire::registry::{
    DEREGISTER_PATH, HEARTBEAT_PATH, HeartbeatAck, REGISTER_PATH, RELEASE_PATH, RegisterAck,
    ReleaseAck,
};
use serde_json::{Map, Value};

use super::call::BODY_LIMIT;
use super::{Call, RegistryError, Sessions, bodies};
use crate::passport::WORKER_SCOPE;

/// How long the body of a register may be, in bytes: the list of a worker's instances is in it (P2).
const REGISTER_LIMIT: usize = 64 << 20;

/// The routes of workers: `/registry/register`, `heartbeat`, `release`, `deregister` (P2).
pub fn router(sessions: Arc<Sessions>) -> Router {
    Router::new()
        .route(REGISTER_PATH, post(register).fallback(only_post))
        .route(HEARTBEAT_PATH, post(heartbeat).fallback(only_post))
        .route(RELEASE_PATH, post(release).fallback(only_post))
        .route(DEREGISTER_PATH, post(deregister).fallback(only_post))
        .with_state(sessions)
}

type Answer<T> = Result<Json<T>, RegistryError>;

async fn only_post() -> RegistryError {
    RegistryError::MethodNotAllowed("POST")
}

async fn register(State(sessions): State<Arc<Sessions>>, request: Request) -> Answer<RegisterAck> {
    let registry = sessions.registry();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|ConnectInfo(peer)| peer.ip().to_canonical());
    let call = Call::authenticate(registry, request, WORKER_SCOPE).await;
    let call = call.inspect_err(|error| sessions.told_stranger(error, peer))?;
    let (caller, body) = call
        .long_body(registry, REGISTER_LIMIT, &sessions.rooms)
        .await?;
    let given = if body.bytes.len() > BODY_LIMIT {
        // Reading millions of ids takes a while that nobody else should wait for.
        let bytes = body.bytes;
        tokio::task::spawn_blocking(move || bodies::register(&bytes))
            .await
            .map_err(|_| RegistryError::Internal)?
    } else {
        bodies::register(&body.bytes)
    };
    let given = given.inspect_err(|error| sessions.told_malformed(error, &caller, peer))?;
    let ack = sessions
        .register_in(&caller, given, body.room, peer)
        .await?;
    Ok(Json(ack))
}

async fn heartbeat(
    State(sessions): State<Arc<Sessions>>,
    request: Request,
) -> Answer<HeartbeatAck> {
    let registry = sessions.registry();
    let call = Call::authenticate(registry, request, WORKER_SCOPE).await?;
    let (caller, body) = call.body(registry).await?;
    let ack = sessions
        .heartbeat(&caller, bodies::heartbeat(&body)?)
        .await?;
    Ok(Json(ack))
}

async fn release(State(sessions): State<Arc<Sessions>>, request: Request) -> Answer<ReleaseAck> {
    let registry = sessions.registry();
    let call = Call::authenticate(registry, request, WORKER_SCOPE).await?;
    let (caller, body) = call.body(registry).await?;
    let released = sessions.release(&caller, bodies::release(&body)?).await?;
    Ok(Json(ReleaseAck { released }))
}

async fn deregister(
    State(sessions): State<Arc<Sessions>>,
    request: Request,
) -> Answer<Map<String, Value>> {
    let registry = sessions.registry();
    let call = Call::authenticate(registry, request, WORKER_SCOPE).await?;
    let (caller, body) = call.body(registry).await?;
    sessions
        .deregister(&caller, &bodies::deregister(&body)?)
        .await?;
    Ok(Json(Map::new()))
}
