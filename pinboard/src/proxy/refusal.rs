//! What a worker says when it has not run a request (P5.9, P5.10).

use http::{HeaderMap, StatusCode, header};
use pinned_wire::headers::REFUSAL;

use crate::placement::WorkerRefusal;

/// What a worker's answer says of whether the request was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was, or it may have been.
    Answered,
    /// It was not, and trying it elsewhere would not help.
    Busy,
    /// It was not: ask again where the id is.
    Refused(WorkerRefusal),
    /// It was not, because whoever answers there does not hold this session: another process has the address now, or the
    /// worker has registered anew and has not read so yet. Nothing that a client could mend (W8.6).
    Stranger,
}

/// Reads an answer's head.
pub(super) fn verdict(status: StatusCode, headers: &HeaderMap) -> Verdict {
    let refusal = headers.get(REFUSAL);
    if status == StatusCode::FORBIDDEN {
        return match refusal {
            Some(reason) if reason == "invalid-attestation" => Verdict::Stranger,
            _ => Verdict::Answered,
        };
    }
    if status != StatusCode::SERVICE_UNAVAILABLE {
        return Verdict::Answered;
    }
    match refusal {
        Some(reason) => match reason.as_bytes() {
            b"lease-unhealthy" | b"lease-expired" | b"draining" | b"capacity"
            | b"activation-queue" => Verdict::Refused(WorkerRefusal::NotResident),
            b"closing" | b"past-deadline" | b"stale-epoch" | b"released-epoch" => {
                Verdict::Refused(WorkerRefusal::Moving)
            }
            _ => Verdict::Busy,
        },
        // Workers of the other edition say no more than this while an instance closes.
        None if headers.contains_key(header::RETRY_AFTER) => {
            Verdict::Refused(WorkerRefusal::Moving)
        }
        None => Verdict::Answered,
    }
}
