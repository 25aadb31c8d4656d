//! Where the `pinned` crate is: the `crate = path` option, then the manifest, then `::pinned`.

use proc_macro_crate::FoundCrate;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, Path};

/// The path of the hidden module that generated code names.
pub(crate) fn private(option: Option<&Path>) -> TokenStream {
    let root = match option {
        Some(path) => quote!(#path),
        None => root_of(proc_macro_crate::crate_name("pinned").ok()),
    };
    quote!(#root::__private)
}

/// The crate's root as the manifest names it.
fn root_of(found: Option<FoundCrate>) -> TokenStream {
    let name = match found {
        Some(FoundCrate::Name(name)) => name,
        // Inside the package `pinned`: its examples, integration and doc tests see an extern crate, and
        // `extern crate self as pinned` makes the name right in the library as well. Not found: the user
        // depends on a re-export and forgot `crate = ..`; rustc then says that `pinned` is missing.
        Some(FoundCrate::Itself) | None => "pinned".to_owned(),
    };
    let name = Ident::new(&name, Span::call_site());
    quote!(::#name)
}

#[cfg(test)]
mod tests {
    use proc_macro_crate::FoundCrate;

    use super::{private, root_of};

    #[test]
    fn the_option_wins() {
        let path = syn::parse_quote!(facade::pinned);
        assert_eq!(
            private(Some(&path)).to_string(),
            "facade :: pinned :: __private"
        );
    }

    #[test]
    fn a_renamed_dependency_is_found_by_its_new_name() {
        let found = FoundCrate::Name("pin2".to_owned());
        assert_eq!(root_of(Some(found)).to_string(), ":: pin2");
    }

    #[test]
    fn the_crate_itself_and_an_unknown_one_are_pinned() {
        assert_eq!(root_of(Some(FoundCrate::Itself)).to_string(), ":: pinned");
        assert_eq!(root_of(None).to_string(), ":: pinned");
    }
}
