//! The pages for readers say what is true: the tests they name exist, and the code they quote stands where they say.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The texts between backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What `turns` or `pinned/src/host/turns.rs` stands for: a file, or all files of a module that has a folder.
fn source_of(name: &str) -> String {
    if name.ends_with(".rs") {
        return read(name);
    }
    let module = format!("pinned/tests/it/{name}");
    let Ok(folder) = fs::read_dir(root().join(&module)) else {
        return read(&format!("{module}.rs"));
    };
    let mut sources = String::new();
    for entry in folder {
        let path = entry.expect("a folder can be listed").path();
        match path.is_dir() {
            true => {
                let inner = path.strip_prefix(root().join("pinned/tests/it"));
                sources += &source_of(&inner.expect("below it").display().to_string());
            }
            false => {
                sources +=
                    &fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            }
        }
    }
    sources
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let semantics = read("docs/semantics.md");
    let guarantees = semantics.split("\n**S").skip(1);
    for (index, guarantee) in guarantees.enumerate() {
        let number = index + 1;
        assert!(
            guarantee.starts_with(&format!("{number}.")),
            "S{number} is missing or out of order"
        );
        let (_, shown) = guarantee
            .split_once("\n*Shown by* ")
            .unwrap_or_else(|| panic!("S{number} names no test"));
        let shown = shown.split("\n\n").next().unwrap_or_default();
        let named: Vec<_> = code_spans(shown)
            .filter_map(|span| span.split_once("::"))
            .collect();
        assert!(!named.is_empty(), "S{number} names no test");
        for (file, test) in named {
            let source = source_of(file);
            assert!(
                source.contains(&format!("fn {test}(")),
                "S{number}: {file} has no test {test}"
            );
        }
    }
}

#[test]
fn every_refusal_is_in_the_table() {
    let semantics = read("docs/semantics.md");
    let refusals = read("pinned/src/api/refusal.rs");
    let slugs: Vec<_> = refusals
        .split("Some(\"")
        .skip(1)
        .filter_map(|rest| rest.split_once("\")"))
        .map(|(slug, _)| slug)
        .collect();
    assert!(slugs.len() > 10, "{slugs:?}");
    for slug in slugs {
        assert!(
            semantics.contains(&format!("| `{slug}` |")),
            "{slug} is in no row"
        );
    }
}

#[test]
fn code_that_is_quoted_stands_where_the_page_says() {
    let readme = read("README.md");
    let mut quotes = 0;
    for quote in readme.split("<!-- from ").skip(1) {
        let (path, rest) = quote
            .split_once(" -->\n```rust,ignore\n")
            .expect("a block follows its origin");
        let (block, _) = rest.split_once("\n```").expect("a block ends");
        let source = read(path);
        let mut lines = source.lines().map(str::trim);
        for line in block
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && *line != "// ...")
        {
            assert!(
                lines.any(|known| known == line),
                "{path} has no line {line:?} there"
            );
        }
        quotes += 1;
    }
    assert!(quotes > 0, "the README quotes no example");
}
