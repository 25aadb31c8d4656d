//! `#[derive(Tray)]` (T1.4, T1.5).

use syn::ext::IdentExt;
use syn::{DeriveInput, Field, Ident, Path};

use super::fields::{self, Once};
use super::options::{Kind, read};
use crate::errors::Errors;
use crate::krate;
use crate::model::{FieldKind, Items, TrayField, TraySetting, TrayStruct};
use crate::parse::{Helper, Setting, last_segment};

/// The settings of a tray type.
const SETTINGS: [(&str, Kind); 4] = [
    ("version", Kind::Integer),
    ("max_attempts", Kind::Count { at_least: 1 }),
    ("dispatch_timeout", Kind::PositiveDuration),
    ("drain_on_eviction", Kind::Flag),
];

/// Checks a struct. The model is whole only if nothing was recorded in `errors`.
pub(crate) fn lower(input: &DeriveInput, errors: &mut Errors) -> TrayStruct {
    let helper = Helper::of("tray", &input.attrs, errors);
    if helper.is_present && helper.settings.is_empty() {
        errors.at(
            &input.ident,
            "`#[tray]` on a struct says something about it, such as `#[tray(max_attempts = 3)]`; \
             the struct itself is made a tray by `#[derive(Tray)]`",
        );
    }
    let options = StructOptions::read(&helper.settings, errors);
    let fields = fields::named("Tray", input, errors);
    let read: Vec<(TrayField, Option<Ident>)> = fields
        .into_iter()
        .flat_map(|fields| &fields.named)
        .filter_map(|field| lower_field(field, errors))
        .collect();
    let items = match fields {
        Some(_) => items(&input.ident, &read, options.source.as_ref(), errors),
        None => None,
    };
    TrayStruct {
        private: krate::private(options.krate),
        ident: input.ident.clone(),
        generics: input.generics.clone(),
        fields: read.into_iter().map(|(field, _)| field).collect(),
        items,
        lifecycle: options.lifecycle,
        settings: options.settings,
    }
}

/// What `#[tray(..)]` says on a struct.
struct StructOptions<'a> {
    source: Option<Ident>,
    lifecycle: Option<Ident>,
    settings: Vec<TraySetting>,
    krate: Option<&'a Path>,
}

impl<'a> StructOptions<'a> {
    fn read(settings: &'a [Setting], errors: &mut Errors) -> Self {
        let mut options = Self {
            source: None,
            lifecycle: None,
            settings: Vec::new(),
            krate: None,
        };
        let mut once = Once::new();
        for setting in settings {
            let name = &setting.name;
            if !once.is_first(name, errors) {
                continue;
            }
            let known = SETTINGS.iter().find(|(known, _)| name == known);
            match name.to_string().as_str() {
                "source" => {
                    fields::word(setting, errors);
                    options.source = Some(name.clone());
                }
                "lifecycle" => {
                    fields::word(setting, errors);
                    options.lifecycle = Some(name.clone());
                }
                "crate" => options.krate = fields::krate(setting, errors),
                other => match known {
                    Some((_, kind)) => options.settings.extend(value(setting, *kind, errors)),
                    None => errors.at(name, unknown(other)),
                },
            }
        }
        options
    }
}

fn value(setting: &Setting, kind: Kind, errors: &mut Errors) -> Option<TraySetting> {
    let Setting { name, value } = setting;
    let Some(value) = value else {
        errors.at(name, format!("`{name}` takes a value: write `{name} = ..`"));
        return None;
    };
    match read(value, kind, "; it must be written out here") {
        Ok(value) => Some(TraySetting {
            name: name.clone(),
            value,
        }),
        Err(message) => {
            errors.at(value, format!("`{name}` {message}"));
            None
        }
    }
}

fn unknown(name: &str) -> String {
    let hint = match name {
        "items" | "skip" | "initial" => ", and this one stands before a field",
        "map" | "always_open" | "on_open" | "on_close" => {
            ", and this one stands before the tray's handler, in the `#[pinned_api]` block"
        }
        _ => "",
    };
    format!(
        "unknown option `{name}` on a tray's struct{hint}; there are `version`, `max_attempts`, `dispatch_timeout`, \
         `drain_on_eviction`, `source`, `lifecycle` and `crate`"
    )
}

