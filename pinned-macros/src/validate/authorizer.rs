//! `#[authorize]`, and the functions that `auth = Self::other` names.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Ident, Type};

use super::AnnotatedMethod;
use super::roles::Roles;
use super::shape::{self, Asyncness, may_be_result, returned, typed_arguments};
use crate::errors::Errors;
use crate::model::Authorizer;
use crate::parse::{AuthArgument, Method, conditions_of, ungrouped};

const SHAPE: &str =
    "write `async fn authorize(ctx: &Context, conn: &Connection) -> Result<Caller, Denied>`";

/// The authorizers of a block: the default one and those that routes name, each once.
pub(super) fn lower(
    methods: &[AnnotatedMethod<'_>],
    roles: &Roles<'_>,
    errors: &mut Errors,
) -> Vec<Authorizer> {
    let mut names: Vec<Ident> = Vec::new();
    let mut authorizers = Vec::new();
    if let Some(default) = &roles.authorize {
        names.push(default.method.signature.ident.clone());
        authorizers.extend(check(default.method, errors));
    }
    let routes = roles.handlers.iter().flat_map(|handler| &handler.routes);
    for arguments in routes.filter_map(|route| route.arguments) {
        let Some(AuthArgument::Function(name)) = &arguments.auth else {
            continue;
        };
        if names.contains(name) {
            continue;
        }
        names.push(name.clone());
        let mut found = methods
            .iter()
            .map(|m| m.method)
            .filter(|m| m.signature.ident == *name);
        match found.next() {
            // Variants under different conditions share the name; each must have the shape.
            Some(first) => {
                for method in std::iter::once(first).chain(found) {
                    authorizers.extend(check(method, errors));
                }
            }
            None => errors.at(name, missing(name, roles)),
        }
    }
    authorizers
}

fn missing(name: &Ident, roles: &Roles<'_>) -> String {
    let default = match &roles.authorize {
        Some(default) => format!(
            " (leave `auth` out for `{}`)",
            default.method.signature.ident.unraw()
        ),
        None => String::new(),
    };
    format!(
        "there is no function `{name}` in this block{default}: to add one, write `async fn {name}(ctx: &Context, conn: \
         &Connection) -> Result<Caller, Denied>`"
    )
}

/// `async fn(ctx: &Context, conn: &Connection) -> Result<Caller, Denied>`
fn check(method: &Method, errors: &mut Errors) -> Option<Authorizer> {
    let signature = &method.signature;
    shape::check("an authorizer", Asyncness::Async, signature, errors);
    let mut ok = true;
    let mut refuse = |tokens: &dyn ToTokens, why: &str| {
        errors.at(tokens.to_token_stream(), format!("{why}: {SHAPE}"));
        ok = false;
    };
    if let Some(receiver) = signature.receiver() {
        refuse(
            receiver,
            "an authorizer has no `self`, because it runs before setup",
        );
    } else {
        let arguments: Vec<_> = typed_arguments(signature).collect();
        for argument in arguments.iter().take(2) {
            let by_shared_reference = matches!(
                ungrouped(&argument.ty),
                Type::Reference(reference) if reference.mutability.is_none()
            );
            if !by_shared_reference {
                refuse(
                    &argument.ty,
                    "an authorizer looks at the request by shared reference",
                );
            }
        }
        match arguments.as_slice() {
            [_, _] => {}
            [_, _, extra, ..] => refuse(extra, "an authorizer takes two arguments"),
            _ => refuse(&signature.ident, "an authorizer takes two arguments"),
        }
    }
    let output = returned(signature);
    match output {
        None => refuse(&signature.ident, "an authorizer returns a `Result`"),
        Some(ty) if !may_be_result(ty) => refuse(ty, "an authorizer returns a `Result`"),
        Some(_) => {}
    }
    let output = output.filter(|_| ok)?;
    Some(Authorizer {
        ident: signature.ident.clone(),
        output: output.clone(),
        cfg: conditions_of(&method.attributes),
    })
}
