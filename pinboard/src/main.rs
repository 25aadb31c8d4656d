//! The program `pinboard`: a node of the control plane, and the commands that operate a fleet of them.

use std::error::Error as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use pinboard::cli::{self, Cli, CliError, Command, Remote};
use pinboard::config::{Config, World, raise_open_files};
use pinboard::logs::{self, StartBlock};
use pinboard::node::StartError;
use pinboard::upstream::HttpFetcher;
use pinboard::{Pinboard, metrics, scanner};
use pinned_domain::Domain;
use tokio::runtime;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often what histograms have gathered is sorted in, when nobody reads them.
const UPKEEP: Duration = Duration::from_secs(5);
/// From an answer of memory to one that took too long.
const SECONDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

fn main() -> ExitCode {
    let cli = Cli::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let domain = Domain::real();
    // Requests are served by threads of their own.
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match (runtime, cli.command) {
        (Err(error), _) => Err(format!("cannot start: {error}")),
        (Ok(runtime), Some(command)) => runtime.block_on(operate(command, &cli.remote, domain)),
        (Ok(runtime), None) => runtime.block_on(serve(domain)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            // Where nobody reads it, the code says it.
            let _ = writeln!(io::stderr(), "pinboard: {line}");
            ExitCode::FAILURE
        }
    }
}

async fn operate(command: Command, remote: &Remote, domain: Domain) -> Result<(), String> {
    let world = cli::World {
        fetcher: Arc::new(HttpFetcher::new(domain.clone())),
        domain,
    };
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let mut out = io::stdout();
    match cli::run(command, remote, world, interrupt, &mut out).await {
        Err(error) if !CliError::is_broken_pipe(&error) => Err(error.to_string()),
        _ => Ok(()),
    }
}

async fn serve(domain: Domain) -> Result<(), String> {
    let config = Config::load(&World {
        domain: domain.clone(),
        fetcher: Arc::new(HttpFetcher::new(domain.clone())),
        open_files: raise_open_files(),
    })
    .map_err(|error| error.to_string())?;
    logs::install(config.log_filter.clone());
    let prometheus = recorder()?;
    // From here on a signal ends the node in good order.
    let mut signals =
        Terminations::listen().map_err(|error| format!("cannot listen for signals: {error}"))?;

    let rendered = prometheus.clone();
    let serving = Pinboard::builder()
        .config(&config)
        .domain(domain.clone())
        .metrics(move || rendered.render())
        .listen(config.listen)
        .map_err(|error| explain(&error, &config))?;
    if config.is_dev() {
        tracing::warn!(
            "DEV MODE: placements are forgotten when this process ends, and no other node shares them; set REDIS_URL for a fleet"
        );
    }
    let address = serving.address();
    tracing::info!(%address, store = serving.store(), version = env!("CARGO_PKG_VERSION"), "serving");
    let block = StartBlock::new(&config, address, serving.store());
    let _ = write!(io::stderr(), "{block}");

    let upkeep = domain.spawn({
        let domain = domain.clone();
        async move {
            loop {
                domain.sleep(UPKEEP).await;
                prometheus.run_upkeep();
            }
        }
    });
    let pinboard = tokio::select! {
        ready = serving.ready() => ready.map_err(|error| explain(&error, &config))?,
        // Nothing has begun that would have to be ended.
        _ = signals.next() => return Ok(()),
    };
    tracing::info!(%address, "ready");
    signals.next().await;
    tracing::info!("stopping");
    tokio::select! {
        () = pinboard.shutdown() => {}
        signal = signals.next() => {
            tracing::warn!(signal, "ended by a second signal");
            std::process::exit(128 + signal);
        }
    }
    upkeep.abort();
    tracing::info!("stopped");
    Ok(())
}

/// The recorder of all metrics, from here on.
fn recorder() -> Result<PrometheusHandle, String> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| format!("cannot count anything: {error}"))?;
    metrics::describe();
    scanner::describe();
    Ok(handle)
}

/// What to do about a node that did not start.
fn explain(error: &StartError, config: &Config) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(&format!(": {error}"));
        cause = error.source();
    }
    match error {
        StartError::Listen(_) => {
            format!("{line} on {}; PORT and BIND say where", config.listen)
        }
        StartError::Store(_) => format!("{line}; REDIS_URL says which"),
        _ => line,
    }
}

/// SIGTERM and SIGINT, from its making on.
struct Terminations {
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
}

impl Terminations {
    /// Takes both signals over from their default, which ends the process.
    fn listen() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one's number.
    #[cfg(unix)]
    async fn next(&mut self) -> i32 {
        let kind = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        };
        kind.as_raw_value()
    }

    /// The next one's number.
    #[cfg(not(unix))]
    async fn next(&mut self) -> i32 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        2
    }
}
