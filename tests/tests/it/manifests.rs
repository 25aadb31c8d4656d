//! Manifests, scrape configurations and alert rules are YAML, and name what there is; tables have every metric.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use yaml_rust2::{Yaml, YamlLoader};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every page of `docs/`, with its name.
fn pages() -> Vec<(String, String)> {
    let folder = fs::read_dir(root().join("docs")).expect("the pages");
    let paths = folder.map(|entry| entry.expect("a folder can be listed").path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a page");
            (path.display().to_string(), text)
        })
        .collect()
}

/// The documents of all manifests, and in the blocks of YAML of all pages.
fn documents() -> Vec<Yaml> {
    let mut documents = Vec::new();
    for entry in fs::read_dir(root().join("docs/fleet")).expect("the files of the guide") {
        let path = entry.expect("a folder can be listed").path();
        if path.extension().is_some_and(|ending| ending == "yaml") {
            let text = fs::read_to_string(&path).expect("a manifest");
            let parsed = YamlLoader::load_from_str(&text);
            documents.extend(parsed.unwrap_or_else(|error| panic!("{path:?}: {error}")));
        }
    }
    for (page, text) in pages() {
        for block in text.split("\n```yaml\n").skip(1) {
            let (block, _) = block.split_once("\n```").expect("an end");
            let parsed = YamlLoader::load_from_str(block);
            documents.extend(parsed.unwrap_or_else(|error| panic!("{page}: {error}:\n{block}")));
        }
    }
    documents
}

/// All of the code of pinned and pinboard.
fn sources() -> String {
    fn collect(folder: &Path, into: &mut String) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() {
                collect(&path, into);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                *into += &fs::read_to_string(&path).expect("a source");
            }
        }
    }
    let mut sources = String::new();
    for folder in ["pinned/src", "pinboard/src"] {
        collect(&root().join(folder), &mut sources);
    }
    sources
}

/// The words of an expression that begin like a metric of ours.
fn metrics(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("pinned_") || word.starts_with("pinboard_"))
}

/// The metrics that `sources` name, each as a whole literal.
fn counted(sources: &str) -> BTreeSet<&str> {
    let literals = sources.split('"').skip(1);
    let names = literals.filter(|text| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
    names
        .filter(|name| name.starts_with("pinned_") || name.starts_with("pinboard_"))
        // What headers begin with.
        .filter(|name| !name.ends_with('_'))
        .collect()
}

#[test]
fn every_metric_is_in_a_table() {
    let sources = sources();
    let pages: String = pages().into_iter().map(|(_, text)| text).collect();
    let rows: BTreeSet<&str> = pages
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next())
        .collect();
    let counted = counted(&sources);
    assert!(counted.len() > 20, "{counted:?}");
    for metric in counted {
        assert!(rows.contains(metric), "{metric} is in no row");
    }
}

fn text<'a>(yaml: &'a Yaml, what: &str) -> &'a str {
    yaml.as_str()
        .unwrap_or_else(|| panic!("{what} is no text: {yaml:?}"))
}

#[test]
fn alerts_name_metrics_and_labels_that_there_are() {
    let sources = sources();
    let mut rules = 0;
    for document in documents() {
        let groups = document["groups"].as_vec().cloned().unwrap_or_default();
        for rule in groups
            .iter()
            .flat_map(|group| group["rules"].as_vec())
            .flatten()
        {
            let name = text(&rule["alert"], "an alert's name");
            let expression = text(&rule["expr"], name);
            assert!(metrics(expression).next().is_some(), "{name}: {expression}");
            for metric in metrics(expression) {
                // A histogram is read by its buckets.
                let metric = metric.strip_suffix("_bucket").unwrap_or(metric);
                assert!(
                    sources.contains(&format!("\"{metric}\"")),
                    "{name}: nothing counts {metric}"
                );
            }
            for value in expression.split("=\"").skip(1) {
                let (value, _) = value.split_once('"').expect("a closed label");
                assert!(
                    sources.contains(&format!("\"{value}\"")),
                    "{name}: no label is {value}"
                );
            }
            text(&rule["annotations"]["summary"], name);
            rules += 1;
        }
    }
    assert!(rules > 0, "the pages have no alerts any more");
}

#[test]
fn manifests_are_whole_and_probe_what_is_answered() {
    let sources = sources();
    let documents = documents();
    let manifests: Vec<&Yaml> = documents
        .iter()
        .filter(|document| !document["kind"].is_badvalue())
        .collect();
    assert!(!manifests.is_empty(), "there are no manifests any more");
    for manifest in &manifests {
        let kind = text(&manifest["kind"], "a kind");
        text(&manifest["apiVersion"], kind);
        let name = text(&manifest["metadata"]["name"], kind);
        let spec = &manifest["spec"];
        match kind {
            "Deployment" | "StatefulSet" => workload(name, spec, &sources),
            // The ports that a Service leads to are named by some container.
            "Service" => {
                for port in spec["ports"].as_vec().expect("ports") {
                    let target = port["targetPort"].as_str().unwrap_or_default();
                    let named = manifests.iter().any(|other| {
                        containers(&other["spec"]).any(|container| {
                            let ports = container["ports"].as_vec();
                            ports.is_some_and(|ports| {
                                ports
                                    .iter()
                                    .any(|port| port["name"].as_str() == Some(target))
                            })
                        })
                    });
                    assert!(named, "{name}: no container has a port {target:?}");
                }
            }
            _ => {}
        }
    }
}

fn containers(spec: &Yaml) -> impl Iterator<Item = &Yaml> {
    let containers = spec["template"]["spec"]["containers"].as_vec();
    containers.into_iter().flatten()
}

fn workload(name: &str, spec: &Yaml, sources: &str) {
    let template = &spec["template"];
    assert_eq!(
        spec["selector"]["matchLabels"], template["metadata"]["labels"],
        "{name} selects its own pods"
    );
    let grace = template["spec"]["terminationGracePeriodSeconds"].as_i64();
    // More than the drain of either (30 s), and for a worker one lease beside it.
    assert!(grace.is_some_and(|grace| grace > 30), "{name}: {grace:?}");
    assert!(containers(spec).next().is_some(), "{name} runs nothing");
    for container in containers(spec) {
        text(&container["image"], name);
        let mut probes = 0;
        for probe in ["readinessProbe", "livenessProbe", "startupProbe"] {
            let get = &container[probe]["httpGet"];
            if get.is_badvalue() {
                continue;
            }
            let path = text(&get["path"], probe);
            assert!(
                sources.contains(&format!("\"{path}\"")),
                "{name}: nobody answers {path}"
            );
            probes += 1;
        }
        assert!(probes > 0, "{name} is never asked whether it is ready");
    }
}
