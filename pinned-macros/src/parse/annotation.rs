//! The attributes of a method that belong to `#[pinned_api]`.

use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Ident, Meta, Path};

use super::cfg::CfgAttr;
use super::route::RouteArguments;
use super::tray::TrayArguments;
use crate::errors::Errors;
use crate::model::{Cfg, Verb};

/// One of our attributes.
pub(crate) struct Annotated {
    /// The attribute's path, for messages about it and to keep its import used.
    pub(crate) path: Path,
    /// Only conditions around the attribute itself (`cfg_attr`), not those of its method.
    pub(crate) cfg: Cfg,
    pub(crate) annotation: Annotation,
}

/// What an attribute makes of its method.
pub(crate) enum Annotation {
    Route {
        verb: Verb,
        /// `None` after a mistake that is already recorded.
        arguments: Option<RouteArguments>,
    },
    Setup,
    Teardown,
    Authorize,
    Stats,
    Tray(TrayArguments),
    /// None of ours, although its module is: the mistake is already recorded.
    Unknown,
}

/// Takes our attributes away from a method's and reads them; the others stay where they are.
pub(crate) fn take_annotations(
    attributes: &mut Vec<Attribute>,
    errors: &mut Errors,
) -> Vec<Annotated> {
    let mut taken = Vec::new();
    attributes.retain_mut(|attribute| {
        let kept = take(&attribute.meta, &Cfg::default(), &mut taken, errors);
        match kept {
            Some(meta) => {
                attribute.meta = meta;
                true
            }
            None => false,
        }
    });
    taken
}

/// What of `meta` is not ours; what is ours goes to `taken`.
fn take(meta: &Meta, cfg: &Cfg, taken: &mut Vec<Annotated>, errors: &mut Errors) -> Option<Meta> {
    if let Some(mut conditional) = CfgAttr::of(meta) {
        let inside = cfg.clone().and(conditional.predicate.clone());
        let before = conditional.metas.len();
        conditional.metas = conditional
            .metas
            .iter()
            .filter_map(|meta| take(meta, &inside, taken, errors))
            .collect();
        return match conditional.metas.len() {
            after if after == before => Some(meta.clone()),
            0 => None,
            _ => Some(conditional.to_meta()),
        };
    }
    let annotation = match recognize(meta.path()) {
        Recognized::No => return Some(meta.clone()),
        Recognized::Unknown(message) => {
            errors.at(meta.path(), message);
            Annotation::Unknown
        }
        Recognized::Route(verb) => Annotation::Route {
            verb,
            arguments: errors.keep(route_arguments(meta)),
        },
        Recognized::Tray => Annotation::Tray(TrayArguments::read(meta, errors)),
        Recognized::Plain(annotation) => {
            if let Meta::List(_) | Meta::NameValue(_) = meta {
                let path = written(meta.path());
                errors.at(meta, format!("`#[{path}]` takes no arguments"));
            }
            annotation
        }
    };
    let mut path = meta.path().clone();
    if let Annotation::Unknown = annotation {
        // Only the module exists.
        path.segments.pop();
        path.segments.pop_punct();
    }
    taken.push(Annotated {
        path,
        cfg: cfg.clone(),
        annotation,
    });
    None
}

fn route_arguments(meta: &Meta) -> syn::Result<RouteArguments> {
    match meta {
        Meta::List(list) if !list.tokens.is_empty() => list.parse_args(),
        _ => {
            let path = written(meta.path());
            let message = format!("a route needs its path: write `#[{path}(\"/increment\")]`");
            Err(syn::Error::new_spanned(meta, message))
        }
    }
}

enum Recognized {
    No,
    Unknown(String),
    Route(Verb),
    Tray,
    Plain(Annotation),
}

