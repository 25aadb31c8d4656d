//! An entry of the table of routes.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

use super::{authorizer_glue, handler_glue, plain_name};
use crate::model::{Handler, Route, RouteAuth, Verb};

pub(super) fn entry(private: &TokenStream, handler: &Handler, route: &Route) -> TokenStream {
    let Route {
        verb,
        path,
        auth,
        durable,
        cfg,
    } = route;
    let durable = durable.then(|| quote!(.durable()));
    let verb = variant(*verb);
    let name = plain_name(&handler.ident);
    let glue = handler_glue(&handler.ident);
    let auth_fn = match auth.authorizer() {
        Some(authorizer) => {
            let glue = authorizer_glue(authorizer);
            quote!(::core::option::Option::Some(Self::#glue))
        }
        None => quote!(::core::option::Option::None),
    };
    let auth = match auth {
        RouteAuth::Default(authorizer) => {
            let authorizer = plain_name(authorizer);
            quote!(Default(#authorizer))
        }
        RouteAuth::Named(authorizer) => {
            let authorizer = plain_name(authorizer);
            quote!(Named(#authorizer))
        }
        RouteAuth::Public => quote!(Public),
        RouteAuth::Open => quote!(Open),
    };
    quote! {
        #cfg
        #private::Route::new(
            #private::RouteSpec::new(
                #private::Method::#verb,
                #path,
                #private::RouteAuth::#auth,
                #name,
            ),
            #auth_fn,
            Self::#glue,
        )
        #durable
    }
}

fn variant(verb: Verb) -> Ident {
    let name = match verb {
        Verb::Get => "Get",
        Verb::Post => "Post",
        Verb::Put => "Put",
        Verb::Delete => "Delete",
        Verb::Patch => "Patch",
        Verb::WebSocket => "WebSocket",
    };
    Ident::new(name, Span::call_site())
}
