//! The shop.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use pinned::{
    BoxError, Context, Dispatch, Durable, Instance, Json, Persistent, TrayError, pinned_api, route,
};
use serde::Serialize;
use serde_json::json;

use crate::order::{Charge, Fulfilment, FulfilmentInbox, Order, Status};
use crate::payments::{Answer, Gateway};

/// How often a charge is tried before the order is declined, crashes included.
const TRIES: u64 = 8;

/// Stock and takings, both of which a crash must not lose.
#[derive(Durable)]
pub(crate) struct Shop {
    stock: Persistent<BTreeMap<String, u32>>,
    takings: Persistent<u64>,
}

#[derive(Serialize)]
pub(crate) struct Books {
    stock: BTreeMap<String, u32>,
    takings: u64,
}

#[pinned_api("/shops")]
impl Shop {
    #[route::get("/")]
    async fn books(&self) -> Json<Books> {
        Json(Books {
            stock: self.stock.clone(),
            takings: *self.takings,
        })
    }

    /// Answers once the new stock is durable.
    #[route::put("/stock/{article}", durable)]
    async fn restock(&mut self, Path(article): Path<String>, Json(count): Json<u32>) -> Json<u32> {
        let stock = self.stock.update(|stock| {
            let stock = stock.entry(article).or_default();
            *stock = stock.saturating_add(count);
            *stock
        });
        Json(stock)
    }

    /// Answers once the order is placed for good: what is reserved and what is to be done are durable together.
    #[route::post("/orders", durable)]
    async fn order(
        &mut self,
        ctx: Context,
        Json(order): Json<Order>,
    ) -> axum::response::Result<Json<Status>> {
        let tray = ctx.trays(Self::FULFIL)?.get_or_create(&order.id).await?;
        let known = tray.read(|fulfilment| fulfilment.status.clone())?;
        if known != Status::Unknown {
            return Ok(Json(known));
        }
        let left = self.stock.get(&order.article).copied().unwrap_or(0);
        let Some(left) = left.checked_sub(order.count) else {
            let detail = "there is not enough of that article";
            return Err((StatusCode::CONFLICT, Json(json!({ "detail": detail }))).into());
        };
        let frontier = ctx.frontier()?;
        // Held as long as this turn is, so nobody else has reserved it in between.
        let placed = frontier.atomic(|| {
            let article = order.article.clone();
            let placed = tray.place(order)?;
            self.stock.update(|stock| stock.insert(article, left));
            Ok::<_, TrayError>(placed)
        })??;
        // The route waits for durability; nothing else here needs to.
        drop(placed);
        Ok(Json(Status::Placed))
    }

    #[route::get("/orders/{order}")]
    async fn status(
        this: Instance<Self>,
        Path(order): Path<String>,
    ) -> Result<Json<Status>, TrayError> {
        let tray = this.trays(Self::FULFIL)?.get(&order).await?;
        Ok(Json(tray.read(|fulfilment| fulfilment.status.clone())?))
    }

    /// Sees one order through: charges it until the service says something, and books what it said.
    #[tray(map)]
    async fn fulfil(
        this: Instance<Self>,
        order: Order,
        dispatch: Dispatch<Fulfilment>,
    ) -> Result<(), BoxError> {
        let ctx = this.context();
        let gateway = ctx.state::<Gateway>().ok_or("no payment gateway")?;
        let charge = Charge {
            order: order.id.clone(),
            amount: order.total(),
        };
        let answer = loop {
            let attempt = dispatch.update(|tray| tray.charges.dispatch(charge.clone()))?;
            // On record before it is sent: a crash now repeats it, with a higher count and the same key.
            ctx.frontier()?.wait().await?;
            match gateway.charge(charge.clone()).await {
                Ok(answer) => break answer,
                Err(error) if attempt < TRIES => {
                    tracing::warn!(order = order.id, attempt, %error, "the charge failed; trying again");
                    // An eviction need not wait: the next activation goes on with the next attempt.
                    ctx.eviction_checkpoint().await?;
                    let pause = Duration::from_millis(50 << attempt.min(6));
                    ctx.domain().sleep(pause).await;
                }
                Err(error) => break Answer::Refused(error.to_string()),
            }
        };
        let mut shop = this.write().await?;
        // One segment: a crash leaves all of it, or none, and then the order comes again.
        ctx.frontier()?.atomic(|| {
            if dispatch.read(|tray| *tray.status == Status::Placed)? {
                shop.book(&order, &answer);
            }
            dispatch.update(|tray| {
                tray.charges.ack();
                tray.status.set(match answer {
                    Answer::Taken(receipt) => Status::Paid { receipt },
                    Answer::Refused(reason) => Status::Declined { reason },
                });
            })
        })??;
        Ok(())
    }

    fn book(&mut self, order: &Order, answer: &Answer) {
        match answer {
            Answer::Taken(_) => self
                .takings
                .update(|takings| *takings = takings.saturating_add(order.total())),
            Answer::Refused(_) => self.stock.update(|stock| {
                let stock = stock.entry(order.article.clone()).or_default();
                *stock = stock.saturating_add(order.count);
            }),
        }
    }
}
