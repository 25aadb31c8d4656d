//! Reading JSON from outside: what was wrong where, and nothing of what was sent.

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};

use super::RegistryError;

/// The longest part of a message that names members of the body: their names are the sender's choice.
const LONGEST_PLACE: usize = 120;

/// Reads one JSON object, or what else `T` is where it is a list.
///
/// # Errors
///
/// [`RegistryError::Malformed`]: names the member, and what was expected there. It shows no value: any may be a secret in the wrong
/// place.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, RegistryError> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| RegistryError::Malformed(message(&place(error.path()), error.inner())))?;
    json.end()
        .map_err(|error| RegistryError::Malformed(message("", &error)))?;
    Ok(value)
}

/// As [`read`], of what must be an object: serde alone would take a list for a struct.
///
/// # Errors
///
/// As [`read`].
pub(crate) fn read_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, RegistryError> {
    match first(body) {
        Some(b'{') => read(body),
        _ => Err(RegistryError::Malformed(
            "expected a JSON object".to_owned(),
        )),
    }
}

/// The first byte of a body that is not white space.
pub(crate) fn first(body: &[u8]) -> Option<u8> {
    body.iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}

fn message(place: &str, error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let said = match error.classify() {
        // These begin with what was found, which is the sender's and stays out.
        Category::Data => match whole.rfind("expected ") {
            Some(at) => &whole[at..],
            None => &whole,
        },
        _ => return format!("malformed JSON: {whole}"),
    };
    // The line and the column are of no use beside the place, and of one-line bodies.
    let said = said.rsplit_once(" at line ").map_or(said, |(said, _)| said);
    if place.is_empty() {
        said.to_owned()
    } else {
        format!("{place}: {said}")
    }
}

/// `namespaces[2]`, in characters that are safe to show.
fn place(path: &Path) -> String {
    let mut place = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => place.push_str(&format!("[{index}]")),
            Segment::Map { key } => {
                if !place.is_empty() {
                    place.push('.');
                }
                place.extend(key.escape_default());
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    if place.len() > LONGEST_PLACE {
        // What `escape_default` leaves is ASCII.
        place.truncate(LONGEST_PLACE);
        place.push_str("...");
    }
    place
}

#[cfg(test)]
mod tests {
    use pinned_wire::registry::{DrainOrder, Register};

    use super::read_object;

    fn said<T: serde::de::DeserializeOwned + std::fmt::Debug>(body: &str) -> String {
        read_object::<T>(body.as_bytes())
            .expect_err("malformed")
            .to_string()
    }

    #[test]
    fn a_message_names_the_member_and_what_was_expected_there() {
        assert_eq!(
            said::<DrainOrder>(r#"{"clientId": 5, "deadline": null}"#),
            "clientId: expected a string"
        );
        assert_eq!(
            said::<DrainOrder>(r#"{"clientId": "c"}"#),
            "missing field `deadline`"
        );
        assert_eq!(
            said::<Register>(r#"{"namespaces": ["/a", 7]}"#),
            "namespaces[1]: expected a string"
        );
        assert_eq!(
            said::<DrainOrder>(r#"["c", null]"#),
            "expected a JSON object"
        );
        assert_eq!(said::<DrainOrder>(""), "expected a JSON object");
        assert!(said::<DrainOrder>(r#"{"clientId": }"#).starts_with("malformed JSON: "));
        assert!(
            said::<DrainOrder>(r#"{"clientId":"c","deadline":1} x"#).starts_with("malformed JSON")
        );
    }

    #[test]
    fn a_message_shows_no_value() {
        // P1.5: a secret in the wrong place, or of the wrong type.
        for body in [
            r#"{"secret": 271828182845}"#,
            r#"{"secret": ["271828182845"]}"#,
            r#"{"headroom": "271828182845"}"#,
            r#"{"takeover": "271828182845"}"#,
            r#"{"headroom": -271828182845}"#,
            r#"{"headroom": "expected 271828182845 at line 1"}"#,
        ] {
            let said = said::<Register>(body);
            assert!(!said.contains("271828182845"), "{said}");
        }
    }

    #[test]
    fn a_message_is_short_and_plain_whatever_the_members_are_called() {
        let body = format!(r#"{{"instances": {{"\u0007{}": 5}}}}"#, "x".repeat(5_000));
        let said = said::<Register>(&body);
        assert!(said.len() < 300, "{said}");
        assert!(!said.chars().any(char::is_control), "{said}");
    }
}
