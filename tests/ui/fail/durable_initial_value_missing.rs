#![allow(unused)]

use std::net::Ipv4Addr;

use pinned::{Durable, Persistent};

#[derive(Durable)]
struct Server {
    address: Persistent<Ipv4Addr>,
}

fn main() {}
