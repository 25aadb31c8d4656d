//! Programs of other packages, also for the tests of fleets (`tests/fleet`).

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The path of a program of another package of the workspace, which is built first.
pub(crate) fn executable(package: &str, name: &str) -> PathBuf {
    let build = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package, "--bin", name])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(build.status.success(), "{name} of {package} does not build");
    String::from_utf8(build.stdout)
        .expect("cargo writes UTF-8")
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| Some(message["executable"].as_str()?.into()))
        .expect("cargo names the executable")
}
