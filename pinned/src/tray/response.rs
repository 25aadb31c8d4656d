//! Errors of trays as answers of routes.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use super::error::TrayError;
use crate::error::ErrorChain;

/// `{"detail": ..}`: 422 for an admission that was refused and an id that cannot be one, 404 and 409 for a tray that
/// is not there or not in that state, 503 for what is worth trying again, and 500, with a line in the log, for the rest.
impl IntoResponse for TrayError {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Frontier(error) => return error.clone().into_response(),
            Self::Refused(refused) => {
                return detail(StatusCode::UNPROCESSABLE_ENTITY, &refused.to_string());
            }
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::EmptyId | Self::LongId(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NotParked(_) | Self::Deleted(_) => StatusCode::CONFLICT,
            Self::Closed(_) | Self::Closing => StatusCode::SERVICE_UNAVAILABLE,
            _ => {
                tracing::error!(target: "pinned::tray", error = %ErrorChain(&self), "a tray failed a request");
                return detail(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");
            }
        };
        let mut response = detail(status, &self.to_string());
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

fn detail(status: StatusCode, detail: &str) -> Response {
    (status, axum::Json(serde_json::json!({ "detail": detail }))).into_response()
}
