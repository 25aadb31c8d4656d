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

/// The numbers that follow `name` in `text`, in order.
fn numbers_after(text: &str, name: &str) -> Vec<u64> {
    let after = text.split(name).skip(1).map(|rest| {
        let digits = rest.trim_start_matches([':', '=', ' ']);
        let end = digits.find(|c: char| !c.is_ascii_digit());
        &digits[..end.unwrap_or(digits.len())]
    });
    after.filter_map(|digits| digits.parse().ok()).collect()
}

/// The one number of seconds, milliseconds or a port that `source` has at `before`.
fn default_of(source: &str, before: &str) -> u64 {
    let text = read(source).replace('_', "");
    let found = numbers_after(&text, &before.replace('_', ""));
    assert_eq!(found.len(), 1, "{source}: {before}");
    found[0]
}

#[test]
fn what_runs_a_fleet_agrees_with_the_defaults_of_the_programs() {
    let drain = default_of(
        "pinned/src/worker/builder/options.rs",
        "drain_deadline: Duration::from_secs(",
    );
    let goodbye = default_of(
        "pinned/src/worker/serve.rs",
        "GOODBYE: Duration = Duration::from_secs(",
    );
    let threshold = default_of(
        "pinned/src/worker/probe/settings.rs",
        "THRESHOLD: Duration = Duration::from_secs(",
    );
    let port = default_of(
        "pinned/src/worker/builder/build.rs",
        "SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED),",
    );
    let node_drain = default_of(
        "pinboard/src/server/options.rs",
        "drain: Duration::from_secs(",
    );
    let reference = read("docs/pinboard.md");
    let lease =
        numbers_after(&reference, "| `PINBOARD_LEASE_TTL_MS` | 100 to 3600000 |")[0] / 1_000;
    let node_port = numbers_after(&reference, "| `PORT` | a port from 0 to 65535 |")[0];
    assert_eq!((drain, lease), (30, 15), "as the guide computes with");

    let manifests = read("docs/fleet/kubernetes.yaml");
    let parts: Vec<&str> = manifests.split("\n---\n").collect();
    let deployment = |name: &str| {
        let head = format!("kind: Deployment\nmetadata: {{ name: {name},");
        let found = parts.iter().find(|part| part.contains(&head));
        *found.unwrap_or_else(|| panic!("no deployment {name}"))
    };
    let (nodes, workers) = (deployment("pinboard"), deployment("lanes"));
    let grace = |part: &str| numbers_after(part, "terminationGracePeriodSeconds:")[0];
    assert!(grace(nodes) > node_drain);
    assert!(grace(workers) > drain + lease + goodbye);
    assert_eq!(numbers_after(nodes, "containerPort:"), [node_port]);
    assert_eq!(numbers_after(workers, "containerPort:")[0], port);
    assert!(workers.contains(&format!("http://$(POD_IP):{port}")));
    let probes = numbers_after(workers, "PINNED_PROBE_PORT, value: \"")[0];
    assert_eq!(numbers_after(workers, "containerPort:")[1], probes);
    for (part, liveness) in [(nodes, "/healthz"), (workers, "/livez")] {
        let of = |probe: &str| {
            let line = part.lines().find(|line| line.contains(probe));
            line.unwrap_or_else(|| panic!("no {probe}"))
        };
        assert!(of("readinessProbe").contains("path: /readyz"));
        assert!(of("livenessProbe").contains(&format!("path: {liveness}")));
        assert!(of("startupProbe").contains(&format!("path: {liveness}")));
    }
    let line = workers.lines().find(|line| line.contains("livenessProbe"));
    let line = line.expect("a liveness probe");
    let patience =
        numbers_after(line, "periodSeconds")[0] * numbers_after(line, "failureThreshold")[0];
    assert!(
        patience > lease + threshold,
        "ids have moved before a restart"
    );

    let units = ["docs/fleet/pinboard@.service", "docs/fleet/worker@.service"].map(read);
    let stop = |unit: &str| numbers_after(unit, "TimeoutStopSec")[0];
    assert_eq!(stop(&units[0]), grace(nodes));
    assert_eq!(stop(&units[1]), grace(workers));
}

/// The texts of `source` between double quotes that `keep` is true of.
fn literals(source: &str, keep: impl Fn(&str) -> bool) -> Vec<&str> {
    source
        .split('"')
        .skip(1)
        .filter(|text| keep(text))
        .collect()
}

#[test]
fn every_variable_of_a_worker_is_in_the_readme_and_in_its_documentation() {
    let source = read("pinned/src/worker/environment.rs");
    let (constants, _) = source
        .split_once("\nimpl Environment {")
        .expect("an impl block");
    let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let variables = literals(constants, |text| !text.is_empty() && is_name(text));
    assert!(variables.len() > 10, "{variables:?}");
    for page in ["README.md", "pinned/src/registry.rs"] {
        let text = read(page);
        for variable in &variables {
            let is_named = ["`", "=1`"].map(|end| text.contains(&format!("`{variable}{end}")));
            assert!(is_named.contains(&true), "{page}: {variable}");
        }
    }
}

#[test]
fn every_package_that_verify_installs_is_named_to_contributors() {
    let verify = read("verify");
    let (_, needed) = verify.split_once("readonly needed=(\n").expect("the list");
    let (needed, _) = needed.split_once("\n)").expect("the end of the list");
    let contributing = read("CONTRIBUTING.md");
    let pairs = needed.lines().map(str::trim);
    for pair in pairs.filter(|line| !line.starts_with('#')) {
        let pair = pair.trim_matches('"');
        let (_, packages) = pair.split_once(':').expect("a command and its packages");
        for package in packages
            .split(' ')
            .filter(|name| *name != "libc6-dev" && *name != "python3")
        {
            assert!(contributing.contains(&format!("`{package}`")), "{package}");
        }
    }
}

#[test]
fn what_the_pages_link_to_is_there() {
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/decisions.md",
        "docs/fleet.md",
        "docs/pinboard.md",
    ] {
        let text = read(page);
        let folder = root()
            .join(page)
            .parent()
            .map(Path::to_path_buf)
            .unwrap_or_default();
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            assert!(folder.join(target).exists(), "{page} links to {target}");
        }
    }
}
