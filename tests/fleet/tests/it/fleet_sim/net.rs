//! A network of pipes: it takes time, loses connections, and can be cut between any two hosts.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use pinboard::upstream::{Dial, Stream};
use pinned_domain::{Domain, Rng, until};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex, split,
};
use tokio::sync::{Notify, watch};

/// What fits into a pipe before its writer waits.
const PIPE: usize = 16 << 10;

/// Who is on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Host {
    Client,
    Node(usize),
    Worker(usize),
}

/// What becomes of what one host sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Connections break, and none are made.
    Refused,
    /// Nothing arrives until the cut is over.
    Silent,
}

/// The network. Clones are the same.
#[derive(Clone)]
pub(super) struct Net {
    shared: Arc<Shared>,
}

struct Shared {
    domain: Domain,
    dice: Rng,
    state: Mutex<State>,
    changed: Notify,
}

type Listener = Arc<dyn Fn(DuplexStream) + Send + Sync>;

struct State {
    listeners: BTreeMap<Host, Listener>,
    /// How often each way is cut, and how it was cut last: two faults may do the same.
    cuts: BTreeMap<(Host, Host), (usize, Cut)>,
    connections: BTreeMap<u64, ((Host, Host), watch::Sender<bool>)>,
    next: u64,
    slowest: Duration,
    loss: f64,
}

impl Net {
    pub(super) fn new(domain: Domain) -> Self {
        let state = State {
            listeners: BTreeMap::new(),
            cuts: BTreeMap::new(),
            connections: BTreeMap::new(),
            next: 0,
            slowest: Duration::from_millis(10),
            loss: 0.0,
        };
        Self {
            shared: Arc::new(Shared {
                dice: domain.rng("net").expect("a label"),
                domain,
                state: Mutex::new(state),
                changed: Notify::new(),
            }),
        }
    }

    /// The address at which workers say they are.
    pub(super) fn address(worker: usize) -> SocketAddr {
        let last = u8::try_from(worker).expect("few workers");
        ([10, 0, 1, last], 8_000).into()
    }

    pub(super) fn listen(&self, host: Host, serve: impl Fn(DuplexStream) + Send + Sync + 'static) {
        let mut state = self.shared.state.lock();
        state.listeners.insert(host, Arc::new(serve));
    }

    /// `host` is gone: nobody listens there, and its connections break.
    pub(super) fn remove(&self, host: Host) {
        let listener = self.shared.state.lock().listeners.remove(&host);
        drop(listener);
        self.break_where(|(from, to)| from == host || to == host);
    }

    /// Nobody listens any more.
    pub(super) fn close(&self) {
        let listeners = std::mem::take(&mut self.shared.state.lock().listeners);
        drop(listeners);
    }

    /// Nothing passes from `from` to `to` any more, until that is [mended](Self::mend) as often.
    pub(super) fn cut(&self, from: Host, to: Host, how: Cut) {
        {
            let mut state = self.shared.state.lock();
            let cut = state.cuts.entry((from, to)).or_insert((0, how));
            *cut = (cut.0 + 1, how);
        }
        if how == Cut::Refused {
            self.break_where(|way| way == (from, to) || way == (to, from));
        }
    }

    pub(super) fn mend(&self, from: Host, to: Host) {
        let mut state = self.shared.state.lock();
        if let Some(cut) = state.cuts.get_mut(&(from, to)) {
            cut.0 -= 1;
            if cut.0 == 0 {
                state.cuts.remove(&(from, to));
            }
        }
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// From now on, how long a piece takes at most, and how likely its connection breaks instead.
    pub(super) fn weather(&self, slowest: Duration, loss: f64) {
        let mut state = self.shared.state.lock();
        (state.slowest, state.loss) = (slowest, loss);
    }

    fn break_where(&self, broken: impl Fn((Host, Host)) -> bool) {
        let state = self.shared.state.lock();
        let hit = state.connections.values().filter(|(way, _)| broken(*way));
        hit.for_each(|(_, breaks)| {
            breaks.send_replace(true);
        });
    }

    /// # Errors
    ///
    /// Nobody listens there, or the way there is cut.
    pub(super) async fn connect(&self, from: Host, to: Host) -> io::Result<DuplexStream> {
        self.pass(from, to).await?;
        let listener = self.shared.state.lock().listeners.get(&to).cloned();
        let listener = listener.ok_or(io::ErrorKind::ConnectionRefused)?;
        let (near, this_end) = duplex(PIPE);
        let (other_end, far) = duplex(PIPE);
        let (breaks, broken) = watch::channel(false);
        let number = {
            let mut state = self.shared.state.lock();
            state.next += 1;
            let number = state.next;
            state.connections.insert(number, ((from, to), breaks));
            number
        };
        let net = self.clone();
        self.shared.domain.spawn(async move {
            net.carry((from, this_end), (to, other_end), broken).await;
            net.shared.state.lock().connections.remove(&number);
        });
        listener(far);
        Ok(near)
    }

    /// Until one end is closed, or the connection breaks.
    async fn carry(
        &self,
        (from, this_end): (Host, DuplexStream),
        (to, other_end): (Host, DuplexStream),
        mut broken: watch::Receiver<bool>,
    ) {
        let (this_reads, this_writes) = split(this_end);
        let (other_reads, other_writes) = split(other_end);
        let there = self.one_way(from, to, this_reads, other_writes);
        let back = self.one_way(to, from, other_reads, this_writes);
        tokio::select! {
            biased;
            _ = broken.wait_for(|broken| *broken) => {}
            _ = both(there, back) => {}
        }
    }

    async fn one_way(
        &self,
        from: Host,
        to: Host,
        mut reads: impl AsyncRead + Unpin,
        mut writes: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut piece = vec![0; PIPE];
        loop {
            let read = reads.read(&mut piece).await?;
            self.pass(from, to).await?;
            if read == 0 {
                return writes.shutdown().await;
            }
            writes.write_all(&piece[..read]).await?;
        }
    }

    /// One piece on its way.
    async fn pass(&self, from: Host, to: Host) -> io::Result<()> {
        let (slowest, loss) = {
            let state = self.shared.state.lock();
            (state.slowest, state.loss)
        };
        let dice = &self.shared.dice;
        let (takes, luck) = (dice.uniform(0.0..1.0), dice.uniform(0.0..1.0));
        self.shared.domain.sleep(slowest.mul_f64(takes)).await;
        let cut = |how| self.shared.state.lock().cuts.get(&(from, to)).map(|c| c.1) == Some(how);
        until(&self.shared.changed, || !cut(Cut::Silent)).await;
        if luck < loss || cut(Cut::Refused) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }

    /// How a node reaches workers.
    pub(super) fn dial_from(&self, node: usize) -> NodeDial {
        NodeDial {
            net: self.clone(),
            from: Host::Node(node),
        }
    }
}

/// Until both ways are closed, or one breaks.
async fn both(
    there: impl Future<Output = io::Result<()>>,
    back: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    futures_util::future::try_join(there, back).await.map(drop)
}

pub(super) struct NodeDial {
    net: Net,
    from: Host,
}

impl Dial for NodeDial {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Stream>> {
        let (net, from) = (self.net.clone(), self.from);
        async move {
            let worker = (0..=u8::MAX.into()).find(|n| Net::address(*n) == address);
            let worker = worker.ok_or(io::ErrorKind::HostUnreachable)?;
            let stream = net.connect(from, Host::Worker(worker)).await?;
            Ok(Stream::Other(Box::new(stream)))
        }
        .boxed()
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net").finish_non_exhaustive()
    }
}
