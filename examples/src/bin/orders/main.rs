//! A shop per id: stock and takings that survive, a tray per order, and payments through a service that fails often.
//!
//! ```text
//! curl -X PUT localhost:8000/shops/corner/stock/tea -H 'content-type: application/json' -d 10
//! curl -X POST localhost:8000/shops/corner/orders -H 'content-type: application/json' \
//!     -d '{"id": "order-1", "article": "tea", "count": 2, "price": 350}'
//! curl localhost:8000/shops/corner/orders/order-1
//! curl localhost:8000/shops/corner
//! ```

mod order;
mod payments;
mod shop;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use payments::{Gateway, HttpGateway};
use pinned::PinnedWorker;

#[tokio::main]
async fn main() -> pinned::Result<()> {
    examples::show_warnings();
    let port = std::env::var("PORT").unwrap_or_else(|_| "8000".to_owned());
    let url = std::env::var("PAYMENTS_URL")
        .unwrap_or_else(|_| format!("http://127.0.0.1:{port}/payments"));
    let gateway: Gateway = Arc::new(HttpGateway::new(url));
    PinnedWorker::builder()
        .hosts_from_registry()
        .environment()
        .state(gateway)
        // A payment service to try it with, in the same process: it fails two times out of three.
        .merge(payments::flaky_service())
        .build()?
        .serve()
        .await
}
