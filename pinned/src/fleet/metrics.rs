//! What is counted of the control plane (W15).

pub(super) fn control_failed(operation: &'static str, reason: &'static str) {
    metrics::counter!("pinned_control_plane_failures_total", "operation" => operation, "reason" => reason)
        .increment(1);
}

pub(super) fn registration_failed(reason: &'static str) {
    metrics::counter!("pinned_registration_failures_total").increment(1);
    control_failed("register", reason);
}

pub(super) fn registered(registered: bool) {
    metrics::gauge!("pinned_registered").set(if registered { 1.0 } else { 0.0 });
}

pub(super) fn duplicate_quit() {
    metrics::counter!("pinned_duplicate_quits_total").increment(1);
}
