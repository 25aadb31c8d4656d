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

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use super::{durable, inbox, tray};

    fn rust(tokens: TokenStream) -> String {
        let text = tokens.to_string();
        assert!(syn::parse_file(&text).is_ok(), "not Rust: {text}");
        text
    }

    fn messages(tokens: TokenStream) -> usize {
        rust(tokens).matches("compile_error").count()
    }

    #[test]
    fn the_items_come_from_the_field_that_says_so_or_from_the_only_queue() {
        let only = rust(tray(quote! {
            #[tray(crate = ::pinned)]
            struct Work { done: Persistent<u64>, queue: some::PersistentQueue<u64> }
        }));
        assert!(only.contains("& mut self . queue"), "{only}");
        let said = rust(tray(quote! {
            #[tray(crate = ::pinned)]
            struct Work { one: PersistentQueue<u64>, #[tray(items)] two: Alias, r#type: Persistent<u64> }
        }));
        assert!(
            said.contains("type Item = < Alias as :: pinned :: __private :: ItemQueue > :: Item"),
            "{said}"
        );
        assert!(said.contains("visit (\"type\" ,"), "{said}");
    }

    #[test]
    fn settings_are_written_out() {
        let text = rust(tray(quote! {
            #[tray(version = -2, max_attempts = 1_000, dispatch_timeout = "1m", crate = ::pinned)]
            struct Work { queue: PersistentQueue<u64> }
        }));
        for expected in [
            "version : - 2i64",
            "max_attempts : 1000",
            "dispatch_timeout : :: pinned :: __private :: Duration :: from_millis (60000u64)",
            ".. :: pinned :: __private :: TraySettings :: DEFAULT",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
    }

    #[test]
    fn what_is_stored_has_a_struct_of_its_own() {
        let text = rust(durable(quote! {
            #[durable(crate = ::pinned)]
            pub struct Counter<S: Store> where S: Clone {
                /// How many.
                pub count: Persistent<u64>,
                #[durable(initial = S::LIMIT)]
                limit: Persistent<u64>,
                store: S,
            }
        }));
        for expected in [
            "pub struct CounterStored < S : Store > where S : Clone",
            "pub count : Persistent < u64 >",
            "PhantomData < fn () -> (S ,) >",
            "with_initial (|| S :: LIMIT)",
            "DurableByDefault for Counter < S > where S : Clone",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        let by_setup = rust(durable(quote! {
            #[durable(setup, crate = ::pinned)]
            struct Counter { count: Persistent<u64>, client: Client }
        }));
        assert!(!by_setup.contains("DurableByDefault"), "{by_setup}");
    }

    #[test]
    fn every_mistake_of_a_struct_is_told_at_once() {
        let mistakes = messages(tray(quote! {
            #[tray(version = "one", attempts = 3, source, source, crate = 5)]
            struct Work<'a> { #[tray(items, skip)] queue: PersistentQueue<&'a str>, #[tray(later)] other: u64 }
        }));
        assert_eq!(mistakes, 8);
        let mistakes = messages(durable(quote! {
            #[durable(later, crate)]
            struct Counter { #[durable(skip, initial = 1)] count: Persistent<u64>, queue: PersistentQueue<u64> }
        }));
        assert_eq!(mistakes, 5);
    }

    #[test]
    fn an_inbox_is_a_trait_beside_its_block() {
        let block = quote! {
            #[cfg(unix)]
            impl<T: Entry> Work<T> {
                #[doc = "Adds."]
                pub(crate) fn r#enqueue(&mut self, mut item: T, #[cfg(test)] more: u64) -> Result<(), E> { Ok(()) }
            }
        };
        let text = rust(inbox(quote!(trait = Orders, crate = ::pinned), block));
        for expected in [
            "pub (crate) trait Orders < T : Entry >",
            "# [doc = \"Adds.\"] fn r#enqueue (& self , item : T , # [cfg (test)] more : u64)",
            "for :: pinned :: __private :: TrayHandle < Work < T > >",
            "< Work < T > > :: r#enqueue (tray , item , # [cfg (test)] more)",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
    }

    #[test]
    fn every_mistake_of_an_inbox_is_told_at_once() {
        let block = quote! {
            impl Work {
                pub async fn enqueue(&self, (a, b): (u64, u64)) {}
                fn kick<T>(item: &T, own: Vec<Self>) {}
            }
        };
        // async, &self, the pattern; visibility, the name, generics, no self, the reference, `Self`.
        assert_eq!(messages(inbox(quote!(), block)), 9);
    }
}
