//! Tokens from the model. Nothing here can fail: what the model holds has been checked.
//!
//! Names are absolute or hygienic, and spans lie where the user would look: errors about an extractor at the
//! argument's type, about a return value at the return type, about a future at the method's name.

mod authorizer;
mod durable_struct;
mod handler;
mod hooks;
mod inbox;
mod options;
mod route;
mod stub;
mod tray_struct;
mod trays;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Ident, LitStr, Type};

use crate::model::{Api, Consumed, Target};

pub(crate) use durable_struct::{durable, durable_stub};
pub(crate) use inbox::inbox;
pub(crate) use stub::stub;
pub(crate) use tray_struct::{tray, tray_stub};

/// The implementation of `PinnedApi` and the registration.
pub(crate) fn implementation(api: &Api) -> TokenStream {
    let Api {
        target, namespace, ..
    } = api;
    let Target {
        private,
        self_ty,
        generics,
        ..
    } = target;
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let namespace_value = match namespace {
        Some(namespace) => quote!(::core::option::Option::Some(#namespace)),
        None => quote!(::core::option::Option::None),
    };
    let options = options::declared(private, &api.options);
    let routes = api.handlers.iter().flat_map(|handler| {
        handler
            .routes
            .iter()
            .map(|route| route::entry(private, handler, route))
    });
    let trays = trays::table(private, &api.trays);
    let tray_glue = api.trays.iter().map(|tray| trays::glue(private, tray));
    let constants = api.trays.iter().map(|tray| trays::constant(private, tray));
    let needs_store = hooks::needs_store(target);
    let setup = hooks::setup(target, &api.setups);
    let teardown = hooks::teardown(private, &api.teardowns);
    let stats = hooks::stats(private, &api.stats);
    let authorizers = api.authorizers.iter().map(|a| authorizer::glue(private, a));
    let handlers = api
        .handlers
        .iter()
        .map(|h| handler::glue(private, h, &api.authorizers));
    let registration = namespace.as_ref().map(|_| registration(target));
    in_a_scope(
        target,
        quote! {
            impl #impl_generics #self_ty #where_clause {
                #(#authorizers)*
                #(#handlers)*
                #(#tray_glue)*
                #(#constants)*
            }

            impl #impl_generics #private::PinnedApi for #self_ty #where_clause {
                const NAMESPACE: ::core::option::Option<&'static ::core::primitive::str> = #namespace_value;
                const PACKAGE: &'static ::core::primitive::str = ::core::env!("CARGO_PKG_NAME");
                const OPTIONS: #private::DeclaredOptions = #options;
                const ROUTES: &'static [#private::Route] = &[#(#routes),*];
                #trays
                #needs_store
                #setup
                #teardown
                #stats
            }

            #registration
        },
    )
}

/// An unnamed scope for generated items. Naming the consumed attributes keeps their imports used, reports a
/// missing import where the attribute stands, and lets editors jump from it.
fn in_a_scope(target: &Target, items: TokenStream) -> TokenStream {
    let Target { cfg, private, .. } = target;
    let consumed = target.consumed.iter().map(|Consumed { path, cfg }| {
        quote! {
            #cfg
            #[allow(unused_imports)]
            use #path as _;
        }
    });
    // `#[authorize]` and `#[stats]` need no import, but may have one. The names of the module are brought in
    // by a glob as well, so that the same macro found twice is no conflict and the user's import is used.
    let bare = target
        .consumed
        .iter()
        .any(|Consumed { path, .. }| path.get_ident().is_some());
    let bare = bare.then(|| {
        quote! {
            #[allow(unused_imports)]
            use {self::*, #private::attributes::*};
        }
    });
    quote! {
        #cfg
        #[allow(deprecated)]
        const _: () = {
            #bare
            #(#consumed)*
            #items
        };
    }
}

/// Only what keeps the imports of the consumed attributes used.
pub(crate) fn imports(target: &Target) -> TokenStream {
    in_a_scope(target, TokenStream::new())
}

fn registration(target: &Target) -> TokenStream {
    let Target {
        private,
        attribute,
        self_ty,
        ..
    } = target;
    // `file!` and `line!` answer with the place of these tokens.
    let place = quote_spanned! {*attribute=> ::core::file!(), ::core::line!()};
    quote! {
        #private::inventory::submit! {
            #private::Registration::new::<#self_ty>(
                ::core::module_path!(),
                #place,
            )
        }
    }
}

/// The name without `r#`, as routes and metrics show it.
fn plain_name(ident: &Ident) -> LitStr {
    LitStr::new(&ident.unraw().to_string(), ident.span())
}

fn handler_glue(handler: &Ident) -> Ident {
    format_ident!("__pinned_handle_{}", handler, span = Span::call_site())
}

fn authorizer_glue(authorizer: &Ident) -> Ident {
    format_ident!(
        "__pinned_authorize_{}",
        authorizer,
        span = Span::call_site()
    )
}

