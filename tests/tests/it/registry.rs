//! What the linker keeps: the struct of the binary itself, that of a library of which one other item is used, and
//! that of a library of which nothing is used but for `pinned::link!`.
//!
//! Each profile is a build of its own; the artefacts stay in the target folder, so that only the first run is slow.

use std::process::{Command, Stdio};

/// The namespaces that `src/bin/registry.rs` finds when it is built with `options`.
fn namespaces(options: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "tests", "--bin", "registry"])
        .args(options)
        .env_remove("PINBOARD_URL")
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "the program built with {options:?} failed"
    );
    let found = String::from_utf8(output.stdout).expect("namespaces are text");
    found.lines().map(str::to_owned).collect()
}

const ALL: [&str; 3] = ["/own", "/unused", "/used"];

#[test]
fn every_struct_is_found_in_a_debug_build() {
    assert_eq!(namespaces(&[]), ALL);
}

#[test]
fn every_struct_is_found_in_a_release_build() {
    assert_eq!(namespaces(&["--release"]), ALL);
}

#[test]
fn every_struct_is_found_after_fat_lto_in_one_codegen_unit() {
    let profile = [
        "--config",
        "profile.one-unit.inherits='release'",
        "--config",
        "profile.one-unit.lto='fat'",
        "--config",
        "profile.one-unit.codegen-units=1",
        "--profile",
        "one-unit",
    ];
    assert_eq!(namespaces(&profile), ALL);
}
