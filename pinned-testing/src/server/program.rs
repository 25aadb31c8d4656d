//! Running programs from asynchronous tests.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tokio::task::spawn_blocking;

pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Runs a program to its end and gives what it has printed.
pub(crate) fn complete(mut command: Command) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    assert!(
        output.status.success(),
        "{program} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first folder that has all of these programs: of those on `PATH`, then of `more`.
pub(crate) fn folder_with(
    programs: &[&str],
    more: impl IntoIterator<Item = PathBuf>,
) -> Option<PathBuf> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&on_path)
        .chain(more)
        .find(|folder| programs.iter().all(|name| folder.join(name).is_file()))
}
