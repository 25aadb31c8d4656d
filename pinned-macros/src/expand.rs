//! The way of one attribute from tokens to tokens.

use proc_macro2::{Span, TokenStream};
use quote::quote;

use crate::codegen;
use crate::errors::Errors;
use crate::parse::{ApiArguments, parse_block};
use crate::validate;

/// `#[pinned_api]`: the block as it was, without the attributes that are ours, and the implementation of
/// `PinnedApi`; after a mistake the errors and a stub of the implementation, so that one mistake does not
/// become ten.
pub(crate) fn pinned_api(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut block = match parse_block(item.clone()) {
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
                false => codegen::stub(&api.target),
            };
            quote!(#errors #stub)
        }
    };
    quote!(#block #generated)
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
