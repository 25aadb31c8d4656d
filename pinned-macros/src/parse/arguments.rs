//! The arguments of `#[pinned_api]`: `"/namespace", option = value, crate = path`.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, LitStr, Path, Token};

use super::options::split_at_commas;
use crate::errors::Errors;

/// The arguments as written.
#[derive(Default)]
pub(crate) struct ApiArguments {
    pub(crate) namespace: Option<LitStr>,
    pub(crate) krate: Option<Path>,
    pub(crate) options: Vec<OptionArgument>,
}

/// `name = value`.
pub(crate) struct OptionArgument {
    pub(crate) name: Ident,
    pub(crate) value: Expr,
}

enum Argument {
    Namespace(LitStr),
    Crate(Ident, Path),
    Option(OptionArgument),
}

impl ApiArguments {
    /// Reads the arguments; a mistake in one of them hides no other.
    pub(crate) fn read(arguments: TokenStream, errors: &mut Errors) -> Self {
        let mut read = Self::default();
        let mut first = true;
        for argument in split_at_commas(arguments) {
            let parse = |input: ParseStream<'_>| parse_argument(input, first);
            match errors.keep(parse.parse2(argument)) {
                Some(Argument::Namespace(namespace)) => read.namespace = Some(namespace),
                Some(Argument::Crate(_, path)) if read.krate.is_none() => read.krate = Some(path),
                Some(Argument::Crate(name, _)) => errors.at(name, "`crate` is given twice"),
                Some(Argument::Option(option)) => read.options.push(option),
                None => {}
            }
            first = false;
        }
        read
    }
}

fn parse_argument(input: ParseStream<'_>, first: bool) -> syn::Result<Argument> {
    if input.peek(LitStr) {
        let namespace: LitStr = input.parse()?;
        if first {
            return Ok(Argument::Namespace(namespace));
        }
        let message = "the namespace stands first and alone; other arguments are `option = value`";
        return Err(syn::Error::new(namespace.span(), message));
    }
    if !input.peek(Ident::peek_any) {
        return Err(
            input.error("expected a namespace such as `\"/counters\"`, or `option = value`")
        );
    }
    let name = input.call(Ident::parse_any)?;
    if !input.peek(Token![=]) {
        let message = format!(
            "expected `{name} = value`, or a namespace such as `\"/{name}\"` as the first argument"
        );
        return Err(syn::Error::new(name.span(), message));
    }
    input.parse::<Token![=]>()?;
    if name == "crate" {
        return match input.call(Path::parse_mod_style) {
            Ok(path) => Ok(Argument::Crate(name, path)),
            Err(error) => {
                let message = "`crate` takes a path, such as `crate = facade::pinned`";
                Err(syn::Error::new(error.span(), message))
            }
        };
    }
    let value = input.parse()?;
    Ok(Argument::Option(OptionArgument { name, value }))
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::ApiArguments;
    use crate::errors::Errors;

    #[test]
    fn a_namespace_options_and_a_crate() {
        let mut errors = Errors::default();
        let tokens = quote!(
            "/counters",
            idle_timeout = "5m",
            crate = crate::re,
            max_instances = 3,
        );
        let read = ApiArguments::read(tokens, &mut errors);
        assert!(errors.messages().is_empty());
        assert_eq!(
            read.namespace.map(|ns| ns.value()),
            Some("/counters".to_owned())
        );
        assert!(read.krate.is_some());
        let names: Vec<String> = read.options.iter().map(|o| o.name.to_string()).collect();
        assert_eq!(names, ["idle_timeout", "max_instances"]);
    }

    #[test]
    fn one_mistake_hides_no_other() {
        let mut errors = Errors::default();
        let tokens = quote!(counters, "/late", 5, idle_timeout = , crate = 5, env = "ok");
        let read = ApiArguments::read(tokens, &mut errors);
        assert_eq!(errors.messages().len(), 5);
        assert_eq!(read.options.len(), 1);
    }
}
