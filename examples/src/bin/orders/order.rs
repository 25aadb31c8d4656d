//! An order, and the tray that sees it through.

use pinned::{Persistent, PersistentOutbox, PersistentQueue, Tray, inbox};
use serde::{Deserialize, Serialize};

/// What a customer asks for. Amounts are in cents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) article: String,
    pub(crate) count: u32,
    pub(crate) price: u64,
}

impl Order {
    pub(crate) fn total(&self) -> u64 {
        u64::from(self.count).saturating_mul(self.price)
    }
}

/// How far an order is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    #[default]
    Unknown,
    Placed,
    Paid {
        receipt: String,
    },
    Declined {
        reason: String,
    },
}

/// What is asked of the payment service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub(crate) order: String,
    pub(crate) amount: u64,
}

#[derive(Tray)]
pub(crate) struct Fulfilment {
    orders: PersistentQueue<Order>,
    pub(crate) status: Persistent<Status>,
    /// The charge that is under way, and how often it was tried, across crashes.
    pub(crate) charges: PersistentOutbox<Charge>,
}

#[inbox]
impl Fulfilment {
    /// Placing an order twice is placing it once.
    pub(crate) fn place(&mut self, order: Order) {
        if *self.status == Status::Unknown {
            self.status.set(Status::Placed);
            self.orders.push(order);
        }
    }
}
