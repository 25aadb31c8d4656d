//! The type-erased form of a handler: extract the arguments, take the turn, call, convert.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Ident, Type};

use super::{at_place, convert, handler_glue, hygienic_at};
use crate::model::{Arg, Authorizer, Cfg, Handler, HandlerKind};

pub(super) fn glue(
    private: &TokenStream,
    handler: &Handler,
    authorizers: &[Authorizer],
) -> TokenStream {
    let Handler {
        ident,
        kind,
        args,
        cfg,
        ..
    } = handler;
    let glue = handler_glue(ident);
    let at = hygienic_at(ident);
    let call = Ident::new("call", at);
    let callers = callers(private, handler, authorizers);
    let socket_follows = matches!(kind, HandlerKind::Socket(_));
    let extractions =
        (0..args.len()).map(|index| extraction(private, &call, args, index, socket_follows));
    let run = run(private, handler, &call);
    // The methods of `Argument`.
    let traits = (!args.is_empty()).then(|| {
        quote! {
            #[allow(unused_imports)]
            use #private::{RefuseLast as _, RefusePart as _, TakeLast as _, TakePart as _};
        }
    });
    // Without arguments there is nothing to wait for before the turn, and so no future but the handler's own.
    let body = if args.is_empty() {
        run
    } else {
        quote_spanned! {at=>
            #private::HandlerFuture::with_arguments(#call, move |mut #call| async move {
                #(#extractions)*
                #run.await
            })
        }
    };
    quote! {
        #cfg
        #[doc(hidden)]
        #[allow(dead_code, unused_mut)]
        fn #glue(#call: #private::Call) -> #private::HandlerFuture {
            #traits
            #callers
            #body
        }
    }
}

/// The variable of argument `index`, at the place of its type.
fn variable(index: usize, ty: &Type) -> Ident {
    format_ident!("a{}", index, span = hygienic_at(ty))
}

/// Takes one argument from the request. The last extractor may take the body; where the arguments after
/// this one are conditional, so is being the last.
fn extraction(
    private: &TokenStream,
    call: &Ident,
    args: &[Arg],
    index: usize,
    socket_follows: bool,
) -> TokenStream {
    let Arg { ty, cfg, .. } = &args[index];
    let later: Vec<&Cfg> = args[index + 1..].iter().map(|arg| &arg.cfg).collect();
    let part = Ident::new("part", hygienic_at(ty));
    let last = Ident::new("last", hygienic_at(ty));
    if socket_follows || later.iter().any(|cfg| cfg.is_always()) {
        return extract(private, call, index, ty, cfg, &part);
    }
    if later.is_empty() {
        return extract(private, call, index, ty, cfg, &last);
    }
    let if_part = cfg.and_all(&Cfg::any_of(later.iter().copied()));
    let if_last = cfg.and_all(&Cfg::none_of(later));
    let part = extract(private, call, index, ty, &if_part, &part);
    let last = extract(private, call, index, ty, &if_last, &last);
    quote!(#part #last)
}

fn extract(
    private: &TokenStream,
    call: &Ident,
    index: usize,
    ty: &Type,
    cfg: &Cfg,
    argument: &Ident,
) -> TokenStream {
    let variable = variable(index, ty);
    let at = hygienic_at(ty);
    let private = at_place(private, at);
    quote_spanned! {at=>
        #cfg
        let #variable = match #private::Argument::<#ty>::NEW.#argument(&mut #call).await {
            ::core::result::Result::Ok(value) => value,
            ::core::result::Result::Err(rejection) => return #call.reject(rejection),
        };
    }
}

/// Takes the turn that the receiver asks for and calls the method under it.
fn run(private: &TokenStream, handler: &Handler, call: &Ident) -> TokenStream {
    let Handler {
        ident,
        kind,
        args,
        output,
        ..
    } = handler;
    let at = hygienic_at(ident);
    let private = &at_place(private, at);
    let arguments: Vec<TokenStream> = args
        .iter()
        .enumerate()
        .map(|(index, Arg { ty, cfg, .. })| {
            let variable = variable(index, ty);
            quote!(#cfg #variable)
        })
        .collect();
    let answer = quote_spanned!(at=> answer);
    let output = output.as_ref();
    let response = match kind {
        HandlerKind::Socket(_) => {
            let tr = quote!(#private::SocketReturn);
            convert(output, at, &tr, "into_socket_return", &answer)
        }
        _ => {
            let tr = quote!(#private::IntoResponse);
            convert(output, at, &tr, "into_response", &answer)
        }
    };
    match kind {
        HandlerKind::Shared => quote_spanned! {at=>
            #call.run_shared::<Self, _, _>(move |turn| async move {
                let answer = #private::sendable(Self::#ident(&*turn, #(#arguments),*)).await;
                let response = #response;
                (turn, response)
            })
        },
        HandlerKind::Exclusive => quote_spanned! {at=>
            #call.run_exclusive::<Self, _, _>(move |mut turn| async move {
                let answer = #private::sendable(Self::#ident(&mut *turn, #(#arguments),*)).await;
                let response = #response;
                (turn, response)
            })
        },
        HandlerKind::Instance => quote_spanned! {at=>
            #call.run_instance::<Self, _, _>(move |this| async move {
                let answer = #private::sendable(Self::#ident(this, #(#arguments),*)).await;
                #response
            })
        },
        HandlerKind::Socket(socket) => quote_spanned! {at=>
            #call.run_socket::<Self, #socket, _, _>(move |this, socket| async move {
                let answer = #private::sendable(Self::#ident(this, #(#arguments,)* socket)).await;
                #response
            })
        },
    }
}

/// For each `Auth<T>`: `T` is what the route's authorizer returns.
fn callers(private: &TokenStream, handler: &Handler, authorizers: &[Authorizer]) -> TokenStream {
    let mut checks = TokenStream::new();
    for arg in &handler.args {
        let Some(caller) = &arg.caller else {
            continue;
        };
        let mut checked: Vec<&Ident> = Vec::new();
        for route in &handler.routes {
            let Some(name) = route
                .auth
                .authorizer()
                .filter(|name| !checked.contains(name))
            else {
                continue;
            };
            checked.push(name);
            for authorizer in authorizers
                .iter()
                .filter(|authorizer| authorizer.ident == *name)
            {
                let cfg = arg.cfg.and_all(&route.cfg).and_all(&authorizer.cfg);
                let output = &authorizer.output;
                checks.extend(quote_spanned! {Span::mixed_site()=>
                    #cfg
                    #private::same_caller::<#caller, <#output as #private::AuthReturn>::Caller>();
                });
            }
        }
    }
    checks
}
