//! The reference names what there is.

use pinboard::config::VARIABLES;
use pinboard::metrics::Resolution;
use pinboard::metrics::names;
use pinboard::scanner::UNOWNED_MARKED_OLDEST;

fn reference() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/pinboard.md");
    std::fs::read_to_string(path).expect("the reference")
}

#[test]
fn every_variable_is_in_the_reference() {
    let reference = reference();
    for variable in VARIABLES {
        assert!(
            reference.contains(&format!("`{}`", variable.name)),
            "{}",
            variable.name
        );
    }
}

#[test]
fn every_metric_is_in_the_reference() {
    let reference = reference();
    for metric in [
        names::RESOLUTIONS,
        names::FORWARD_FAILURES,
        names::REQUESTS,
        names::REQUEST_DURATION,
        names::ACTIVE_CONNECTIONS,
        names::WORKERS,
        names::STORE_ROUND_TRIP,
        names::WAKES,
        names::UNOWNED_MARKED_ROWS,
        UNOWNED_MARKED_OLDEST,
        names::LICENSE_EPOCH,
    ] {
        assert!(reference.contains(&format!("| `{metric}")), "{metric}");
    }
    for resolution in Resolution::ALL {
        assert!(
            reference.contains(&format!("`{}`", resolution.as_str())),
            "{resolution:?}"
        );
    }
}
