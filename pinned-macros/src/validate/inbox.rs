//! `#[inbox]` (T1.6, T13.1).

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::ext::IdentExt;
use syn::{GenericParam, Ident, ItemImpl, Pat, PatType, Type, Visibility};

use super::handler::tidy;
use super::shape::{self, Asyncness, SelfKind, nameable_return, self_kind, typed_arguments};
use crate::errors::Errors;
use crate::krate;
use crate::model::{Admission, AdmissionArgument, Inbox};
use crate::parse::{
    Block, BlockItem, InboxArguments, Method, conditions_of, docs_of, last_segment, ungrouped,
};

const SHAPE: &str = "write `fn enqueue(&mut self, item: Item)`, or with `-> Result<(), E>`";

/// The methods of `TrayHandle`: a call of that name would mean them.
const TAKEN: [&str; 20] = [
    "admit",
    "attempts",
    "cancel_dispatch",
    "clone",
    "close",
    "delete",
    "deleted",
    "entry",
    "id",
    "is_marked",
    "is_parked",
    "is_restored",
    "is_retiring",
    "key",
    "kick",
    "read",
    "remove_entry",
    "set_entry",
    "unpark",
    "update",
];

/// Checks a block. The model is whole only if nothing was recorded in `errors`; `None` when there can be no trait.
pub(crate) fn lower(
    block: &Block,
    arguments: InboxArguments,
    errors: &mut Errors,
) -> Option<Inbox> {
    let header = &block.header;
    if let Some((trait_path, _)) = &header.trait_ {
        errors.at(
            trait_path,
            "`#[inbox]` stands on an inherent impl block, not on a trait's: write `impl Work { .. }`",
        );
        return None;
    }
    check_header(header, errors);
    let methods: Vec<&Method> = block
        .items
        .iter()
        .filter_map(|item| match item {
            BlockItem::Method(method) => Some(&**method),
            BlockItem::Other(_) => None,
        })
        .collect();
    if methods.is_empty() {
        errors.at(
            &header.self_ty,
            format!("an inbox without methods admits nothing: {SHAPE}"),
        );
    }
    let visibility = common_visibility(&methods, errors);
    let admissions: Vec<Admission> = methods
        .iter()
        .filter_map(|method| lower_method(method, errors))
        .collect();
    let name = match arguments.name {
        Some(name) => name,
        None => {
            let of = &last_segment(&header.self_ty)?.ident;
            format_ident!("{}Inbox", of.unraw(), span = of.span())
        }
    };
    Some(Inbox {
        private: krate::private(arguments.krate.as_ref()),
        tray: (*header.self_ty).clone(),
        generics: header.generics.clone(),
        name,
        visibility,
        admissions,
        cfg: conditions_of(&header.attrs),
    })
}

fn check_header(header: &ItemImpl, errors: &mut Errors) {
    if !matches!(ungrouped(&header.self_ty), Type::Path(_)) {
        errors.at(
            &header.self_ty,
            "`#[inbox]` stands on an impl block of a tray's struct: name the struct here",
        );
    }
    for param in &header.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            errors.at(
                lifetime,
                "a tray's struct cannot borrow: let it own its data and drop the lifetime",
            );
        }
    }
}

/// One trait has one visibility, and so have its methods.
fn common_visibility(methods: &[&Method], errors: &mut Errors) -> Visibility {
    let Some((first, others)) = methods.split_first() else {
        return Visibility::Inherited;
    };
    let text = |method: &Method| method.visibility.to_token_stream().to_string();
    for other in others {
        if text(first) == text(other) {
            continue;
        }
        let message = format!(
            "the methods of an inbox are called through one trait, so they are visible alike, and `{}` is not as this \
             one: write a second `#[inbox(trait = ..)]` block",
            first.signature.ident.unraw()
        );
        match &other.visibility {
            Visibility::Inherited => errors.at(&other.signature.ident, message),
            visibility => errors.at(visibility, message),
        }
    }
    first.visibility.clone()
}

/// `fn(&mut self, ..)`, with `()` or a `Result`
fn lower_method(method: &Method, errors: &mut Errors) -> Option<Admission> {
    let signature = &method.signature;
    let name = signature.ident.unraw();
    let mut plain = signature.clone();
    if let Some(token) = plain.asyncness.take() {
        errors.at(
            token,
            format!(
                "an admission is one step, with nothing in between, and cannot wait: write `fn {name}` without `async`, \
                 and wait in the tray's handler, or before the call"
            ),
        );
    }
    shape::check("an admission", Asyncness::Sync, &plain, errors);
    if TAKEN.iter().any(|taken| name == taken) {
        errors.at(
            &signature.ident,
            format!("`TrayHandle` has a method `{name}` of its own, which a call would mean: choose another name"),
        );
    }
    let receives_tray = match signature.receiver() {
        Some(receiver) if self_kind(receiver) == SelfKind::Exclusive => true,
        Some(receiver) => {
            let found = tidy(&receiver.to_token_stream());
            errors.at(
                receiver,
                format!("an admission changes the tray that it is given, so it takes `&mut self`, not `{found}`: {SHAPE}"),
            );
            true
        }
        None => {
            errors.at(
                &signature.ident,
                format!(
                    "an admission takes `&mut self`: {SHAPE}. What is no admission stands in an impl block without `#[inbox]`"
                ),
            );
            false
        }
    };
    let arguments: Vec<_> = typed_arguments(signature)
        .map(|argument| lower_argument(argument, errors))
        .collect();
    if !receives_tray || !signature.generics.params.is_empty() {
        return None;
    }
    Some(Admission {
        docs: docs_of(&method.attributes),
        ident: signature.ident.clone(),
        arguments: arguments.into_iter().collect::<Option<_>>()?,
        output: nameable_return(signature),
        cfg: conditions_of(&method.attributes),
    })
}

fn lower_argument(argument: &PatType, errors: &mut Errors) -> Option<AdmissionArgument> {
    let ident = name_of(&argument.pat, errors);
    match ungrouped(&argument.ty) {
        Type::Reference(_) => errors.at(
            &argument.ty,
            "an admission owns what it is given, because that goes into the tray: take it by value, such as `String` \
             for `&str`",
        ),
        Type::ImplTrait(_) => errors.at(
            &argument.ty,
            "an admission cannot be generic: name a type here",
        ),
        ty => {
            if let Some(word) = self_word(ty.to_token_stream()) {
                errors.at(
                    word,
                    "this type stands in a trait too, where `Self` is another: name the tray's struct",
                );
                return None;
            }
        }
    }
    Some(AdmissionArgument {
        ident: ident?,
        ty: (*argument.ty).clone(),
        cfg: conditions_of(&argument.attrs),
    })
}

fn name_of(pattern: &Pat, errors: &mut Errors) -> Option<Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
            Some(name.ident.clone())
        }
        _ => {
            errors.at(
                pattern,
                "an argument of an admission has a plain name, because it is handed on: take it apart in the body",
            );
            None
        }
    }
}

/// The first `Self` among the tokens.
fn self_word(tokens: TokenStream) -> Option<Ident> {
    tokens.into_iter().find_map(|tree| match tree {
        TokenTree::Ident(ident) if ident == "Self" => Some(ident),
        TokenTree::Group(group) => self_word(group.stream()),
        _ => None,
    })
}
