//! `#[pinned_api("/counters")]` (H1.1).

use syn::LitStr;

use crate::errors::Errors;

pub(super) fn check(namespace: &LitStr, errors: &mut Errors) {
    if let Err(message) = rule(&namespace.value()) {
        errors.at(namespace, message);
    }
}

fn rule(namespace: &str) -> Result<(), String> {
    let Some(name) = namespace.strip_prefix('/') else {
        let example = namespace.replace(|c: char| !c.is_ascii_alphanumeric(), "");
        let example = if example.is_empty() {
            "counters".to_owned()
        } else {
            example
        };
        return Err(format!(
            "a namespace is `/` plus one path segment: write `\"/{example}\"`"
        ));
    };
    if name.is_empty() {
        return Err(
            "a namespace is `/` plus one path segment, such as `\"/counters\"`; \
                    the root itself cannot be one"
                .to_owned(),
        );
    }
    if name.contains('/') {
        return Err(
            "a namespace is exactly one path segment: deeper paths belong to the routes".to_owned(),
        );
    }
    if name == "_pinned" {
        return Err(
            "`/_pinned` is reserved for the worker's own routes: choose another namespace"
                .to_owned(),
        );
    }
    if name.starts_with(':') || name.starts_with('*') || name == "." || name == ".." {
        return Err(format!(
            "`{name}` cannot be a namespace: it means something else in a path"
        ));
    }
    match name
        .chars()
        .find(|c| !c.is_ascii_graphic() || "{}%?#\"\\<>^`|".contains(*c))
    {
        Some(c) => Err(format!(
            "{c:?} cannot stand in a namespace: use ASCII letters, digits and `-`, `.`, `_`, `~`"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::rule;

    #[test]
    fn one_plain_segment_is_a_namespace() {
        for good in ["/counters", "/a-b.c_d~e", "/_private", "/A1"] {
            assert_eq!(rule(good), Ok(()), "{good}");
        }
        let bad = [
            "", "counters", "/", "/a/b", "/a/", "//", "/ a", "/a b", "/a\t", "/_pinned", "/{id}",
            "/a%20", "/a?b", "/a#b", "/é", "/.", "/..", "/:id", "/*rest",
        ];
        for bad in bad {
            assert!(rule(bad).is_err(), "{bad}");
        }
    }
}
