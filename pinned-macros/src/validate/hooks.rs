//! `#[lifespan::setup]`, `#[lifespan::teardown]`, `#[stats]`.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Signature, Type};

use super::handler::is_self;
use super::roles::Role;
use super::shape::{
    self, Asyncness, SelfKind, nameable_return, returned, self_kind, typed_arguments,
};
use crate::errors::Errors;
use crate::model::{Hook, Setup};
use crate::parse::{argument_of, last_segment, ungrouped};

const SETUP: &str = "write `async fn setup(ctx: Context) -> Self` or `-> Result<Self, E>`";
const STORED: &str = "besides its `Context` a setup takes only what is stored of the instance: write \
                      `async fn setup(ctx: Context, stored: Stored<Self>) -> Self`";
const TEARDOWN: &str = "write `async fn teardown(&mut self)`";
const STATS: &str = "write `fn stats(&self) -> impl Serialize`";

/// `async fn(ctx: Context) -> Self | Result<Self, E>`, for a durable struct with `stored: Stored<Self>` too
pub(super) fn setup(role: &Role<'_>, self_ty: &Type, errors: &mut Errors) -> Option<Setup> {
    let signature = &role.method.signature;
    shape::check("a setup", Asyncness::Async, signature, errors);
    let mut ok = true;
    let mut refuse = |tokens: &dyn ToTokens, why: &str| {
        errors.at(tokens.to_token_stream(), format!("{why}: {SETUP}"));
        ok = false;
    };
    if let Some(receiver) = signature.receiver() {
        refuse(
            receiver,
            "a setup has no `self`, because it builds the instance",
        );
    }
    let arguments: Vec<_> = typed_arguments(signature).collect();
    match arguments.first() {
        Some(ctx) if matches!(ungrouped(&ctx.ty), Type::Reference(_)) => {
            refuse(&ctx.ty, "a setup owns its `Context`");
        }
        None if signature.receiver().is_none() => {
            refuse(&signature.ident, "a setup takes the instance's `Context`");
        }
        _ => {}
    }
    if returned(signature).is_none() {
        refuse(&signature.ident, "a setup returns the instance");
    }
    let stored = arguments.get(1).map(|stored| &*stored.ty);
    if let Some(stored) = stored.filter(|ty| !is_stored(ty, self_ty)) {
        errors.at(stored, STORED);
        ok = false;
    }
    if let Some(extra) = arguments.get(2) {
        errors.at(extra, STORED);
        ok = false;
    }
    ok.then(|| Setup {
        hook: hook(role),
        stored: stored.cloned(),
    })
}

/// `async fn(&mut self)`
pub(super) fn teardown(role: &Role<'_>, errors: &mut Errors) -> Option<Hook> {
    let signature = &role.method.signature;
    shape::check("a teardown", Asyncness::Async, signature, errors);
    takes_only_self(
        signature,
        SelfKind::Exclusive,
        "a teardown",
        TEARDOWN,
        errors,
    )
    .then(|| hook(role))
}

/// `fn(&self) -> impl Serialize`
pub(super) fn stats(role: &Role<'_>, errors: &mut Errors) -> Option<Hook> {
    let signature = &role.method.signature;
    shape::check("a stats function", Asyncness::Sync, signature, errors);
    if returned(signature).is_none() {
        errors.at(
            &signature.ident,
            format!("a stats function returns what goes into the instance's row: {STATS}"),
        );
    }
    takes_only_self(
        signature,
        SelfKind::Shared,
        "a stats function",
        STATS,
        errors,
    )
    .then(|| hook(role))
}

fn takes_only_self(
    signature: &Signature,
    wanted: SelfKind,
    what: &str,
    write: &str,
    errors: &mut Errors,
) -> bool {
    let written = match wanted {
        SelfKind::Exclusive => "&mut self",
        _ => "&self",
    };
    let mut ok = true;
    match signature.receiver() {
        Some(receiver) if self_kind(receiver) == wanted => {}
        Some(receiver) => {
            errors.at(receiver, format!("{what} takes `{written}`: {write}"));
            ok = false;
        }
        None => {
            errors.at(
                &signature.ident,
                format!("{what} takes `{written}`: {write}"),
            );
            ok = false;
        }
    }
    for extra in typed_arguments(signature) {
        errors.at(
            extra,
            format!("{what} takes nothing but `{written}`: {write}"),
        );
        ok = false;
    }
    ok
}

/// `Stored<Self>`, or the struct that it stands for: `AccountStored` of `Account`.
fn is_stored(ty: &Type, self_ty: &Type) -> bool {
    let of = argument_of(ty, "Stored");
    let names = last_segment(ty).zip(last_segment(self_ty));
    of.is_some_and(|of| is_self(of, self_ty))
        || names.is_some_and(|(stored, own)| stored.ident == format!("{}Stored", own.ident.unraw()))
}

fn hook(role: &Role<'_>) -> Hook {
    let signature = &role.method.signature;
    Hook {
        ident: signature.ident.clone(),
        output: nameable_return(signature),
        cfg: role.cfg.clone(),
    }
}
