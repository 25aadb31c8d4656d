//! An implementation of the right shape that nobody will run: the build has failed already.

use proc_macro2::TokenStream;
use quote::quote;

use super::{in_a_scope, trays};
use crate::model::{Api, Target};

/// `PinnedApi` for the struct of a block with mistakes, and the constants of its trays.
pub(crate) fn stub(api: &Api) -> TokenStream {
    let target = &api.target;
    let Target {
        private,
        self_ty,
        generics,
        ..
    } = target;
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let constants = api.trays.iter().map(|tray| trays::constant(private, tray));
    in_a_scope(
        target,
        quote! {
            impl #impl_generics #self_ty #where_clause {
                #(#constants)*
            }

            impl #impl_generics #private::PinnedApi for #self_ty #where_clause {
                const NAMESPACE: ::core::option::Option<&'static ::core::primitive::str> =
                    ::core::option::Option::None;
                const PACKAGE: &'static ::core::primitive::str = "";
                const OPTIONS: #private::DeclaredOptions = #private::DeclaredOptions::NONE;
                const ROUTES: &'static [#private::Route] = &[];
                fn setup(
                    _: #private::Context,
                ) -> #private::BoxFuture<'static, ::core::result::Result<Self, #private::SetupError>> {
                    ::core::unreachable!()
                }
            }
        },
    )
}
