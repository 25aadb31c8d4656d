//! `#[tray]` on a method of a block.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{FnArg, Ident, PatType, Signature, Type, parse_quote};

use super::AnnotatedMethod;
use super::handler::{own_instance, tidy};
use super::roles::TraySyntax;
use super::shape::{self, Asyncness, nameable_return, typed_arguments};
use crate::errors::Errors;
use crate::model::{Form, HookFunction, Tray, TrayHook};
use crate::parse::{
    Half, HookArgument, Method, TrayArguments, argument_of, docs_of, last_segment, ungrouped,
};

const SHAPE: &str =
    "write `async fn work(this: Instance<Self>, item: Item, dispatch: Dispatch<Work>)`";
const HOOK: &str = "write `async fn opened(this: Instance<Self>, tray: TrayHandle<Work>)`";

/// `async fn(this: Instance<Self>, item: Item, dispatch: Dispatch<Work>)`; whole only if nothing was recorded.
pub(super) fn lower(
    syntax: &TraySyntax<'_>,
    methods: &[AnnotatedMethod<'_>],
    self_ty: &Type,
    errors: &mut Errors,
) -> Option<Tray> {
    let TraySyntax {
        method,
        arguments,
        cfg,
    } = syntax;
    let signature = &method.signature;
    let name = signature.ident.unraw();
    let what = format!("the tray handler `{name}`");
    shape::check(&what, Asyncness::Async, signature, errors);
    let given = without_instance(&what, signature, self_ty, errors);
    let worked_on = item_and_dispatch(&name, signature, &given, errors);
    let hooks = pair(arguments, methods, self_ty, errors);
    let (item, tray) = worked_on?;
    Some(Tray {
        ident: signature.ident.clone(),
        visibility: method.visibility.clone(),
        docs: docs_of(&method.attributes),
        form: form(arguments, errors),
        item,
        tray,
        output: nameable_return(signature),
        hooks,
        cfg: cfg.clone(),
    })
}

/// The name of a tray is that of its rows, so it is there once. Another of that name is dropped, after an error.
pub(super) fn check_names(trays: Vec<Tray>, errors: &mut Errors) -> Vec<Tray> {
    let mut named: Vec<Tray> = Vec::new();
    for tray in trays {
        let name = tray.ident.unraw();
        let again = named.iter().any(|earlier| {
            earlier.ident.unraw() == name && (earlier.cfg.is_always() || tray.cfg.is_always())
        });
        if again {
            errors.at(
                &tray.ident,
                format!(
                    "there is a tray `{name}` already, and its rows are found by that name: give this one another"
                ),
            );
        } else {
            named.push(tray);
        }
    }
    named
}

fn form(arguments: &TrayArguments, errors: &mut Errors) -> Form {
    match (&arguments.map, &arguments.always_open) {
        (None, None) => Form::Single,
        (None, Some(word)) => {
            errors.at(
                word,
                "a single tray is always open: remove `always_open`, or write `map` too for trays by ids of your own",
            );
            Form::Single
        }
        (Some(_), always_open) => Form::Map {
            always_open: always_open.is_some(),
        },
    }
}

/// The arguments after `this: Instance<Self>`.
fn without_instance<'a>(
    what: &str,
    signature: &'a Signature,
    self_ty: &Type,
    errors: &mut Errors,
) -> Vec<&'a PatType> {
    let is_instance =
        |argument: &PatType| last_segment(&argument.ty).is_some_and(|s| s.ident == "Instance");
    match signature.inputs.first() {
        Some(FnArg::Receiver(receiver)) => {
            let found = tidy(&receiver.to_token_stream());
            errors.at(
                receiver,
                format!(
                    "a tray's handler may run for long, and with `{found}` it would hold a turn all the while: take \
                     `this: Instance<Self>`, and `this.read().await` or `this.write().await` where a turn is needed"
                ),
            );
            typed_arguments(signature).collect()
        }
        Some(FnArg::Typed(first)) if is_instance(first) => {
            own_instance("a tray's handler", first, self_ty, errors);
            typed_arguments(signature).skip(1).collect()
        }
        _ => {
            errors.at(
                &signature.ident,
                format!("{what} does not take its instance first: {SHAPE}"),
            );
            typed_arguments(signature).collect()
        }
    }
}

