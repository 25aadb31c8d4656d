//! The type-erased form of an authorizer.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::{authorizer_glue, hygienic_at};
use crate::model::Authorizer;

pub(super) fn glue(private: &TokenStream, authorizer: &Authorizer) -> TokenStream {
    let Authorizer { ident, output, cfg } = authorizer;
    let glue = authorizer_glue(ident);
    let at = hygienic_at(ident);
    let verdict = quote_spanned!(at=> verdict);
    let convert = quote_spanned! {hygienic_at(output)=>
        <#output as #private::AuthReturn>::into_auth(#verdict)
    };
    let (ctx, conn) = (quote_spanned!(at=> ctx), quote_spanned!(at=> conn));
    let body = quote_spanned! {at=>
        ::std::boxed::Box::pin(async move {
            let verdict = Self::#ident(ctx, conn).await;
            #convert
        })
    };
    quote! {
        #cfg
        #[doc(hidden)]
        #[allow(dead_code)]
        fn #glue<'a>(
            #ctx: &'a #private::Context,
            #conn: &'a #private::Connection,
        ) -> #private::BoxFuture<'a, ::core::result::Result<#private::AuthOutput, #private::Denied>> {
            #body
        }
    }
}
