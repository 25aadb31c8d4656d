//! The connections of a server, and what ends them.
//!
//! hyper's own guards (a timer per request head, a shutdown watcher per poll) cost as much as the rest of a small
//! request. Here a connection counts its requests, and one task looks at all of them now and then.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::service::{WorkerAnswer, WorkerService};
use super::split::split;
use crate::domain::{Domain, until};

/// How long a connection may go without beginning a request, once over: one that never began any is cut off, which
/// bounds slow heads; an idle one is told goodbye. Longer than the 60 s for which proxies commonly keep theirs.
const PATIENCE: Duration = Duration::from_secs(75);

/// The connections of a server.
pub(super) struct Connections {
    service: WorkerService,
    http: Arc<auto::Builder<TokioExecutor>>,
    domain: Domain,
    open: Arc<Open>,
}

#[derive(Default)]
struct Open {
    connections: Mutex<Table>,
    /// Told when the last one is gone.
    empty: Notify,
}

#[derive(Default)]
struct Table {
    open: HashMap<u64, Arc<Vitals>>,
    next: u64,
}

/// One connection, seen from outside its task.
#[derive(Default)]
struct Vitals {
    /// Requests begun so far.
    begun: AtomicU64,
    /// The count at the last look.
    seen: AtomicU64,
    /// The strongest [`Nudge`] so far.
    nudge: AtomicU8,
    /// Stays when it is used: what is told later has to be heard as well.
    task: Mutex<Option<Waker>>,
}

/// What a connection is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Nudge {
    Nothing,
    /// Finish what was begun, then close.
    Goodbye,
    /// Close now.
    End,
}

impl Connections {
    pub(super) fn new(service: WorkerService, domain: Domain) -> Self {
        let mut http = auto::Builder::new(TokioExecutor::new());
        // Head and body in one buffer and one plain write: for the small answers that instances give, gathering them
        // costs more than the copy does. `split` bounds what is copied at once.
        http.http1().writev(false);
        http.http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(20))
            .enable_connect_protocol();
        Self {
            service,
            http: Arc::new(http),
            domain,
            open: Arc::default(),
        }
    }

    /// Serves one connection in a task of its own.
    pub(super) fn serve(&self, stream: TcpStream) {
        // Answers are small and whole; waiting to fill a packet only delays them. Where it cannot be set they are slower.
        let _ = stream.set_nodelay(true);
        let registered = Registered::new(&self.open);
        let service = Counted {
            service: self.service.clone(),
            vitals: Arc::clone(&registered.vitals),
        };
        let http = Arc::clone(&self.http);
        self.domain.spawn(async move {
            let connection = http.serve_connection_with_upgrades(TokioIo::new(stream), service);
            let mut connection = pin!(connection);
            let mut heard = Nudge::Nothing;
            let mut is_listening = false;
            poll_fn(|cx| {
                // Once is enough: the connection never leaves its task.
                if !std::mem::replace(&mut is_listening, true) {
                    registered.vitals.listen(cx);
                }
                loop {
                    // One that breaks off is its client's affair; its handlers run to their ends.
                    if connection.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(());
                    }
                    match registered.vitals.hear(&mut heard) {
                        Nudge::Nothing => return Poll::Pending,
                        Nudge::Goodbye => connection.as_mut().graceful_shutdown(),
                        Nudge::End => return Poll::Ready(()),
                    }
                }
            })
            .await;
        });
    }

    /// Ends connections on which nothing has begun for too long. Never returns.
    pub(super) async fn watch(&self) {
        loop {
            self.domain.sleep(PATIENCE).await;
            self.open.each(|vitals| {
                let begun = vitals.begun.load(Ordering::Relaxed);
                if vitals.seen.swap(begun, Ordering::Relaxed) == begun {
                    vitals.tell(if begun == 0 {
                        Nudge::End
                    } else {
                        Nudge::Goodbye
                    });
                }
            });
        }
    }

    /// Lets every connection finish what it has begun, and cuts off what is left after `patience`.
    pub(super) async fn say_goodbye(&self, patience: Duration) {
        self.open.each(|vitals| vitals.tell(Nudge::Goodbye));
        if self
            .domain
            .timeout(patience, self.open.wait_empty())
            .await
            .is_err()
        {
            tracing::warn!(target: "pinned::worker", "cutting off connections that did not end");
            self.open.each(|vitals| vitals.tell(Nudge::End));
        }
    }
}

