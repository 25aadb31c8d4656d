//! What can be typed.

use std::ffi::OsString;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use pinned_wire::ids::{invalid_id_reason, invalid_namespace_reason};
use pinned_wire::registry::{LONGEST_DEADLINE, Secret};
use url::Url;

use crate::config::VARIABLES;

const DEFAULT_URL: &str = "http://127.0.0.1:8080";
/// What makes no sense without a subcommand.
const REMOTE_ARGS: [&str; 3] = ["url", "token", "json"];

/// The control plane of pinned: a registry of workers, and the proxy that sends each request to the one that holds its id.
///
/// Without a command it serves, and takes its settings from the environment. The commands operate a fleet that runs, over the HTTP API
/// of any of its nodes.
#[derive(Debug, Parser)]
#[command(name = "pinboard", version, after_long_help = environment())]
pub struct Cli {
    /// Which fleet.
    #[command(flatten)]
    pub remote: Remote,
    /// What to do; to serve, when nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Which fleet a command goes to, and how its answer is shown.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of commands")]
pub struct Remote {
    /// The URL of a node of the fleet
    #[arg(long, global = true, env = "PINBOARD_URL", default_value = DEFAULT_URL, value_parser = url)]
    pub url: Url,
    /// The token of a key with the scope pinboard:operator; better set in the environment, where others do not see it
    #[arg(long, global = true, env = "PINBOARD_OPERATOR_TOKEN", hide_env_values = true, value_parser = token)]
    pub token: Option<Secret>,
    /// Print what the server answered, for programs
    #[arg(long, global = true)]
    pub json: bool,
}

/// One thing to do to a running fleet.
#[derive(Clone, Debug, PartialEq, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// List the workers: what they serve, where, and how they are
    Workers,
    /// Ask every worker what lives there
    Stats,
    /// Show how the asked node is: its counters, its store, its connections
    Health,
    /// Count what there is in the fleet
    Overview,
    /// Show the latest thousand events of the control plane
    Events {
        /// Go on showing events as they happen, until interrupted
        #[arg(short, long)]
        follow: bool,
        /// Only events after this number
        #[arg(long, value_name = "SEQ", default_value_t = 0)]
        after: u64,
    },
    /// Take a worker out of placement: cordon it, or have it empty by a deadline
    Drain {
        /// The worker, as `pinboard workers` lists it
        client_id: String,
        /// When it must be empty, in seconds from now; without one it is cordoned: no new ids, and what it has may finish
        #[arg(long, value_name = "SECONDS", value_parser = seconds)]
        deadline: Option<Duration>,
    },
    /// Put a worker back into placement
    Undrain {
        /// The worker, as it was drained
        client_id: String,
    },
    /// Ask the holder of one id, or of every id of a namespace, to let go
    WindDown {
        /// The namespace, with or without its slash
        #[arg(value_name = "NS", value_parser = namespace)]
        namespace: String,
        /// One id; every id of the namespace without it
        #[arg(value_parser = id)]
        id: Option<String>,
        /// When they must have let go, in seconds from now; anything below the lease time counts as that
        #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0", conflicts_with = "revoke")]
        deadline: Duration,
        /// Take such a request back
        #[arg(long)]
        revoke: bool,
        /// The environment of the ids, in hostname-aware mode
        #[arg(long)]
        env: Option<String>,
    },
}

impl Cli {
    /// Reads a command line, the name of the program first.
    ///
    /// # Errors
    ///
    /// It cannot be understood, or asks for help: [`clap::Error::exit`] says so and ends the process as it should.
    pub fn read<T>(args: impl IntoIterator<Item = T>) -> Result<Self, clap::Error>
    where
        T: Into<OsString> + Clone,
    {
        let matches = Self::command().try_get_matches_from(args)?;
        let cli = Self::from_arg_matches(&matches)?;
        match REMOTE_ARGS.iter().find(|arg| typed(&matches, arg)) {
            // Set in the environment they are for whoever comes to need them.
            Some(arg) if cli.command.is_none() => Err(Self::command().error(
                clap::error::ErrorKind::MissingSubcommand,
                format!("--{arg} goes with a command; pinboard alone serves, and is set up by the environment"),
            )),
            _ => Ok(cli),
        }
    }
}

fn typed(matches: &ArgMatches, arg: &str) -> bool {
    matches.value_source(arg) == Some(ValueSource::CommandLine)
}

fn url(text: &str) -> Result<Url, String> {
    let text = match text.trim() {
        "" => DEFAULT_URL,
        text => text,
    };
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(
            "a URL such as http://127.0.0.1:8080 or https://pinboard.example.com is expected"
                .to_owned(),
        );
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "a URL without a user or password is expected; --token is what identifies you"
                .to_owned(),
        );
    }
    Ok(url)
}

/// Takes anything: an error of the parser would show it.
#[expect(clippy::unnecessary_wraps, reason = "the shape that clap asks for")]
fn token(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text.trim()))
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|deadline| *deadline <= LONGEST_DEADLINE)
        .ok_or_else(|| {
            format!(
                "seconds from 0 to {} are expected",
                LONGEST_DEADLINE.as_secs()
            )
        })
}

fn namespace(text: &str) -> Result<String, &'static str> {
    let namespace = match text.strip_prefix('/') {
        Some(_) => text.to_owned(),
        None => format!("/{text}"),
    };
    invalid_namespace_reason(&namespace).map_or(Ok(namespace), Err)
}

fn id(text: &str) -> Result<String, &'static str> {
    invalid_id_reason(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// The variables, for the long help.
fn environment() -> String {
    let mut text = "Environment of a node that serves:\n".to_owned();
    for variable in VARIABLES {
        text.push_str(&format!(
            "  {}\n          {}\n          takes {}\n          [default: {}]\n\n",
            variable.name, variable.about, variable.takes, variable.default
        ));
    }
    text.push_str(
        "Where one is empty, it counts as unset. The whole reference is docs/pinboard.md.",
    );
    text
}
