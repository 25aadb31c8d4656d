//! A closed-loop HTTP/1.1 load generator: a fixed number of keep-alive connections, each with one request in flight.
//!
//! It is lean so that it does not hide what it measures: requests are built before the clock starts, one thread drives
//! all connections, and a request costs one write, one read and one look at the clock.

mod connection;
mod report;

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{runtime, task::JoinSet};

use self::report::Tally;
pub use self::{
    connection::{Connection, post},
    report::Report,
};

/// A load on one server: which requests, over how many connections.
pub struct Load {
    addr: SocketAddr,
    connections: usize,
    requests: Arc<[Box<[u8]>]>,
}

/// How a connection picks its next request.
#[derive(Clone)]
enum Order {
    /// Any of them, from a seeded stream, until the deadline.
    Random { deadline: Instant },
    /// The next that no connection has taken, until none is left.
    Once { next: Arc<AtomicUsize> },
}

impl Load {
    /// `POST /counters/{id}/increment` for each of `ids`.
    pub fn increments(
        addr: SocketAddr,
        connections: usize,
        ids: impl IntoIterator<Item = String>,
    ) -> Self {
        let requests = ids
            .into_iter()
            .map(|id| post(addr, &format!("/counters/{id}/increment")))
            .collect();
        Self {
            addr,
            connections,
            requests,
        }
    }

    /// Sends requests in a seeded random order for `duration`.
    ///
    /// # Errors
    /// When a connection breaks or an answer is not HTTP/1.1 with a length. An answer other than 200 is counted instead.
    pub fn run_for(&self, duration: Duration) -> io::Result<Report> {
        self.run(|| Order::Random {
            deadline: Instant::now() + duration,
        })
    }

    /// Sends each request once.
    ///
    /// # Errors
    /// As [`Load::run_for`].
    pub fn run_once(&self) -> io::Result<Report> {
        self.run(|| Order::Once {
            next: Arc::default(),
        })
    }

    /// `order` is asked for after the last connection stands, so that connecting is not measured.
    fn run(&self, order: impl FnOnce() -> Order) -> io::Result<Report> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let mut connections = Vec::with_capacity(self.connections);
            for _ in 0..self.connections {
                connections.push(Connection::open(self.addr).await?);
            }
            let order = order();
            let start = Instant::now();
            let mut tasks = JoinSet::new();
            for (seed, connection) in connections.into_iter().enumerate() {
                let requests = Arc::clone(&self.requests);
                tasks.spawn(drive(connection, requests, order.clone(), seed as u64));
            }
            let mut total = Tally::default();
            while let Some(joined) = tasks.join_next().await {
                total.add(joined.map_err(io::Error::other)??);
            }
            Ok(Report::new(total, start.elapsed()))
        })
    }
}

async fn drive(
    mut connection: Connection,
    requests: Arc<[Box<[u8]>]>,
    order: Order,
    seed: u64,
) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut random = SplitMix64(seed);
    let mut before = Instant::now();
    loop {
        let index = match &order {
            Order::Random { deadline } if before >= *deadline => return Ok(tally),
            Order::Random { .. } => random.below(requests.len()),
            Order::Once { next } => next.fetch_add(1, Ordering::Relaxed),
        };
        let Some(request) = requests.get(index) else {
            return Ok(tally);
        };
        let status = connection.exchange(request).await?;
        let after = Instant::now();
        tally.record(status, after - before);
        before = after;
    }
}

/// The generator of Steele, Lea and Flood: ids need only be spread evenly, and alike in every run.
struct SplitMix64(u64);

impl SplitMix64 {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * bound as u128) >> 64) as usize
    }
}
