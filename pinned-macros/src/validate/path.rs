//! One route's path: axum's rules, and the names that the host keeps for itself.

use syn::LitStr;

use crate::errors::Errors;

/// Parameters that the host fills in before any route (H1.9).
pub(super) const RESERVED: [&str; 2] = ["id", "pinned_record"];

/// Checks a path; a bad one takes no part in the checks of the whole table.
pub(super) fn check(path: &LitStr, errors: &mut Errors) {
    if let Err(message) = rule(&path.value()) {
        errors.at(path, message);
    }
}

/// Whether axum takes this path and every parameter is the route's own.
pub(super) fn rule(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("a route path starts with `/`: the root of an instance is `\"/\"`".to_owned());
    }
    if !path.starts_with('/') {
        return Err(format!("a route path starts with `/`: write `\"/{path}\"`"));
    }
    for segment in path.split('/') {
        if let Some(name) = segment.strip_prefix(':') {
            return Err(format!(
                "a path parameter is written `{{{name}}}`, not `:{name}`"
            ));
        }
        if let Some(name) = segment.strip_prefix('*') {
            return Err(format!(
                "the rest of a path is captured by `{{*{name}}}`, not `*{name}`"
            ));
        }
    }
    if let Some(c) = path
        .chars()
        .find(|c| !c.is_ascii_graphic() || "?#".contains(*c))
    {
        return Err(format!(
            "{c:?} never stands in the path of a request: paths are matched percent-encoded and \
             without their query"
        ));
    }
    matchit::Router::new()
        .insert(path, ())
        .map_err(|error| syntax(&error))?;
    let names = parameters(path);
    for (index, name) in names.iter().enumerate() {
        if RESERVED.contains(&name.as_str()) {
            return Err(format!(
                "the parameter `{{{name}}}` is reserved for the instance: choose another name \
                 (the instance's own id is `Context::id`)"
            ));
        }
        if names[..index].contains(name) {
            return Err(format!(
                "the parameter `{{{name}}}` stands twice in this path"
            ));
        }
    }
    Ok(())
}

fn syntax(error: &matchit::InsertError) -> String {
    match error {
        matchit::InsertError::InvalidParam => {
            "a brace is not closed, or a parameter has no name: write `{name}` \
             (a literal brace is `{{` or `}}`)"
        }
        matchit::InsertError::InvalidParamSegment => {
            "a path segment has at most one parameter, and it stands last in it: \
             write `/{first}/{second}`"
        }
        matchit::InsertError::InvalidCatchAll => {
            "`{*rest}` captures all that follows, so it stands last and alone in its segment"
        }
        // One path alone cannot conflict.
        _ => "axum does not take this path",
    }
    .to_owned()
}

/// The names of the parameters of a path that matchit has accepted.
fn parameters(path: &str) -> Vec<String> {
    let literal_braces_gone = path.replace("{{", "").replace("}}", "");
    literal_braces_gone
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split('}').next())
        .map(|name| name.trim_start_matches('*').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{parameters, rule};

    #[test]
    fn what_axum_takes_is_taken() {
        let good = [
            "/",
            "/a",
            "/a/",
            "/{x}",
            "/a/{x}/b/{y}",
            "/{*rest}",
            "/v{x}",
            "/{{x}}",
            "/a%20b",
            "/a//b",
        ];
        for path in good {
            assert_eq!(rule(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn what_axum_refuses_or_the_host_keeps_is_refused() {
        let cases = [
            ("", "root of an instance"),
            ("a", "write `\"/a\"`"),
            ("/:x", "written `{x}`"),
            ("/*rest", "captured by `{*rest}`"),
            ("/{x", "not closed"),
            ("/x}", "not closed"),
            ("/{}", "no name"),
            ("/{a}{b}", "at most one parameter"),
            ("/{*rest}/more", "stands last"),
            ("/{id}", "reserved"),
            ("/{*id}", "reserved"),
            ("/{pinned_record}", "reserved"),
            ("/{x}/{x}", "stands twice"),
            ("/a?b", "percent-encoded"),
            ("/a b", "percent-encoded"),
            ("/é", "percent-encoded"),
        ];
        for (path, why) in cases {
            let message = rule(path).expect_err(path);
            assert!(message.contains(why), "{path}: {message}");
        }
    }

    #[test]
    fn parameter_names() {
        assert_eq!(parameters("/a/{x}/{{no}}/{*rest}"), ["x", "rest"]);
    }
}
