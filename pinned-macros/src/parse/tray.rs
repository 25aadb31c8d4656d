//! The arguments of `#[tray]` on a handler: `(map, always_open, on_open = Self::name, on_close = Self::name)`.

use quote::ToTokens;
use syn::{Expr, Ident, Meta};

use super::options::{Setting, read_settings};
use crate::errors::Errors;

/// The arguments of a tray attribute.
#[derive(Default)]
pub(crate) struct TrayArguments {
    pub(crate) map: Option<Ident>,
    pub(crate) always_open: Option<Ident>,
    /// In the order of the attribute.
    pub(crate) hooks: Vec<HookArgument>,
}

/// `on_open = Self::name`, or `on_close = Self::name`.
pub(crate) struct HookArgument {
    pub(crate) half: Half,
    pub(crate) function: Ident,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Open,
    Close,
}

impl TrayArguments {
    /// Reads the arguments; a mistake in one of them hides no other.
    pub(crate) fn read(meta: &Meta, errors: &mut Errors) -> Self {
        let mut read = Self::default();
        let inside = match meta {
            Meta::Path(_) => return read,
            Meta::List(list) => list.tokens.clone(),
            Meta::NameValue(pair) => {
                errors.at(pair, "write `#[tray]` or `#[tray(..)]`");
                return read;
            }
        };
        for Setting { name, value } in read_settings(inside, errors) {
            match name.to_string().as_str() {
                "map" => word(&mut read.map, name, value.as_ref(), errors),
                "always_open" => word(&mut read.always_open, name, value.as_ref(), errors),
                "on_open" => read.hook(Half::Open, &name, value.as_ref(), errors),
                "on_close" => read.hook(Half::Close, &name, value.as_ref(), errors),
                _ => errors.at(
                    &name,
                    format!(
                        "unknown tray option `{name}`; there are `map`, `always_open`, `on_open` and `on_close`. \
                         What goes for the tray's struct stands there, beside its `#[derive(Tray)]`"
                    ),
                ),
            }
        }
        read
    }

    fn hook(&mut self, half: Half, name: &Ident, value: Option<&Expr>, errors: &mut Errors) {
        let Some(value) = value else {
            errors.at(name, format!("write `{name} = Self::<function>`"));
            return;
        };
        match function_of(value) {
            Ok(function) => self.hooks.push(HookArgument { half, function }),
            Err(None) => errors.at(
                value,
                format!("`{name}` takes `Self::<function>`, a function of this block"),
            ),
            Err(Some(function)) => errors.at(
                value,
                format!("a hook is a function of this block: write `{name} = Self::{function}`"),
            ),
        }
    }
}

fn word(slot: &mut Option<Ident>, name: Ident, value: Option<&Expr>, errors: &mut Errors) {
    if let Some(value) = value {
        errors.at(
            value.to_token_stream(),
            format!("`{name}` stands alone: write `{name}`, or leave it out"),
        );
    }
    if slot.is_some() {
        errors.at(&name, format!("`{name}` is given twice"));
    }
    *slot = Some(name);
}

/// `name` of `Self::name`; of a bare `name` too, as an error.
fn function_of(value: &Expr) -> Result<Ident, Option<Ident>> {
    let Expr::Path(path) = value else {
        return Err(None);
    };
    let names: Vec<&Ident> = path.path.segments.iter().map(|s| &s.ident).collect();
    match names.as_slice() {
        [this, function] if *this == "Self" => Ok((*function).clone()),
        [function] => Err(Some((*function).clone())),
        _ => Err(None),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::{Half, TrayArguments};
    use crate::errors::Errors;

    #[test]
    fn hooks_keep_their_order() {
        let mut errors = Errors::default();
        let meta = parse_quote!(tray(
            map,
            on_close = Self::b,
            on_open = Self::a,
            always_open
        ));
        let read = TrayArguments::read(&meta, &mut errors);
        assert!(errors.messages().is_empty());
        assert!(read.map.is_some() && read.always_open.is_some());
        let halves: Vec<Half> = read.hooks.iter().map(|hook| hook.half).collect();
        assert_eq!(halves, [Half::Close, Half::Open]);
    }

    #[test]
    fn mistakes_say_what_to_write() {
        let mut errors = Errors::default();
        let meta = parse_quote!(tray(
            map = true,
            map,
            keyed,
            on_open,
            on_open = opened,
            on_close = Other::closed(1)
        ));
        TrayArguments::read(&meta, &mut errors);
        let expected = [
            "`map` stands alone",
            "`map` is given twice",
            "unknown tray option `keyed`; there are `map`",
            "write `on_open = Self::<function>`",
            "write `on_open = Self::opened`",
            "`on_close` takes `Self::<function>`",
        ];
        let messages = errors.messages();
        assert_eq!(messages.len(), expected.len());
        for (message, expected) in messages.iter().zip(expected) {
            assert!(message.contains(expected), "{message}");
        }
    }
}
