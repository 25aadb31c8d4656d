//! Duration literals: `"30s"`, `"5m"`, `"1h30m"`.

/// The units, from the largest, with their length in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// How a duration is written, for error messages.
const GRAMMAR: &str = "write whole numbers with a unit of `ms`, `s`, `m`, `h` or `d`, such as \"30s\", \"5m\" or \"1h30m\"";

/// The milliseconds of a duration literal, or what is wrong with it.
pub(crate) fn parse_millis(text: &str) -> Result<u64, String> {
    let refuse = |why: &str| Err(format!("`{text}` is not a duration ({why}): {GRAMMAR}"));
    if text.is_empty() {
        return refuse("it is empty");
    }
    if text.starts_with('-') {
        return refuse("it is negative");
    }
    let mut rest = text;
    let mut units = UNITS.as_slice();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_where(after, |c| !c.is_ascii_alphabetic());
        if number.is_empty() {
            return refuse("a number is missing");
        }
        if unit.is_empty() {
            return refuse("a unit is missing");
        }
        let Some(index) = units.iter().position(|(name, _)| *name == unit) else {
            return refuse(&match UNITS.iter().any(|(name, _)| *name == unit) {
                true => format!("`{unit}` stands after a smaller unit or twice"),
                false => format!("unknown unit `{unit}`"),
            });
        };
        let millis = number
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(units[index].1))
            .and_then(|millis| total.checked_add(millis));
        match millis {
            Some(sum) => total = sum,
            None => return refuse("it is too long"),
        }
        units = &units[index + 1..];
        rest = after;
    }
    Ok(total)
}

fn split_where(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::parse_millis;

    #[test]
    fn units_and_their_sums() {
        let cases = [
            ("0s", 0),
            ("250ms", 250),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("24h", 86_400_000),
        ];
        for (text, millis) in cases {
            assert_eq!(parse_millis(text), Ok(millis), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("", "it is empty"),
            ("-5m", "it is negative"),
            ("5", "a unit is missing"),
            ("m", "a number is missing"),
            ("5 minutes", "a unit is missing"),
            ("5minutes", "unknown unit `minutes`"),
            ("1.5h", "a unit is missing"),
            ("5M", "unknown unit `M`"),
            ("5m1h", "`h` stands after a smaller unit or twice"),
            ("5m5m", "`m` stands after a smaller unit or twice"),
            ("99999999999999999999d", "it is too long"),
            ("18446744073709551615s", "it is too long"),
            ("5m ", "a number is missing"),
            ("５m", "a number is missing"),
        ];
        for (text, why) in cases {
            let message = parse_millis(text).expect_err(text);
            assert!(message.contains(why), "{text:?}: {message}");
        }
    }
}
