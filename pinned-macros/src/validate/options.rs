//! The options of a block (H16.1).

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{Expr, Lit, UnOp};

use crate::durations;
use crate::errors::Errors;
use crate::model::{DeclaredOption, OptionValue};
use crate::parse::OptionArgument;

/// What an option takes.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Duration,
    PositiveDuration,
    Count { at_least: usize },
    Integer,
    Flag,
    Text,
}

/// Every option of a block; `crate` is an argument of the macro and no option of the host.
const OPTIONS: [(&str, Kind); 10] = [
    ("idle_timeout", Kind::Duration),
    ("release_placement_on_idle", Kind::Flag),
    ("detached_timeout", Kind::PositiveDuration),
    ("sweep_interval", Kind::PositiveDuration),
    ("max_instances", Kind::Count { at_least: 1 }),
    ("max_concurrent_activations", Kind::Count { at_least: 1 }),
    ("activation_queue_deadline", Kind::PositiveDuration),
    ("turn_timeout", Kind::PositiveDuration),
    ("max_waiting", Kind::Count { at_least: 0 }),
    ("env", Kind::Text),
];

/// What to do about an option of a block that is no literal.
const COMPUTED: &str = "; for a computed value set `HostOptions` where the struct is mounted";

pub(super) fn lower(arguments: &[OptionArgument], errors: &mut Errors) -> Vec<DeclaredOption> {
    let mut seen: Vec<&Ident> = Vec::new();
    let mut options = Vec::new();
    for OptionArgument { name, value } in arguments {
        let Some((_, kind)) = OPTIONS.iter().find(|(known, _)| name == known) else {
            errors.at(name, unknown(name));
            continue;
        };
        if seen.contains(&name) {
            errors.at(name, format!("`{name}` is given twice"));
            continue;
        }
        seen.push(name);
        match read(value, *kind, COMPUTED) {
            Ok(value) => options.push(DeclaredOption {
                name: name.clone(),
                value,
            }),
            Err(message) => errors.at(value, format!("`{name}` {message}")),
        }
    }
    options
}

fn unknown(name: &Ident) -> String {
    let known: Vec<String> = OPTIONS
        .iter()
        .map(|(known, _)| format!("`{known}`"))
        .collect();
    format!(
        "unknown option `{name}`; there are {} and `crate`",
        known.join(", ")
    )
}

/// The value of an option; `computed` says what to do about one that is no literal.
pub(super) fn read(value: &Expr, kind: Kind, computed: &str) -> Result<OptionValue, String> {
    match (kind, literal(value)) {
        (Kind::Duration | Kind::PositiveDuration, Some(Lit::Str(text))) => {
            let millis = durations::parse_millis(&text.value())
                .map_err(|message| format!("takes a duration: {message}"))?;
            match (kind, millis) {
                (Kind::PositiveDuration, 0) => Err("must be longer than zero".to_owned()),
                _ => Ok(OptionValue::Millis(millis)),
            }
        }
        (Kind::Duration | Kind::PositiveDuration, Some(Lit::Int(number))) => Err(format!(
            "takes a duration with its unit: write `\"{}s\"`",
            number.base10_digits()
        )),
        (Kind::Count { at_least }, Some(Lit::Int(number))) => {
            let suffixed = !matches!(number.suffix(), "" | "usize");
            let count = number.base10_parse::<usize>().ok().filter(|_| !suffixed);
            match count {
                Some(count) if count >= at_least => Ok(OptionValue::Count(count)),
                Some(_) => Err(format!("must be at least {at_least}")),
                None => Err("takes a whole number that fits `usize`".to_owned()),
            }
        }
        (Kind::Flag, Some(Lit::Bool(flag))) => Ok(OptionValue::Flag(flag.value)),
        (Kind::Text, Some(Lit::Str(text))) if text.value().is_empty() => {
            Err("cannot be empty: leave the option out".to_owned())
        }
        (Kind::Text, Some(Lit::Str(text))) => Ok(OptionValue::Text(text.value())),
        (Kind::Integer, _) => match integer(value) {
            Some(number) => Ok(OptionValue::Integer(number)),
            None => Err(expected(value, kind, computed)),
        },
        _ => Err(expected(value, kind, computed)),
    }
}

