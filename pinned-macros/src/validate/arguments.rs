//! What a handler may take and return.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Pat, PatType, Signature, Type};

use super::path::RESERVED;
use super::shape;
use crate::errors::Errors;
use crate::model::{Route, RouteAuth};
use crate::parse::{argument_of, ungrouped};

/// The host's own names (H1.9).
pub(super) fn check_name(argument: &PatType, errors: &mut Errors) {
    if let Pat::Ident(pattern) = &*argument.pat {
        let name = pattern.ident.unraw().to_string();
        if RESERVED.contains(&name.as_str()) {
            errors.at(
                &pattern.ident,
                format!(
                    "`{name}` is reserved in handlers: choose another name (for the instance's id take \
                     `ctx: Context` and ask `ctx.id()`)"
                ),
            );
        }
    }
}

/// An extractor owns what it took from the request.
pub(super) fn check_type(argument: &PatType, errors: &mut Errors) {
    match ungrouped(&argument.ty) {
        Type::Reference(_) => errors.at(
            &argument.ty,
            "a handler owns its arguments, because they are extracted from the request: take an extractor \
             such as `Json<T>`, `Path<T>`, `String` or `Context`",
        ),
        Type::ImplTrait(_) => errors.at(
            &argument.ty,
            "nothing at the call says which type this is: name a concrete extractor",
        ),
        Type::Infer(_) => errors.at(&argument.ty, "name the extractor's type"),
        ty if borrows(ty.to_token_stream()) => errors.at(
            &argument.ty,
            "an extractor cannot borrow from the request: use a type that owns its data, such as `String` \
             for `&str`",
        ),
        _ => {}
    }
}

/// A response leaves the turn behind, and with it whatever the instance lent.
pub(super) fn check_return(signature: &Signature, errors: &mut Errors) {
    let Some(ty) = shape::returned(signature) else {
        return;
    };
    if let Type::Reference(reference) = ungrouped(ty)
        && reference
            .lifetime
            .as_ref()
            .is_none_or(|lifetime| lifetime.ident != "static")
    {
        errors.at(
            ty,
            "a response outlives the turn and cannot borrow from the instance: return an owned value such as \
             `String`, or `Json<..>`, which is written out under the turn",
        );
    }
}

/// Whether a lifetime other than `'static` or a reference without one stands anywhere in the tokens.
fn borrows(tokens: TokenStream) -> bool {
    let mut trees = tokens.into_iter().peekable();
    let mut borrowed = false;
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                borrowed |=
                    !matches!(trees.peek(), Some(TokenTree::Ident(name)) if name == "static");
            }
            TokenTree::Punct(punct) if punct.as_char() == '&' => {
                borrowed |=
                    !matches!(trees.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '\'');
            }
            TokenTree::Group(group) => borrowed |= borrows(group.stream()),
            _ => {}
        }
    }
    borrowed
}

/// `Auth<T>` needs an authorizer on every route of the handler.
pub(super) fn check_caller(argument: &PatType, routes: &[Route], errors: &mut Errors) {
    if argument_of(&argument.ty, "Auth").is_none() {
        return;
    }
    let Some(open) = routes
        .iter()
        .find(|route| route.auth.authorizer().is_none())
    else {
        return;
    };
    let path = open.path.value();
    let message = match open.auth {
        RouteAuth::Public => format!(
            "the route `{path}` is public (`auth = none`) and has no caller: remove this argument or the \
             `auth = none`"
        ),
        _ => format!(
            "the route `{path}` has no caller, because the block has no authorizer: add an `#[authorize]` \
             function or remove this argument"
        ),
    };
    errors.at(&argument.ty, message);
}
