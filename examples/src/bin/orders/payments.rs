//! The way to the payment service, and a service to try it with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use pinned::BoxError;
use serde::{Deserialize, Serialize};

use crate::order::Charge;

/// Whatever takes payments.
pub(crate) type Gateway = Arc<dyn Payments>;

/// Takes payments: the same charge twice is taken once.
pub(crate) trait Payments: Send + Sync {
    /// Takes `charge` and gives a receipt.
    ///
    /// # Errors
    ///
    /// It is not known whether the charge was taken: try it again.
    fn charge(&self, charge: Charge) -> BoxFuture<'static, Result<Answer, BoxError>>;
}

/// What the service says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    Taken(String),
    Refused(String),
}

/// Payments over HTTP.
pub(crate) struct HttpGateway {
    url: String,
    client: Client<HttpConnector, Full<axum::body::Bytes>>,
}

impl HttpGateway {
    pub(crate) fn new(url: String) -> Self {
        Self {
            url,
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }
}

impl Payments for HttpGateway {
    fn charge(&self, charge: Charge) -> BoxFuture<'static, Result<Answer, BoxError>> {
        let (client, url) = (self.client.clone(), self.url.clone());
        Box::pin(async move {
            let request = Request::post(url)
                .header(header::CONTENT_TYPE, "application/json")
                .body(Full::from(serde_json::to_vec(&charge)?))?;
            let response = client.request(request).await?;
            let status = response.status();
            if !status.is_success() {
                return Err(format!("the payment service answers {status}").into());
            }
            let body = response.into_body().collect().await?.to_bytes();
            Ok(serde_json::from_slice(&body)?)
        })
    }
}

#[derive(Default)]
struct Service {
    taken: HashMap<String, String>,
    calls: u64,
}

/// A payment service that fails two times out of three, sometimes after it has taken the money.
pub(crate) fn flaky_service() -> Router {
    Router::new()
        .route("/payments", post(take))
        .with_state(Arc::<Mutex<Service>>::default())
}

async fn take(State(service): State<Arc<Mutex<Service>>>, Json(charge): Json<Charge>) -> Response {
    let mut service = service.lock().unwrap_or_else(PoisonError::into_inner);
    service.calls += 1;
    if service.calls % 3 == 1 {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let receipt = format!("receipt-{}", service.taken.len() + 1);
    let receipt = service.taken.entry(charge.order).or_insert(receipt).clone();
    if service.calls % 3 == 2 {
        return StatusCode::GATEWAY_TIMEOUT.into_response();
    }
    Json(Answer::Taken(receipt)).into_response()
}