/// `<Output as Trait>::method(value)` at the place of the return type, so that an error underlines all of it;
/// without the type's name where it has none.
fn convert(
    output: Option<&Type>,
    fallback: Span,
    tr: &TokenStream,
    method: &str,
    value: &TokenStream,
) -> TokenStream {
    match output {
        Some(output) => {
            let at = hygienic_at(output);
            let method = Ident::new(method, at);
            quote_spanned!(at=> <#output as #tr>::#method(#value))
        }
        None => {
            let method = Ident::new(method, fallback);
            quote_spanned!(fallback=> <_ as #tr>::#method(#value))
        }
    }
}

/// The same path at another place: a call is underlined from its first token on.
fn at_place(path: &TokenStream, at: Span) -> TokenStream {
    let trees = path.clone().into_iter().map(|mut tree| {
        tree.set_span(at.resolved_at(tree.span()));
        tree
    });
    trees.collect()
}

/// Hygienic names, so that nothing of the user's can be meant, at the place of `tokens`.
fn hygienic_at(tokens: &impl ToTokens) -> Span {
    let first = tokens.to_token_stream().into_iter().next();
    let place = first.map_or_else(Span::call_site, |tree| tree.span());
    Span::mixed_site().located_at(place)
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::expand;

    fn expansion(arguments: proc_macro2::TokenStream, item: proc_macro2::TokenStream) -> String {
        let text = expand::pinned_api(arguments, item).to_string();
        assert!(syn::parse_file(&text).is_ok(), "not Rust: {text}");
        text
    }

    #[test]
    fn a_block_becomes_a_table_with_its_glue() {
        let text = expansion(
            quote!("/counters", idle_timeout = "5m", crate = ::pinned),
            quote! {
                impl Counter {
                    #[route::get("/")]
                    #[route::get("/value")]
                    pub async fn r#read(&self) -> u64 { 1 }
                }
            },
        );
        for expected in [
            "Some (\"/counters\")",
            "from_millis (300000u64)",
            "__pinned_handle_read (call",
            "Method :: Get , \"/value\" , :: pinned :: __private :: RouteAuth :: Open , \"read\"",
            "inventory :: submit !",
            "use route :: get as _",
            "WithoutSetup :: < Counter > :: NEW",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        assert!(!text.contains("# [route"), "{text}");
    }

    #[test]
    fn conditions_stand_on_the_entry_and_on_the_glue() {
        let text = expansion(
            quote!(crate = ::pinned),
            quote! {
                impl Counter {
                    #[cfg(unix)]
                    #[cfg_attr(test, route::get("/"))]
                    async fn read(&self, #[cfg(windows)] ctx: Context) {}
                }
            },
        );
        assert!(
            text.contains("# [cfg (unix)] # [cfg (test)] :: pinned :: __private :: Route :: new"),
            "{text}"
        );
        assert!(text.contains("# [cfg (windows)] let"), "{text}");
        assert!(!text.contains("inventory"), "{text}");
    }

    #[test]
    fn a_tray_has_a_table_entry_and_a_constant() {
        let text = expansion(
            quote!(crate = ::pinned),
            quote! {
                impl Lane {
                    #[cfg(unix)]
                    #[tray(map, on_close = Self::closed, on_open = Self::opened, on_close = Self::closed)]
                    pub async fn r#type(this: Instance<Self>, item: u64, dispatch: Dispatch<Work>) {}
                    async fn opened(this: Instance<Self>, tray: TrayHandle<Work>) {}
                    async fn closed(this: Instance<Self>, tray: TrayHandle<Work>) {}
                }
            },
        );
        for expected in [
            "pub const TYPE : :: pinned :: __private :: MappedTray < Self , Work >",
            "DeclaredTray :: < Self , Work > :: map (\"type\" , false , Self :: __pinned_tray_type ,",
            "open : :: core :: option :: Option :: None",
            "close : :: core :: option :: Option :: Some (Self :: __pinned_tray_type_close_0)",
            "open : :: core :: option :: Option :: Some (Self :: __pinned_tray_type_open_1)",
            "needs_store",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        // The entry, the handler's glue, that of three hooks, the constant, the import, the method itself.
        assert_eq!(text.matches("# [cfg (unix)]").count(), 8, "{text}");
        assert!(!text.contains("# [tray"), "{text}");
    }

    #[test]
    fn after_a_mistake_the_constant_of_a_tray_is_still_there() {
        let text = expansion(
            quote!(crate = ::pinned),
            quote! {
                impl Lane {
                    #[tray(always_open)]
                    async fn work(&mut self, dispatch: Dispatch<Work>) {}
                }
            },
        );
        assert_eq!(text.matches("compile_error").count(), 3, "{text}");
        assert!(text.contains("const WORK"), "{text}");
    }

    #[test]
    fn after_a_mistake_there_is_a_stub_and_every_error() {
        let text = expansion(
            quote!("counters", idle = "5m", crate = ::pinned),
            quote! {
                impl Counter {
                    #[route::get("read")]
                    fn read(self) {}
                }
            },
        );
        assert_eq!(text.matches("compile_error").count(), 5, "{text}");
        assert!(text.contains("PinnedApi for Counter"), "{text}");
        assert!(text.contains("fn read (self)"), "{text}");
    }
}
