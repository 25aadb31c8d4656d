#![allow(unused)]

use pinned::{Context, Stored, lifespan, pinned_api};

struct Account;

#[pinned_api("/accounts")]
impl Account {
    #[lifespan::setup]
    async fn setup(_ctx: Context, _stored: Stored<Self>) -> Self {
        Self
    }
}

fn main() {}
