//! The programs of Redis.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::RedisOptions;
use crate::server::{Folder, Guarded, Served, folder_with};

/// The index in [`MARKS`] that says that every slot is served, as far as a node of a cluster knows.
pub(super) const CLUSTER_OK: usize = 1;
const MARKS: &[&str] = &[
    "Ready to accept connections",
    "Cluster state changed: ok",
    "Cluster state changed: fail",
];

/// How long a node of a cluster may be silent until the others take it for failed, in milliseconds. Short, because tests
/// wait for it, and longer than a busy machine keeps a process from running.
const NODE_TIMEOUT: &str = "2000";

/// Where the programs are.
pub(super) fn binaries() -> PathBuf {
    folder_with(&["redis-server", "redis-cli"], [])
        .expect("`redis-server` is not on PATH; install the package `redis-server` (Debian)")
}

/// A server that is yet to be started with `--port` and, as a node of a cluster, `--cluster-port`.
pub(super) fn guarded(binaries: &Path, options: RedisOptions, in_cluster: bool) -> Guarded {
    let folder = Folder::make("redis");
    let mut command: Vec<OsString> = vec![
        binaries.join("redis-server").into(),
        "--bind".into(),
        "127.0.0.1".into(),
        "--dir".into(),
        folder.path().into(),
    ];
    command.extend(options.persistence.arguments().iter().map(Into::into));
    if in_cluster {
        let cluster = [
            ["--cluster-enabled", "yes"],
            ["--cluster-announce-ip", "127.0.0.1"],
            ["--cluster-node-timeout", NODE_TIMEOUT],
        ];
        command.extend(cluster.iter().flatten().map(Into::into));
    }
    let mut shell = Command::new("/bin/sh");
    shell.current_dir(folder.path()).env("LC_ALL", "C");
    let served = Served {
        name: "Redis",
        shell,
        command,
        ending: "KILL",
        marks: MARKS,
    };
    Guarded::new(folder, served)
}
