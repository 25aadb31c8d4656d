//! The servers that can be put under load, each a process of its own.

use std::{
    env, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    str::FromStr,
    thread,
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, runtime};

use crate::{Result, baseline, cores::Cores, load::Load, pinned_server};

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A kind of server. All of them answer `POST /counters/{id}/increment` with the new count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// [`baseline::axum_server`].
    Axum,
    /// [`baseline::hyper_server`].
    Hyper,
    /// pinned, straight behind hyper: `PinnedWorker::serve`.
    Pinned,
    /// pinned behind axum: `PinnedWorker::into_router`.
    PinnedRouter,
    /// The Python edition under uvicorn, from `peers/python`.
    Python,
    /// A Durable Object on workerd, from `peers/workerd`.
    Workerd,
    /// [`pinned_server`]'s durable counter on SQLite, in a folder.
    PinnedDurable,
    /// A Durable Object that stores its count, in a folder, from `peers/workerd`.
    WorkerdDurable,
}

impl Role {
    const ALL: [Self; 8] = [
        Self::Axum,
        Self::Hyper,
        Self::Pinned,
        Self::PinnedRouter,
        Self::Python,
        Self::Workerd,
        Self::PinnedDurable,
        Self::WorkerdDurable,
    ];

    /// The name that selects it on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Axum => "axum",
            Self::Hyper => "hyper",
            Self::Pinned => "pinned",
            Self::PinnedRouter => "pinned-router",
            Self::Python => "python",
            Self::Workerd => "workerd",
            Self::PinnedDurable => "pinned-durable",
            Self::WorkerdDurable => "workerd-durable",
        }
    }

    /// The script that runs it, for a peer; the others run in this program.
    fn script(self) -> Option<PathBuf> {
        let script = match self {
            Self::Python => "python/run.sh",
            Self::Workerd => "workerd/run.sh",
            Self::WorkerdDurable => "workerd/durable.sh",
            Self::Axum | Self::Hyper | Self::Pinned | Self::PinnedRouter | Self::PinnedDurable => {
                return None;
            }
        };
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        Some(peers.join(script))
    }

    /// Serves on `port` of 127.0.0.1 in this process, until it is killed. A durable server keeps its state in `folder`.
    ///
    /// # Errors
    /// When the port cannot be bound, for a durable server without a folder, or for a peer, which this program does not
    /// contain.
    pub fn serve(self, port: u16, folder: Option<&Path>) -> Result<()> {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(async {
                match self {
                    Self::Axum => baseline::axum_server(TcpListener::bind(addr).await?).await?,
                    Self::Hyper => baseline::hyper_server(TcpListener::bind(addr).await?).await?,
                    Self::Pinned => pinned_server::serve(TcpListener::bind(addr).await?).await?,
                    Self::PinnedRouter => {
                        pinned_server::serve_router(TcpListener::bind(addr).await?).await?;
                    }
                    Self::PinnedDurable => {
                        let folder = folder.ok_or("it needs a folder to keep its state in")?;
                        let listener = TcpListener::bind(addr).await?;
                        pinned_server::serve_durable(listener, folder).await?;
                    }
                    Self::Python | Self::Workerd | Self::WorkerdDurable => {
                        return Err(format!("{} has a program of its own", self.name()).into());
                    }
                }
                Ok(())
            })
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|role| role.name() == name)
            .ok_or_else(|| format!("no server is called {name:?}; there are {}", known()))
    }
}

/// Serves if this process was started by [`Server::start`]. Every bench's `main` asks this first.
///
/// # Errors
/// As [`Role::serve`].
pub fn serve_if_started_as_server() -> Result<bool> {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() != Some("serve") {
        return Ok(false);
    }
    let (Some(role), Some(port)) = (arguments.next(), arguments.next()) else {
        return Err("usage: serve ROLE PORT [FOLDER]".into());
    };
    let folder = arguments.next().map(PathBuf::from);
    role.parse::<Role>()?
        .serve(port.parse()?, folder.as_deref())?;
    Ok(true)
}

/// A running server process; it is killed when this is dropped.
pub struct Server {
    role: Role,
    addr: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts a server on a free port and returns once it answers.
    ///
    /// # Errors
    /// When the process cannot be started, ends early, or does not answer within a minute.
    pub fn start(role: Role, cores: &Cores) -> Result<Self> {
        Self::launch(role, cores, None)
    }

    /// As [`Server::start`], for a server that keeps its state in `folder`.
    ///
    /// # Errors
    /// As there.
    pub fn start_in(role: Role, cores: &Cores, folder: &Path) -> Result<Self> {
        Self::launch(role, cores, Some(folder))
    }

    fn launch(role: Role, cores: &Cores, folder: Option<&Path>) -> Result<Self> {
        let addr = free_address()?;
        let mut command = match role.script() {
            Some(script) => cores.server_command(script),
            None => {
                let mut command = cores.server_command(env::current_exe()?);
                command.args(["serve", role.name()]);
                command
            }
        };
        let child = command
            .arg(addr.port().to_string())
            .args(folder)
            .stdin(Stdio::null())
            .spawn()?;
        let mut server = Self { role, addr, child };
        server.wait_until_it_answers()?;
        Ok(server)
    }

    /// What kind of server it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let probe = Load::increments(self.addr, 1, ["probe".to_owned()]);
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if probe.run_once().is_ok_and(|report| report.failed() == 0) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{} ended with {status}", self.role.name()).into());
            }
            if Instant::now() >= deadline {
                return Err(format!("{} does not answer", self.role.name()).into());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that was free a moment ago: peers take a port and cannot tell which one they chose.
fn free_address() -> io::Result<SocketAddr> {
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