/// Attributes are told by their last segments: `route::get`, `pinned::route::get`, `authorize`.
fn recognize(path: &Path) -> Recognized {
    let names: Vec<Ident> = path.segments.iter().map(|s| s.ident.unraw()).collect();
    let Some((last, before)) = names.split_last() else {
        return Recognized::No;
    };
    let last = last.to_string();
    match before.last() {
        Some(module) if module == "route" => match Verb::from_attribute(&last) {
            Some(verb) => Recognized::Route(verb),
            None => Recognized::Unknown(unknown_route(&last)),
        },
        Some(module) if module == "lifespan" => match last.as_str() {
            "setup" => Recognized::Plain(Annotation::Setup),
            "teardown" => Recognized::Plain(Annotation::Teardown),
            _ => Recognized::Unknown(format!(
                "there is no `lifespan::{last}`; there are `lifespan::setup` and `lifespan::teardown`"
            )),
        },
        // A longer path could be another crate's attribute of that name.
        Some(module) if module != "pinned" => Recognized::No,
        _ => match last.as_str() {
            "authorize" => Recognized::Plain(Annotation::Authorize),
            "stats" => Recognized::Plain(Annotation::Stats),
            "tray" if before.is_empty() => Recognized::Tray,
            "tray" => Recognized::Unknown(
                "`tray` needs no path and no import: write `#[tray]`".to_owned(),
            ),
            _ => Recognized::No,
        },
    }
}

fn unknown_route(name: &str) -> String {
    let known: Vec<String> = Verb::ALL
        .iter()
        .map(|(known, _)| format!("`route::{known}`"))
        .collect();
    let hint = match name {
        "head" => " (HEAD is answered wherever GET is)",
        "ws" | "web_socket" => " (a WebSocket is `route::websocket`)",
        _ => "",
    };
    format!(
        "there is no `route::{name}`{hint}; there are {}",
        known.join(", ")
    )
}

/// The path as the user wrote it.
pub(crate) fn written(path: &Path) -> String {
    quote!(#path).to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;
    use syn::{Attribute, parse_quote};

    use super::{Annotation, take_annotations};
    use crate::errors::Errors;
    use crate::model::Verb;

    #[test]
    fn ours_are_taken_and_others_stay() {
        let mut attributes: Vec<Attribute> = vec![
            parse_quote!(#[doc = "Reads."]),
            parse_quote!(#[pinned::route::get("/")]),
            parse_quote!(#[cfg_attr(test, route::post("/p", auth = Self::other), inline)]),
            parse_quote!(#[tower::authorize]),
            parse_quote!(#[cfg_attr(test, stats)]),
        ];
        let mut errors = Errors::default();
        let taken = take_annotations(&mut attributes, &mut errors);
        assert!(errors.messages().is_empty());
        let left: Vec<String> = attributes
            .iter()
            .map(|attribute| attribute.meta.to_token_stream().to_string())
            .collect();
        assert_eq!(
            left,
            [
                "doc = \"Reads.\"",
                "cfg_attr (test , inline)",
                "tower :: authorize"
            ]
        );
        assert!(matches!(
            taken.as_slice(),
            [get, post, stats]
                if matches!(get.annotation, Annotation::Route { verb: Verb::Get, .. })
                    && get.cfg.is_always()
                    && matches!(post.annotation, Annotation::Route { verb: Verb::Post, .. })
                    && !post.cfg.is_always()
                    && matches!(stats.annotation, Annotation::Stats)
        ));
    }

    #[test]
    fn mistakes_name_what_exists() {
        let mut attributes: Vec<Attribute> = vec![
            parse_quote!(#[route::options("/")]),
            parse_quote!(#[lifespan::start]),
            parse_quote!(#[route::get]),
            parse_quote!(#[route::get("/", auth = None)]),
            parse_quote!(#[route::get("/", auth = other)]),
            parse_quote!(#[route::get("/", auth = Self::a, auth = none)]),
            parse_quote!(#[route::get("/", cache = true)]),
            parse_quote!(#[stats(all)]),
        ];
        let mut errors = Errors::default();
        take_annotations(&mut attributes, &mut errors);
        let expected = [
            "there is no `route::options`; there are `route::get`",
            "there is no `lifespan::start`; there are `lifespan::setup`",
            "a route needs its path: write `#[route::get(\"/increment\")]`",
            "write `auth = none`",
            "write `auth = Self::other`",
            "`auth` is given twice",
            "unknown route option `cache`",
            "`#[stats]` takes no arguments",
        ];
        let messages = errors.messages();
        assert_eq!(messages.len(), expected.len());
        for (message, expected) in messages.iter().zip(expected) {
            assert!(message.contains(expected), "{message}");
        }
    }
}
