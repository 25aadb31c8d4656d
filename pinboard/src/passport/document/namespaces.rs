//! The member `namespaces`: whom each of them admits (P7.4).

use std::collections::HashMap;

use ahash::RandomState;

use super::{Malformed, Member};
use crate::passport::rule::Rule;

/// Reads the rules of the namespaces.
pub(super) fn read(member: &Member<'_>) -> Result<HashMap<Box<str>, Rule, RandomState>, Malformed> {
    member
        .any_object()?
        .iter()
        .map(|(name, member)| {
            if let Some(reason) = pinned_wire::ids::invalid_namespace_reason(name) {
                return Err(member.refuse(reason));
            }
            let fields = member.object(&["allow"])?;
            Ok((name.into(), rule(&fields.required("allow")?)?))
        })
        .collect()
}

fn rule(member: &Member<'_>) -> Result<Rule, Malformed> {
    match member.text()? {
        "anyone" => Ok(Rule::Anyone),
        "authenticated" => Ok(Rule::Authenticated),
        text => match text.strip_prefix("scope:") {
            Some(scope) if !scope.is_empty() && !scope.contains(char::is_whitespace) => {
                Ok(Rule::Scope(scope.into()))
            }
            _ => Err(member.fail(r#""authenticated", "anyone" or "scope:NAME""#)),
        },
    }
}
