#![allow(unused)]

use pinned::{Durable, Persistent, pinned_api};

#[derive(Durable)]
#[durable(setup)]
struct Account {
    balance: Persistent<i64>,
}

#[pinned_api("/accounts")]
impl Account {}

fn main() {}
