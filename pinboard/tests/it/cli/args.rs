//! What can be typed, and what is said of the rest.

use std::time::Duration;

use clap::error::ErrorKind;
use pinboard::cli::{Cli, Command};
use pinboard::config::VARIABLES;

fn read(line: &[&str]) -> Result<Cli, clap::Error> {
    Cli::read(["pinboard"].iter().chain(line).copied())
}

fn refused(line: &[&str]) -> clap::Error {
    let error = read(line).map(|_| ()).expect_err("a mistake");
    assert_eq!(error.exit_code(), 2, "{line:?}");
    error
}

// P1.2
#[test]
fn alone_it_serves() {
    assert!(read(&[]).expect("nothing").command.is_none());
    for arg in [&["--json"][..], &["--url", "http://h"], &["--token", "t"]] {
        let error = refused(arg);
        assert!(error.to_string().contains("goes with a command"), "{error}");
    }
}

// P1.2
#[test]
fn every_command_is_understood_with_its_options_on_either_side() {
    for line in [
        "workers",
        "stats",
        "health",
        "overview",
        "events",
        "events --follow --after 7",
        "drain c-1",
        "drain c-1 --deadline 30",
        "undrain c-1",
        "wind-down /rooms",
        "wind-down rooms blue --deadline 1.5",
        "wind-down rooms blue --revoke",
        "wind-down rooms blue --env staging",
    ] {
        for whole in [format!("--json {line}"), format!("{line} --json")] {
            let words: Vec<&str> = whole.split(' ').collect();
            let cli = read(&words).expect(&whole);
            assert!(cli.command.is_some() && cli.remote.json, "{whole}");
        }
    }
}

// P1.2
#[test]
fn namespaces_ids_and_deadlines_are_checked_before_anything_is_sent() {
    let cli = read(&["wind-down", "rooms", "blue", "--deadline", "1.5"]).expect("a command");
    let expected = Command::WindDown {
        namespace: "/rooms".to_owned(),
        id: Some("blue".to_owned()),
        deadline: Duration::from_millis(1500),
        revoke: false,
        env: None,
    };
    assert_eq!(cli.command, Some(expected));
    for line in [
        &["wind-down"][..],
        &["wind-down", "a/b"],
        &["wind-down", "rooms", ".."],
        &["wind-down", "rooms", "a b"],
        &["wind-down", "rooms", "--deadline", "-1"],
        &["wind-down", "rooms", "--deadline", "1", "--revoke"],
        &["drain"],
        &["drain", "c", "--deadline", "NaN"],
        &["drain", "c", "--deadline", "inf"],
        &["drain", "c", "--deadline", "1e300"],
        &["drain", "c", "--deadline", "soon"],
        &["workers", "--url", "ftp://h"],
        &["workers", "--url", "h:8080"],
        &["workers", "--url", "http://user:pw@h"],
        &["workres"],
    ] {
        refused(line);
    }
}

// P1.2
#[test]
fn the_help_names_every_command_and_variable() {
    let help = read(&["--help"]).map(|_| ()).expect_err("help");
    assert_eq!((help.kind(), help.exit_code()), (ErrorKind::DisplayHelp, 0));
    let help = help.to_string();
    for word in [
        "workers",
        "stats",
        "health",
        "overview",
        "events",
        "drain",
        "undrain",
        "wind-down",
        "--url",
        "--token",
        "--json",
        "PINBOARD_URL",
        "PINBOARD_OPERATOR_TOKEN",
    ] {
        assert!(help.contains(word), "{word} in {help}");
    }
    for variable in VARIABLES {
        assert!(help.contains(variable.name), "{} in {help}", variable.name);
        assert!(
            help.contains(variable.takes),
            "{} in {help}",
            variable.takes
        );
    }
}

// P1.5
#[test]
fn a_token_is_shown_nowhere() {
    let cli = read(&["workers", "--token", "s3cret"]).expect("a command");
    assert!(!format!("{cli:?}").contains("s3cret"), "{cli:?}");
}
