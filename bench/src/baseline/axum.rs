use std::{future, io, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path, State},
    routing::post,
    serve::ListenerExt,
};
use tokio::net::TcpListener;

use super::Counters;

/// Serves the counters with a bare axum router until the process ends.
///
/// # Errors
/// When the listener fails.
pub async fn axum_server(listener: TcpListener) -> io::Result<()> {
    let app = Router::new()
        .route("/counters/{id}/increment", post(increment))
        .route("/counters/{id}/stall", post(future::pending::<()>))
        .with_state(Arc::new(Counters::default()));
    let listener = listener.tap_io(|stream| {
        // A socket that refuses the option is merely slower.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await
}

async fn increment(State(counters): State<Arc<Counters>>, Path(id): Path<String>) -> Json<u64> {
    Json(counters.increment(&id))
}
