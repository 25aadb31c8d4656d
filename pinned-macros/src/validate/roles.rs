//! Which method does what, and how many may.

use syn::Path;
use syn::ext::IdentExt;

use super::AnnotatedMethod;
use crate::errors::Errors;
use crate::model::{Cfg, Verb};
use crate::parse::{
    Annotated, Annotation, Method, RouteArguments, TrayArguments, conditions_of, written,
};

/// The methods of a block by what their attributes make of them.
#[derive(Default)]
pub(super) struct Roles<'a> {
    pub(super) handlers: Vec<HandlerSyntax<'a>>,
    pub(super) setups: Vec<Role<'a>>,
    pub(super) teardowns: Vec<Role<'a>>,
    pub(super) stats: Vec<Role<'a>>,
    pub(super) trays: Vec<TraySyntax<'a>>,
    /// The default authorizer; a second one is already recorded.
    pub(super) authorize: Option<Role<'a>>,
}

/// A method with one attribute that is not a route.
pub(super) struct Role<'a> {
    pub(super) method: &'a Method,
    /// The attribute's path, as written.
    pub(super) path: &'a Path,
    /// The conditions of the method and of the attribute.
    pub(super) cfg: Cfg,
}

/// A method with its route attributes.
pub(super) struct HandlerSyntax<'a> {
    pub(super) method: &'a Method,
    /// The conditions of the method.
    pub(super) cfg: Cfg,
    pub(super) routes: Vec<RouteSyntax<'a>>,
}

/// A method with its tray attribute.
pub(super) struct TraySyntax<'a> {
    pub(super) method: &'a Method,
    pub(super) arguments: &'a TrayArguments,
    /// The conditions of the method and of the attribute.
    pub(super) cfg: Cfg,
}

/// A route attribute.
pub(super) struct RouteSyntax<'a> {
    pub(super) path: &'a Path,
    pub(super) verb: Verb,
    /// `None` after a mistake that is already recorded.
    pub(super) arguments: Option<&'a RouteArguments>,
    pub(super) cfg: Cfg,
}

pub(super) fn assign<'a>(methods: &'a [AnnotatedMethod<'a>], errors: &mut Errors) -> Roles<'a> {
    let mut roles = Roles::default();
    let mut authorizers = Vec::new();
    for AnnotatedMethod {
        method,
        annotations,
    } in methods
    {
        let known: Vec<&Annotated> = annotations
            .iter()
            .filter(|annotated| !matches!(annotated.annotation, Annotation::Unknown))
            .collect();
        let Some(first) = known.first() else {
            continue;
        };
        one_role(&known, errors);
        let method_cfg = conditions_of(&method.attributes);
        let role = Role {
            method,
            path: &first.path,
            cfg: method_cfg.and_all(&first.cfg),
        };
        match &first.annotation {
            Annotation::Route { .. } => roles.handlers.push(HandlerSyntax {
                method,
                routes: known.iter().filter_map(|a| route(a, &method_cfg)).collect(),
                cfg: method_cfg,
            }),
            Annotation::Setup => roles.setups.push(role),
            Annotation::Teardown => roles.teardowns.push(role),
            Annotation::Stats => roles.stats.push(role),
            Annotation::Authorize => authorizers.push(role),
            Annotation::Tray(arguments) => roles.trays.push(TraySyntax {
                method,
                arguments,
                cfg: role.cfg,
            }),
            Annotation::Unknown => {}
        }
    }
    for kind in [&roles.setups, &roles.teardowns, &roles.stats, &authorizers] {
        at_most_one(kind, errors);
    }
    for authorize in authorizers.iter().filter(|role| !role.cfg.is_always()) {
        errors.at(
            authorize.path,
            "`#[authorize]` cannot be conditional: compiled out, it would open every route; \
             put the condition into its body",
        );
    }
    roles.authorize = authorizers.into_iter().next();
    roles
}

fn route<'a>(annotated: &'a Annotated, method_cfg: &Cfg) -> Option<RouteSyntax<'a>> {
    match &annotated.annotation {
        Annotation::Route { verb, arguments } => Some(RouteSyntax {
            path: &annotated.path,
            verb: *verb,
            arguments: arguments.as_ref(),
            cfg: method_cfg.and_all(&annotated.cfg),
        }),
        _ => None,
    }
}

/// A method has routes, or one other attribute.
fn one_role(annotations: &[&Annotated], errors: &mut Errors) {
    let is_route = |a: &Annotated| matches!(a.annotation, Annotation::Route { .. });
    let Some((first, others)) = annotations.split_first() else {
        return;
    };
    for other in others {
        if !(is_route(first) && is_route(other)) {
            errors.at(
                &other.path,
                format!(
                    "this method is already `#[{}]`, and a method does one thing: \
                     give `#[{}]` a method of its own",
                    written(&first.path),
                    written(&other.path)
                ),
            );
        }
    }
}

/// Two are allowed only where both are conditional, and then rustc sees at most one.
fn at_most_one(roles: &[Role<'_>], errors: &mut Errors) {
    let Some((first, others)) = roles.split_first() else {
        return;
    };
    for other in others {
        if first.cfg.is_always() || other.cfg.is_always() {
            errors.at(
                other.path,
                format!(
                    "a block has at most one `#[{}]`, and `{}` is it already",
                    written(other.path),
                    first.method.signature.ident.unraw()
                ),
            );
        }
    }
}
