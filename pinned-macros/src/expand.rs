//! The way of one attribute from tokens to tokens.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::DeriveInput;

use crate::codegen;
use crate::errors::Errors;
use crate::parse::{ApiArguments, InboxArguments, parse_block};
use crate::validate;

/// `#[pinned_api]`: the block as it was, without the attributes that are ours, and the implementation of
/// `PinnedApi`; after a mistake the errors and a stub of the implementation, so that one mistake does not
/// become ten.
pub(crate) fn pinned_api(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut block = match parse_block("pinned_api", item.clone()) {
        Ok(block) => block,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#item #error);
        }
    };
    let mut errors = Errors::default();
    let arguments = ApiArguments::read(arguments, &mut errors);
    let api = validate::lower(&mut block, arguments, Span::call_site(), &mut errors);
    let generated = match errors.into_tokens() {
        None => codegen::implementation(&api),
        Some(errors) => {
            // A trait impl leaves the struct free to have a block of its own; what borrows can have none.
            let borrows = api.target.generics.lifetimes().next().is_some();
            let stub = match block.header.trait_.is_some() || borrows {
                true => codegen::imports(&api.target),
                false => codegen::stub(&api),
            };
            quote!(#errors #stub)
        }
    };
    quote!(#block #generated)
}

/// `#[inbox]`: the block as it was, and beside it the trait by which it is called on a handle.
pub(crate) fn inbox(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let block = match parse_block("inbox", item.clone()) {
        Ok(block) => block,
        Err(error) => {
            let error = error.into_compile_error();
            return quote!(#item #error);
        }
    };
    let mut errors = Errors::default();
    let arguments = InboxArguments::read(arguments, &mut errors);
    let inbox = validate::lower_inbox(&block, arguments, &mut errors);
    let errors = errors.into_tokens();
    let generated = inbox.map(|inbox| codegen::inbox(&inbox, errors.is_some()));
    quote!(#block #errors #generated)
}

/// `#[derive(Tray)]`.
pub(crate) fn tray(item: TokenStream) -> TokenStream {
    let input = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let tray = validate::lower_tray_struct(&input, &mut errors);
    match errors.into_tokens() {
        None => codegen::tray(&tray),
        Some(errors) => {
            let stub = (!borrows(&input)).then(|| codegen::tray_stub(&tray));
            quote!(#errors #stub)
        }
    }
}

/// `#[derive(Durable)]`.
pub(crate) fn durable(item: TokenStream) -> TokenStream {
    let input = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let durable = validate::lower_durable_struct(&input, &mut errors);
    match errors.into_tokens() {
        None => codegen::durable(&durable),
        Some(errors) => {
            let stub = (!borrows(&input)).then(|| codegen::durable_stub(&durable));
            quote!(#errors #stub)
        }
    }
}

/// What borrows can implement nothing of ours.
fn borrows(input: &DeriveInput) -> bool {
    input.generics.lifetimes().next().is_some()
}

/// An attribute that `#[pinned_api]` should have consumed and did not.
pub(crate) fn misplaced(written: &str, item: TokenStream) -> TokenStream {
    let message = format!(
        "`#[{written}]` works only on a method of a `#[pinned_api]` block, under exactly this name: \
         put `#[pinned_api(\"/namespace\")]` on the impl block around it"
    );
    let error = syn::Error::new(Span::call_site(), message).into_compile_error();
    quote!(#item #error)
}