/// The types of the item and of the tray. A mistake in the item alone leaves the tray known.
fn item_and_dispatch(
    name: &Ident,
    signature: &Signature,
    given: &[&PatType],
    errors: &mut Errors,
) -> Option<(Type, Type)> {
    let is_dispatch =
        |argument: &PatType| last_segment(&argument.ty).is_some_and(|s| s.ident == "Dispatch");
    let dispatch = given.iter().find(|argument| is_dispatch(argument));
    let items: Vec<_> = given
        .iter()
        .filter(|argument| !is_dispatch(argument))
        .collect();
    let at_name = &signature.ident;
    match (given, items.as_slice(), dispatch) {
        (_, [], None) => errors.at(
            at_name,
            format!("the tray handler `{name}` takes neither an item nor its dispatch: {SHAPE}"),
        ),
        (_, [], Some(_)) => errors.at(
            at_name,
            format!("the tray handler `{name}` does not take the item that it is to work on: {SHAPE}"),
        ),
        (_, [_], None) => errors.at(
            at_name,
            format!(
                "the tray handler `{name}` does not take its dispatch, whose type says which struct's tray it works \
                 for: {SHAPE}"
            ),
        ),
        (_, [_, other], None) => errors.at(
            &other.ty,
            format!("after the item comes the dispatch, written `Dispatch<Work>`, whose type says which struct's tray this is: {SHAPE}"),
        ),
        ([first, _], _, Some(_)) if is_dispatch(first) => errors.at(
            &first.ty,
            format!("the item comes before its dispatch: {SHAPE}"),
        ),
        ([_, _], ..) => {}
        ([_, _, extra, ..], ..) => errors.at(
            extra,
            format!("a tray's handler takes its instance, the item and its dispatch, and nothing else: {SHAPE}"),
        ),
        _ => {}
    }
    let dispatch = dispatch?;
    let Some(tray) = argument_of(&dispatch.ty, "Dispatch") else {
        errors.at(
            &dispatch.ty,
            format!(
                "the dispatch says which struct's tray this is, written `Dispatch<Work>`: {SHAPE}"
            ),
        );
        return None;
    };
    let Some(item) = items.first() else {
        // Any type: the build has failed, and the tray's constant is there.
        return Some((parse_quote!(()), tray.clone()));
    };
    match ungrouped(&item.ty) {
        Type::Reference(_) => errors.at(&item.ty, "a tray's handler owns its item: remove the `&`"),
        Type::ImplTrait(_) | Type::Infer(_) => {
            errors.at(&item.ty, "name the type of the tray's items here")
        }
        _ => {}
    }
    Some(((*item.ty).clone(), tray.clone()))
}

/// Pairs `on_open` with the `on_close` that follows it.
fn pair(
    arguments: &TrayArguments,
    methods: &[AnnotatedMethod<'_>],
    self_ty: &Type,
    errors: &mut Errors,
) -> Vec<TrayHook> {
    let mut hooks: Vec<TrayHook> = Vec::new();
    for HookArgument { half, function } in &arguments.hooks {
        let Some(function) = hook_function(function, methods, self_ty, errors) else {
            continue;
        };
        match (half, hooks.last_mut()) {
            (Half::Close, Some(last)) if last.close.is_none() => last.close = Some(function),
            (Half::Close, _) => hooks.push(TrayHook {
                open: None,
                close: Some(function),
            }),
            (Half::Open, _) => hooks.push(TrayHook {
                open: Some(function),
                close: None,
            }),
        }
    }
    hooks
}

fn hook_function(
    name: &Ident,
    methods: &[AnnotatedMethod<'_>],
    self_ty: &Type,
    errors: &mut Errors,
) -> Option<HookFunction> {
    let mut found = methods
        .iter()
        .map(|m| m.method)
        .filter(|m| m.signature.ident == *name);
    let Some(first) = found.next() else {
        errors.at(
            name,
            format!("there is no function `{name}` in this block: to add one, write `async fn {name}(this: Instance<Self>, tray: TrayHandle<Work>)`"),
        );
        return None;
    };
    // Variants under different conditions share the name; each must have the shape.
    let mut ok = check_hook(first, self_ty, errors);
    for variant in found {
        ok &= check_hook(variant, self_ty, errors);
    }
    ok.then(|| HookFunction {
        ident: name.clone(),
        output: nameable_return(&first.signature),
    })
}

/// `async fn(this: Instance<Self>, tray: TrayHandle<Work>)`
fn check_hook(method: &Method, self_ty: &Type, errors: &mut Errors) -> bool {
    let signature = &method.signature;
    let name = signature.ident.unraw();
    shape::check(
        &format!("the hook `{name}` of a tray"),
        Asyncness::Async,
        signature,
        errors,
    );
    if let Some(receiver) = signature.receiver() {
        errors.at(receiver, format!("a hook of a tray holds no turn: {HOOK}"));
        return false;
    }
    let arguments: Vec<_> = typed_arguments(signature).collect();
    match arguments.as_slice() {
        [this, _] => own_instance("a tray's hook", this, self_ty, errors),
        [_, _, extra, ..] => {
            errors.at(
                extra,
                format!("a hook of a tray takes two arguments: {HOOK}"),
            );
            false
        }
        _ => {
            errors.at(
                &signature.ident,
                format!("a hook of a tray takes its instance and the tray: {HOOK}"),
            );
            false
        }
    }
}