impl Drop for Connections {
    /// A server that is given up takes its connections along; nobody watches them any more.
    fn drop(&mut self) {
        self.open.each(|vitals| vitals.tell(Nudge::End));
    }
}

impl Open {
    fn each(&self, tell: impl FnMut(&Arc<Vitals>)) {
        self.connections.lock().open.values().for_each(tell);
    }

    async fn wait_empty(&self) {
        until(&self.empty, || self.connections.lock().open.is_empty()).await;
    }
}

impl Vitals {
    /// From here on the task of `cx` is woken by whatever is told.
    fn listen(&self, cx: &Context<'_>) {
        *self.task.lock() = Some(cx.waker().clone());
    }

    fn tell(&self, nudge: Nudge) {
        if self.nudge.fetch_max(nudge as u8, Ordering::AcqRel) < nudge as u8
            && let Some(task) = &*self.task.lock()
        {
            task.wake_by_ref();
        }
    }

    /// What has been told since `heard`.
    fn hear(&self, heard: &mut Nudge) -> Nudge {
        let told = match self.nudge.load(Ordering::Acquire) {
            0 => Nudge::Nothing,
            1 => Nudge::Goodbye,
            _ => Nudge::End,
        };
        if told > *heard {
            *heard = told;
            told
        } else {
            Nudge::Nothing
        }
    }
}

/// A connection's place in the table, for as long as its task lives.
struct Registered {
    open: Arc<Open>,
    key: u64,
    vitals: Arc<Vitals>,
}

impl Registered {
    fn new(open: &Arc<Open>) -> Self {
        let vitals = Arc::<Vitals>::default();
        let mut table = open.connections.lock();
        let key = table.next;
        table.next += 1;
        table.open.insert(key, Arc::clone(&vitals));
        drop(table);
        Self {
            open: Arc::clone(open),
            key,
            vitals,
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut table = self.open.connections.lock();
        table.open.remove(&self.key);
        let is_empty = table.open.is_empty();
        drop(table);
        if is_empty {
            self.open.empty.notify_waiters();
        }
    }
}

/// The service of one connection.
struct Counted {
    service: WorkerService,
    vitals: Arc<Vitals>,
}

impl Service<Request<Incoming>> for Counted {
    type Response = <WorkerService as Service<Request<Incoming>>>::Response;
    type Error = <WorkerService as Service<Request<Incoming>>>::Error;
    type Future = Splitting;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        // Only the connection's own task writes it.
        let begun = self.vitals.begun.load(Ordering::Relaxed);
        self.vitals.begun.store(begun + 1, Ordering::Relaxed);
        Splitting(self.service.call(request))
    }
}

/// The answer on one connection.
struct Splitting(WorkerAnswer);

impl Future for Splitting {
    type Output = <WorkerAnswer as Future>::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.get_mut().0);
        answer.poll(cx).map_ok(split)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_connection_that_was_told_goodbye_hears_that_it_has_to_end() {
        let (vitals, woken) = (Vitals::default(), Arc::<Woken>::default());
        let waker = Waker::from(Arc::clone(&woken));
        vitals.listen(&Context::from_waker(&waker));
        let mut heard = Nudge::Nothing;
        for (times, nudge) in [(1, Nudge::Goodbye), (2, Nudge::End)] {
            // Twice is as good as once.
            vitals.tell(nudge);
            vitals.tell(nudge);
            assert_eq!(woken.0.load(Ordering::Relaxed), times);
            assert_eq!(vitals.hear(&mut heard), nudge);
        }
    }
}
