//! Doing what was typed.

use std::future::Future;
use std::io::Write;
use std::sync::Arc;

use pinned_domain::Domain;
use pinned_wire::registry::{Deadline, WindDownOrder};
use serde_json::Value;

use super::remote::Node;
use super::{CliError, Command, Remote, events, facts, orders, stats, workers};
use crate::upstream::Fetcher;

/// What a command works with.
pub struct World {
    /// Makes its requests.
    pub fetcher: Arc<dyn Fetcher>,
    /// Its clocks.
    pub domain: Domain,
}

/// Does what `command` says, and prints what came of it to `out`; ends a command that goes on by itself at `interrupt`.
///
/// # Errors
///
/// It came to nothing; the error says what to do.
///
/// # Cancel safety
///
/// An order may have been given.
pub async fn run(
    command: Command,
    remote: &Remote,
    world: World,
    interrupt: impl Future<Output = ()>,
    out: &mut (dyn Write + Send),
) -> Result<(), CliError> {
    let node = Node::new(remote, world.fetcher)?;
    let now = world.domain.now();
    let (answer, text) = match command {
        Command::Events { follow, after } => {
            let domain = &world.domain;
            return events::show(&node, after, follow, remote.json, domain, interrupt, out).await;
        }
        Command::Workers => {
            read(&node, "/registry/workers", |answer| {
                workers::show(answer, now)
            })
            .await?
        }
        Command::Stats => read(&node, "/registry/stats", |answer| stats::show(answer, now)).await?,
        Command::Health => read(&node, "/registry/health", facts::show).await?,
        Command::Overview => read(&node, "/registry/overview", facts::show).await?,
        Command::Drain {
            client_id,
            deadline,
        } => orders::drain(&node, client_id, deadline).await?,
        Command::Undrain { client_id } => orders::undrain(&node, client_id).await?,
        Command::WindDown {
            namespace,
            id,
            deadline,
            revoke,
            env,
        } => {
            let deadline = Deadline((!revoke).then_some(deadline));
            let order = WindDownOrder {
                namespace,
                id,
                deadline,
                env,
            };
            orders::wind_down(&node, order).await?
        }
    };
    if remote.json {
        writeln!(out, "{answer:#}")?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    Ok(out.flush()?)
}

async fn read(
    node: &Node,
    path: &str,
    show: impl FnOnce(&Value) -> String,
) -> Result<(Value, String), CliError> {
    let answer = node.get(path, None).await?;
    let text = show(&answer);
    Ok((answer, text))
}
