//! Threads that each serve clients of their own.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use super::{Server, socket};

/// Threads that each serve clients of their own, with a runtime, a listener and connections to workers that no other thread
/// touches.
///
/// They end with the server: await [`Lifecycle::ended`](super::Lifecycle::ended), and then [`join`](Self::join).
pub struct Lanes {
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl Lanes {
    /// Binds `address` and starts a thread for each lane of `server`. Port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or there can be no threads.
    pub fn start(server: &Server, address: SocketAddr) -> io::Result<Self> {
        let listeners = socket::listen(address, server.lanes())?;
        let address = listeners[0].local_addr()?;
        let lanes = listeners
            .into_iter()
            .map(|listener| {
                Ok((
                    Builder::new_current_thread().enable_all().build()?,
                    listener,
                ))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let threads = lanes
            .into_iter()
            .enumerate()
            .map(|(lane, (runtime, listener))| {
                let server = server.clone();
                thread::Builder::new()
                    .name(format!("pinboard-lane-{lane}"))
                    .spawn(move || run(&server, lane, &runtime, listener))
            })
            .collect::<io::Result<Vec<_>>>();
        match threads {
            Ok(threads) => Ok(Self { address, threads }),
            Err(error) => {
                // Those that have started.
                server.stop_now();
                Err(error)
            }
        }
    }

    /// Where they listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the threads to end. Blocks; they end once the server has stopped.
    pub fn join(self) {
        for thread in self.threads {
            // What has gone wrong in it was said there.
            let _ = thread.join();
        }
    }
}

fn run(server: &Server, lane: usize, runtime: &Runtime, listener: std::net::TcpListener) {
    let serving = runtime.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        server.serve(lane, listener).await
    });
    if let Err(error) = serving {
        tracing::error!(target: "pinboard::server", lane, %error, "a lane has ended");
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes")
            .field("address", &self.address)
            .field("threads", &self.threads.len())
            .finish()
    }
}