/// A field, and the word `items` where it stands before it.
fn lower_field(field: &Field, errors: &mut Errors) -> Option<(TrayField, Option<Ident>)> {
    let ident = field.ident.clone()?;
    let helper = Helper::of("tray", &field.attrs, errors);
    if helper.is_present && helper.settings.is_empty() {
        errors.at(
            &ident,
            "`#[tray]` before a field says what the field is: `items`, `skip` or `initial = ..`",
        );
    }
    let mut once = Once::new();
    let (mut items, mut skip, mut initial) = (None, None, None);
    for setting in &helper.settings {
        let name = &setting.name;
        if !once.is_first(name, errors) {
            continue;
        }
        match name.to_string().as_str() {
            "items" => {
                fields::word(setting, errors);
                items = Some(name.clone());
            }
            "skip" => {
                fields::word(setting, errors);
                skip = Some(name);
            }
            "initial" => initial = fields::initial(setting, errors).map(|value| (name, value)),
            _ => errors.at(
                name,
                format!("unknown option `{name}` before a field of a tray; there are `items`, `skip` and `initial = ..`"),
            ),
        }
    }
    let contradicted = items.as_ref().or(initial.as_ref().map(|(name, _)| *name));
    if let (Some(_), Some(other)) = (skip, contradicted) {
        errors.at(
            other,
            format!("a field behind `skip` is not kept, so `{other}` says nothing here: remove one of the two"),
        );
    }
    let kind = match skip {
        Some(_) => FieldKind::Unkept,
        None => FieldKind::Kept {
            initial: initial.map(|(_, value)| value),
        },
    };
    let ty = field.ty.clone();
    Some((TrayField { ident, ty, kind }, items))
}

/// The field that the items come from: the one that says so, else the only queue.
fn items(
    name: &Ident,
    fields: &[(TrayField, Option<Ident>)],
    source: Option<&Ident>,
    errors: &mut Errors,
) -> Option<Items> {
    let queue = |field: &TrayField| Items::Queue {
        field: field.ident.clone(),
        ty: Box::new(field.ty.clone()),
    };
    let chosen: Vec<_> = fields
        .iter()
        .filter_map(|(field, word)| word.as_ref().map(|word| (field, word)))
        .collect();
    if let Some(source) = source {
        for (_, word) in chosen {
            errors.at(
                word,
                "the struct says `source`, so its items come from its `TraySource`: remove one of the two",
            );
        }
        return Some(Items::Source(source.clone()));
    }
    if let Some(((field, _), again)) = chosen.split_first() {
        for (_, word) in again {
            errors.at(
                word,
                format!("the items come from `{}` already", field.ident.unraw()),
            );
        }
        return Some(queue(field));
    }
    let queues: Vec<&TrayField> = fields
        .iter()
        .map(|(field, _)| field)
        .filter(|field| matches!(field.kind, FieldKind::Kept { .. }))
        .filter(|field| last_segment(&field.ty).is_some_and(|s| s.ident == "PersistentQueue"))
        .collect();
    match queues.as_slice() {
        [only] => Some(queue(only)),
        [] => {
            errors.at(
                name,
                format!(
                    "missing item type: nothing says which items `{name}` works through. Give it a field `queue: \
                     PersistentQueue<Item>`, put `#[tray(items)]` before a queue that has another name for its type, \
                     or put `#[tray(source)]` on the struct and implement `TraySource`"
                ),
            );
            None
        }
        [first, between @ .., last] => {
            let between: String = between
                .iter()
                .map(|field| format!(", `{}`", field.ident.unraw()))
                .collect();
            errors.at(
                name,
                format!(
                    "`{name}` has several queues, `{}`{between} and `{}`: put `#[tray(items)]` before the one whose entries its \
                     handler works through, or `#[tray(source)]` on the struct and implement `TraySource`",
                    first.ident.unraw(),
                    last.ident.unraw()
                ),
            );
            Some(queue(first))
        }
    }
}
