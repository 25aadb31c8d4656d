//! What every annotated function keeps to.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, PatType, Receiver, ReceiverKind, ReturnType, Safety, Signature, Type};

use crate::errors::Errors;
use crate::parse::{last_segment, ungrouped};

/// A function is `async`, or it is not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asyncness {
    Async,
    Sync,
}

/// No `const`, `unsafe`, `extern`, variadic or generic function; `async` as asked.
pub(super) fn check(what: &str, asyncness: Asyncness, signature: &Signature, errors: &mut Errors) {
    let name = &signature.ident;
    match (asyncness, &signature.asyncness) {
        // A `const` function cannot be `async`: that one word is the mistake.
        (Asyncness::Async, None) if signature.constness.is_none() => errors.at(
            signature.fn_token,
            format!("{what} is asynchronous: write `async fn {name}`"),
        ),
        (Asyncness::Sync, Some(token)) => errors.at(
            token,
            format!(
                "{what} answers at once, while requests wait: write `fn {name}` without `async`"
            ),
        ),
        _ => {}
    }
    let plain = |word: &str| format!("{what} is a plain function: remove `{word}`");
    if let Some(token) = &signature.constness {
        errors.at(token, plain("const"));
    }
    match &signature.safety {
        Safety::Unsafe(token) => errors.at(token, plain("unsafe")),
        Safety::Safe(token) => errors.at(token, plain("safe")),
        Safety::Default => {}
    }
    if let Some(abi) = &signature.abi {
        errors.at(abi, plain("extern"));
    }
    if let Some(variadic) = &signature.variadic {
        errors.at(variadic, plain("..."));
    }
    if !signature.generics.params.is_empty() {
        errors.at(
            &signature.generics,
            format!(
                "{what} cannot be generic, because nothing at the call says what to fill in: \
                 use concrete types, or parameters of the impl block"
            ),
        );
    }
}

/// How a function takes `self`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SelfKind {
    /// `&self`
    Shared,
    /// `&mut self`
    Exclusive,
    /// `self`, `mut self`, `self: Arc<Self>`, `&'a self`
    Unsupported,
}

/// How `receiver` takes `self`.
pub(super) fn self_kind(receiver: &Receiver) -> SelfKind {
    match &receiver.kind {
        ReceiverKind::Reference(_, None, None) => SelfKind::Shared,
        ReceiverKind::Reference(_, None, Some(_)) => SelfKind::Exclusive,
        _ => SelfKind::Unsupported,
    }
}

/// The arguments after `self`.
pub(super) fn typed_arguments(signature: &Signature) -> impl Iterator<Item = &PatType> {
    signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(argument) => Some(argument),
        FnArg::Receiver(_) => None,
    })
}

/// The return type, unless it is missing or `()`.
pub(super) fn returned(signature: &Signature) -> Option<&Type> {
    match &signature.output {
        ReturnType::Type(_, ty) => match ungrouped(ty) {
            Type::Tuple(tuple) if tuple.elems.is_empty() => None,
            _ => Some(ty),
        },
        ReturnType::Default => None,
    }
}

/// The return type where an expression may name it, which it may not where it has an `impl Trait`.
pub(super) fn nameable_return(signature: &Signature) -> Option<Type> {
    fn nameable(tokens: TokenStream) -> bool {
        tokens.into_iter().all(|tree| match tree {
            TokenTree::Ident(ident) => ident != "impl",
            TokenTree::Group(group) => nameable(group.stream()),
            _ => true,
        })
    }
    returned(signature)
        .filter(|ty| nameable(ty.to_token_stream()))
        .cloned()
}

/// Whether a type could be a `Result`: an alias may have any name, but these are known not to be.
pub(super) fn may_be_result(ty: &Type) -> bool {
    const NOT_RESULTS: [&str; 6] = ["bool", "Option", "Response", "String", "Self", "StatusCode"];
    last_segment(ty).is_some_and(|segment| NOT_RESULTS.iter().all(|name| segment.ident != name))
}
