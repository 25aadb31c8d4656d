//! Rows, as they are kept.

use std::time::Duration;

use crate::store::{FenceState, Row, SessionId};

/// A row that somebody holds, in the given generation and with its times by the clock of the server; `None` for what is no row,
/// such as a release that is remembered.
pub(super) fn parse(text: &str, generation: &str, now: u64) -> Option<Row> {
    let mut fields = text.splitn(7, ' ');
    (fields.next()? == "h").then_some(())?;
    let current = fields.next()? == generation;
    let epoch = fields.next()?.parse().ok()?;
    let _placed = fields.next()?;
    let starts = fields.next()?.parse().ok()?;
    let ends = fields.next()?.parse().ok()?;
    Some(Row {
        session: SessionId::new(fields.next()?),
        epoch,
        current,
        fence: fence(starts, ends, now),
    })
}

fn fence(starts: u64, ends: u64, now: u64) -> Option<FenceState> {
    let left = |until: u64| Duration::from_millis(until.saturating_sub(now));
    match (starts, ends) {
        (_, 0) => None,
        (_, ends) if ends <= now => Some(FenceState::Passed),
        (starts, ends) if starts <= now => Some(FenceState::Standing {
            ends_in: left(ends),
        }),
        (starts, ends) => Some(FenceState::Ahead {
            starts_in: left(starts),
            ends_in: left(ends),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_with_what_is_left_of_its_fence() {
        let row = |text, now| {
            let row = parse(text, "1", now);
            row.map(|row| (row.session.to_string(), row.epoch, row.fence))
        };
        let ms = Duration::from_millis;
        assert_eq!(
            row("h 1 18446744073709551615 3 0 0 a session", 9),
            Some(("a session".to_owned(), u64::MAX, None))
        );
        for (now, state) in [
            (
                9,
                FenceState::Ahead {
                    starts_in: ms(1),
                    ends_in: ms(11),
                },
            ),
            (10, FenceState::Standing { ends_in: ms(10) }),
            (20, FenceState::Passed),
        ] {
            assert_eq!(
                row("h 1 2 3 10 20 s", now),
                Some(("s".to_owned(), 2, Some(state)))
            );
        }
        let current = |generation| parse("h 12 2 3 0 0 s", generation, 9).map(|row| row.current);
        assert_eq!(
            ["12", "13", "1"].map(current),
            [Some(true), Some(false), Some(false)]
        );
        for text in [
            "",
            "f 7 s",
            "h",
            "h 1 x 3 0 0 s",
            "h 1 2 3 0 0",
            "h 1 -2 3 0 0 s",
        ] {
            assert_eq!(parse(text, "1", 9), None, "{text}");
        }
    }
}
