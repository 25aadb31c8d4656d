//! `DeclaredOptions`.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::{DeclaredOption, OptionValue};

pub(super) fn declared(private: &TokenStream, options: &[DeclaredOption]) -> TokenStream {
    if options.is_empty() {
        return quote!(#private::DeclaredOptions::NONE);
    }
    let fields = options.iter().map(|DeclaredOption { name, value }| {
        let value = match value {
            OptionValue::Millis(millis) => quote!(#private::Duration::from_millis(#millis)),
            OptionValue::Count(count) => quote!(#count),
            OptionValue::Integer(number) => quote!(#number),
            OptionValue::Flag(flag) => quote!(#flag),
            OptionValue::Text(text) => quote!(#text),
        };
        quote!(#name: ::core::option::Option::Some(#value))
    });
    quote! {
        #private::DeclaredOptions {
            #(#fields,)*
            ..#private::DeclaredOptions::NONE
        }
    }
}
