//! A proxy between a store and its server that sees every statement, and does to it what a test says.

use std::net::Ipv4Addr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};

use pinned_testing::{Gate, PostgresServer};

/// What becomes of a statement.
pub(crate) enum Fate {
    Pass,
    /// The connection breaks in both directions, before the server sees the statement.
    Cut,
    /// The server never sees it, and the client never hears of it.
    Hang,
    /// The server sees it once the gate is open.
    Hold(Gate),
}

/// A statement on its way.
pub(crate) struct Statement<'a> {
    /// The connection's number, from 0 in the order of dialling.
    pub(crate) connection: usize,
    pub(crate) text: &'a str,
}

type Plan = Box<dyn FnMut(Statement<'_>) -> Fate + Send>;

/// Ends with the runtime of its test.
pub(crate) struct Proxy {
    pub(crate) dsn: String,
    shared: Arc<Shared>,
}

struct Shared {
    plan: Mutex<Plan>,
    seen: Mutex<Vec<(usize, String)>>,
    dialled: Mutex<usize>,
}

impl Proxy {
    /// Stands before the database of `dsn`, which is of the shared server.
    pub(crate) async fn before(dsn: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let server = PostgresServer::shared().await.port();
        let shared = Arc::new(Shared {
            plan: Mutex::new(Box::new(|_| Fate::Pass)),
            seen: Mutex::default(),
            dialled: Mutex::default(),
        });
        tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await;
                    let server = server.expect("the server listens");
                    tokio::spawn(carry(Arc::clone(&shared), client, server));
                }
            }
        });
        let dsn = dsn.replace(&format!(":{server}/"), &format!(":{port}/"));
        Self { dsn, shared }
    }

    /// From now on this decides.
    pub(crate) fn plan(&self, plan: impl FnMut(Statement<'_>) -> Fate + Send + 'static) {
        *self.shared.plan.lock() = Box::new(plan);
    }

    /// How many connections were dialled.
    pub(crate) fn dialled(&self) -> usize {
        *self.shared.dialled.lock()
    }

    /// Forgets what was seen.
    pub(crate) fn forget(&self) {
        self.shared.seen.lock().clear();
    }

    /// The first words of each statement since, in order.
    pub(crate) fn seen(&self) -> Vec<String> {
        let seen = self.shared.seen.lock();
        let words = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().take(2).collect();
            words.join(" ")
        };
        seen.iter().map(|(_, text)| words(text)).collect()
    }

    /// How many of those begin like this.
    pub(crate) fn count(&self, beginning: &str) -> usize {
        let seen = self.shared.seen.lock();
        seen.iter()
            .filter(|(_, text)| text.starts_with(beginning))
            .count()
    }
}

async fn carry(shared: Arc<Shared>, client: TcpStream, server: TcpStream) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let forth = async {
        let mut connection = None;
        while let Some((kind, frame)) = frame(&mut from_client, connection.is_none()).await {
            let connection = *connection.get_or_insert_with(|| {
                let mut dialled = shared.dialled.lock();
                // A request to cancel is no session.
                let session = frame.get(4..8) != Some(&80_877_102_u32.to_be_bytes());
                *dialled += usize::from(session);
                *dialled - 1
            });
            if let Some(text) = statement(kind, &frame) {
                let fate = (shared.plan.lock())(Statement {
                    connection,
                    text: &text,
                });
                match fate {
                    Fate::Cut => return,
                    Fate::Hang => {
                        while from_client.read_u8().await.is_ok() {}
                        return;
                    }
                    Fate::Hold(gate) => gate.pass().await,
                    Fate::Pass => {}
                }
                shared.seen.lock().push((connection, text));
            }
            if to_server.write_all(&frame).await.is_err() {
                return;
            }
        }
    };
    let back = async {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    };
    tokio::select! {
        () = forth => {}
        () = back => {}
    }
}

/// The next message of a client, whole; the first has no kind.
async fn frame(client: &mut OwnedReadHalf, first: bool) -> Option<(u8, Vec<u8>)> {
    let kind = if first {
        0
    } else {
        client.read_u8().await.ok()?
    };
    let length = client.read_u32().await.ok()?;
    let mut frame = if first { vec![] } else { vec![kind] };
    frame.extend_from_slice(&length.to_be_bytes());
    let start = frame.len();
    frame.resize(start + usize::try_from(length).ok()?.checked_sub(4)?, 0);
    client.read_exact(&mut frame[start..]).await.ok()?;
    Some((kind, frame))
}

/// The SQL of a simple query, or of one that is parsed.
fn statement(kind: u8, frame: &[u8]) -> Option<String> {
    let mut texts = frame.get(5..)?.split(|byte| *byte == 0);
    let text = match kind {
        b'Q' => texts.next()?,
        // After the name.
        b'P' => texts.nth(1)?,
        _ => return None,
    };
    Some(String::from_utf8_lossy(text).into_owned())
}