/// A whole number, which may be negative.
fn integer(value: &Expr) -> Option<i64> {
    let text = value.to_token_stream().to_string().replace(['_', ' '], "");
    text.parse().ok()
}

fn expected(value: &Expr, kind: Kind, computed: &str) -> String {
    let takes = match kind {
        Kind::Duration | Kind::PositiveDuration => "a duration such as `\"5m\"`",
        Kind::Count { .. } => "a whole number such as `100`",
        Kind::Integer => "a whole number that fits `i64`",
        Kind::Flag => "`true` or `false`",
        Kind::Text => "a string such as `\"production\"`",
    };
    let hint = match value {
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => "; it cannot be negative",
        Expr::Lit(_) => "",
        _ => computed,
    };
    let found = value.to_token_stream().to_string().replace("- ", "-");
    format!("takes {takes}, not `{found}`{hint}")
}

/// The literal, also through the invisible group that a macro variable leaves.
fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(literal) => Some(&literal.lit),
        Expr::Group(group) => literal(&group.expr),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::{COMPUTED, Kind, OptionValue, lower, read};
    use crate::errors::Errors;
    use crate::parse::OptionArgument;

    fn message(value: syn::Expr, kind: Kind) -> String {
        read(&value, kind, COMPUTED).expect_err("refused")
    }

    #[test]
    fn values_are_read() {
        let duration = read(&parse_quote!("1m"), Kind::PositiveDuration, COMPUTED);
        assert_eq!(duration, Ok(OptionValue::Millis(60_000)));
        assert_eq!(
            read(&parse_quote!("0s"), Kind::Duration, COMPUTED),
            Ok(OptionValue::Millis(0))
        );
        let count = read(
            &parse_quote!(10_000usize),
            Kind::Count { at_least: 1 },
            COMPUTED,
        );
        assert_eq!(count, Ok(OptionValue::Count(10_000)));
        assert_eq!(
            read(&parse_quote!(false), Kind::Flag, COMPUTED),
            Ok(OptionValue::Flag(false))
        );
        let text = read(&parse_quote!("eu"), Kind::Text, COMPUTED);
        assert_eq!(text, Ok(OptionValue::Text("eu".to_owned())));
    }

    #[test]
    fn refusals_say_what_to_write() {
        assert!(message(parse_quote!(300), Kind::Duration).contains("write `\"300s\"`"));
        assert!(message(parse_quote!("0s"), Kind::PositiveDuration).contains("longer than zero"));
        assert!(message(parse_quote!(0), Kind::Count { at_least: 1 }).contains("at least 1"));
        assert!(message(parse_quote!(5u8), Kind::Count { at_least: 1 }).contains("`usize`"));
        assert!(message(parse_quote!(-1), Kind::Count { at_least: 0 }).contains("negative"));
        assert!(message(parse_quote!("yes"), Kind::Flag).contains("`true` or `false`"));
        assert!(message(parse_quote!(LIMIT), Kind::Count { at_least: 0 }).contains("HostOptions"));
    }

    #[test]
    fn unknown_and_repeated_names() {
        let option = |name: &str, value| OptionArgument {
            name: syn::Ident::new(name, proc_macro2::Span::call_site()),
            value,
        };
        let arguments = [
            option("idle", parse_quote!("5m")),
            option("env", parse_quote!("eu")),
            option("env", parse_quote!("us")),
        ];
        let mut errors = Errors::default();
        assert_eq!(lower(&arguments, &mut errors).len(), 1);
        let messages = errors.messages();
        assert!(messages[0].starts_with("unknown option `idle`; there are `idle_timeout`"));
        assert_eq!(messages[1], "`env` is given twice");
    }
}
