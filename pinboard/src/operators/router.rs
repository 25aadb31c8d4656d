//! The routes of operators, and those of probes.

use std::sync::Arc;

use axum::extract::{RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use pinned_wire::registry::WindDownQueued;
use serde_json::{Value, json};

use super::{DrainAnswer, Health, Operators, Overview, StatsTable, WorkersTable, bodies};
use crate::passport::{OPERATOR_SCOPE, Principal};
use crate::sessions::{Call, RegistryError};
use crate::store::EventPage;

/// The routes of operators under `/registry`, and `/healthz`, `/readyz`, `/metrics` (P3). What else is under `/registry` is 404.
pub fn router(operators: Arc<Operators>) -> Router {
    Router::new()
        .route("/registry/workers", get(workers).fallback(only_get))
        .route("/registry/stats", get(stats).fallback(only_get))
        .route("/registry/overview", get(overview).fallback(only_get))
        .route("/registry/health", get(health).fallback(only_get))
        .route("/registry/events", get(events).fallback(only_get))
        .route("/registry/drain", post(drain).fallback(only_post))
        .route("/registry/undrain", post(undrain).fallback(only_post))
        .route("/registry/wind_down", post(wind_down).fallback(only_post))
        .route("/registry", any(not_found))
        .route("/registry/", any(not_found))
        .route("/registry/{*rest}", any(not_found))
        .route("/healthz", get(healthz).fallback(only_get))
        .route("/readyz", get(readyz).fallback(only_get))
        .route("/metrics", get(metrics).fallback(only_get))
        .with_state(operators)
}

type Service = State<Arc<Operators>>;
type Answer<T> = Result<Json<T>, RegistryError>;

async fn only_get() -> RegistryError {
    RegistryError::MethodNotAllowed("GET, HEAD")
}

async fn only_post() -> RegistryError {
    RegistryError::MethodNotAllowed("POST")
}

async fn not_found() -> RegistryError {
    RegistryError::NotFound
}

async fn caller(operators: &Operators, headers: &HeaderMap) -> Result<Principal, RegistryError> {
    operators
        .registry()
        .authenticate(headers, OPERATOR_SCOPE)
        .await
}

async fn workers(State(operators): Service, headers: HeaderMap) -> Answer<WorkersTable> {
    let caller = caller(&operators, &headers).await?;
    operators.workers(&caller).await.map(Json)
}

async fn stats(State(operators): Service, headers: HeaderMap) -> Answer<StatsTable> {
    let caller = caller(&operators, &headers).await?;
    operators.stats(&caller).await.map(Json)
}

async fn overview(State(operators): Service, headers: HeaderMap) -> Answer<Overview> {
    let caller = caller(&operators, &headers).await?;
    operators.overview(&caller).await.map(Json)
}

async fn health(State(operators): Service, headers: HeaderMap) -> Answer<Health> {
    caller(&operators, &headers).await?;
    Ok(Json(operators.health().await))
}

async fn events(
    State(operators): Service,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answer<EventPage> {
    let caller = caller(&operators, &headers).await?;
    let asked = bodies::events(query.as_deref())?;
    operators.events(&caller, asked).await.map(Json)
}

async fn drain(State(operators): Service, request: Request) -> Answer<DrainAnswer> {
    let registry = operators.registry();
    let call = Call::authenticate(registry, request, OPERATOR_SCOPE).await?;
    let (caller, body) = call.body(registry).await?;
    let order = bodies::drain(&body)?;
    operators.drain(&caller, order).await.map(Json)
}

async fn undrain(State(operators): Service, request: Request) -> Answer<DrainAnswer> {
    let registry = operators.registry();
    let call = Call::authenticate(registry, request, OPERATOR_SCOPE).await?;
    let (caller, body) = call.body(registry).await?;
    let client_id = bodies::undrain(&body)?;
    operators.undrain(&caller, &client_id).await.map(Json)
}

async fn wind_down(State(operators): Service, request: Request) -> Answer<WindDownQueued> {
    let registry = operators.registry();
    let call = Call::authenticate(registry, request, OPERATOR_SCOPE).await?;
    let (caller, body) = call.body(registry).await?;
    let order = bodies::wind_down(&body)?;
    let queued = operators.wind_down(&caller, order).await?;
    Ok(Json(WindDownQueued { queued }))
}

async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

async fn readyz(State(operators): Service) -> Answer<Value> {
    operators.ready().await?;
    Ok(Json(json!({"status": "ready"})))
}

async fn metrics(State(operators): Service, headers: HeaderMap) -> Result<Response, RegistryError> {
    let caller = caller(&operators, &headers).await?;
    if !caller.grants.is_unrestricted() {
        return Err(RegistryError::Forbidden);
    }
    let text = (operators.render_metrics)();
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, text).into_response())
}
