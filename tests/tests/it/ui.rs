//! The macros against the compiler: one file per mistake under `ui/fail`, one per feature under `ui/pass`.
//!
//! Messages change with the compiler. After an upgrade read the differences, bless them with
//! `TRYBUILD=overwrite cargo test -p tests ui`, and name the compiler in [`BLESSED`]. Under any other compiler every
//! mistake must still be one, and be named in the macros' own words; rustc may put its part differently.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The compiler whose messages `ui/fail/*.stderr` hold.
const BLESSED: &str = "rustc 1.95.";

const FAIL: &str = "ui/fail";

/// Set for the process that compiles copies of the cases without their messages.
const COMPILES_COPIES: &str = "PINNED_TEST_COMPILES_COPIES";

#[test]
fn what_users_write_compiles_without_warnings() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}

#[test]
fn mistakes_are_named_where_they_stand() {
    if std::env::var_os(COMPILES_COPIES).is_some() {
        trybuild::TestCases::new().compile_fail(folder_of_copies().join("*.rs"));
        return;
    }
    let compiler = compiler();
    if compiler.starts_with(BLESSED) {
        trybuild::TestCases::new().compile_fail(format!("{FAIL}/*.rs"));
        return;
    }
    eprintln!(
        "the expected messages are those of {BLESSED}x; under {compiler} their wording by rustc may differ"
    );
    let copies = copies_without_messages();
    // The variable is for trybuild alone, so the copies are compiled by a process of their own.
    let compiled = Command::new(std::env::current_exe().expect("a test knows its binary"))
        .args(["--exact", "ui::mistakes_are_named_where_they_stand"])
        .env(COMPILES_COPIES, "1")
        .env("TRYBUILD", "overwrite")
        .stdout(Stdio::null())
        .status()
        .expect("the test binary can be started");
    assert!(compiled.success(), "a mistake is none under {compiler}");
    for expected in messages_in(Path::new(env!("CARGO_MANIFEST_DIR")).join(FAIL)) {
        let name = expected.file_name().expect("a file has a name");
        let missing: Vec<_> = errors_in(&expected)
            .difference(&errors_in(&copies.join(name)))
            .cloned()
            .collect();
        assert!(missing.is_empty(), "{name:?} is without {missing:?}");
    }
}

fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .arg("--version")
        .output()
        .expect("rustc can be started");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn folder_of_copies() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui-fail")
}

fn copies_without_messages() -> PathBuf {
    let folder = folder_of_copies();
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("old copies can be removed");
    }
    fs::create_dir_all(&folder).expect("the target folder can be written to");
    for case in files_in(Path::new(env!("CARGO_MANIFEST_DIR")).join(FAIL), "rs") {
        let name = case.file_name().expect("a file has a name");
        fs::copy(&case, folder.join(name)).expect("a case can be copied");
    }
    folder
}

fn messages_in(folder: PathBuf) -> Vec<PathBuf> {
    files_in(folder, "stderr")
}

fn files_in(folder: PathBuf, extension: &str) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|known| known == extension))
        .collect()
}

/// What a case is told, without rustc's wording: the macros' own messages whole, of rustc's the code.
fn errors_in(messages: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(messages)
        .unwrap_or_else(|error| panic!("{}: {error}", messages.display()));
    text.lines()
        .filter(|line| line.starts_with("error"))
        .map(|line| match line.split_once("]: ") {
            Some((code, _)) if line.starts_with("error[") => code.to_owned(),
            _ => line.to_owned(),
        })
        .collect()
}
