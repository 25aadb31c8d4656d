//! `#[derive(Durable)]`.

use syn::{DeriveInput, Field, Path};

use super::fields::{self, Once};
use crate::errors::Errors;
use crate::krate;
use crate::model::{DurableField, DurableStruct, FieldKind};
use crate::parse::{Helper, docs_of, last_segment};

/// Checks a struct. The model is whole only if nothing was recorded in `errors`.
pub(crate) fn lower(input: &DeriveInput, errors: &mut Errors) -> DurableStruct {
    let helper = Helper::of("durable", &input.attrs, errors);
    if helper.is_present && helper.settings.is_empty() {
        errors.at(
            &input.ident,
            "`#[durable]` on a struct says how it is built: `#[durable(setup)]` when the block has a setup",
        );
    }
    let mut by_setup = false;
    let mut path: Option<&Path> = None;
    let mut once = Once::new();
    for setting in &helper.settings {
        let name = &setting.name;
        if !once.is_first(name, errors) {
            continue;
        }
        match name.to_string().as_str() {
            "setup" => {
                fields::word(setting, errors);
                by_setup = true;
            }
            "crate" => path = fields::krate(setting, errors),
            _ => errors.at(
                name,
                format!(
                    "unknown option `{name}` on a durable struct; there are `setup` and `crate`"
                ),
            ),
        }
    }
    let named = fields::named("Durable", input, errors);
    let fields: Vec<DurableField> = named
        .into_iter()
        .flat_map(|fields| &fields.named)
        .filter_map(|field| lower_field(field, errors))
        .collect();
    let durable = fields
        .iter()
        .any(|field| matches!(field.kind, FieldKind::Kept { .. }));
    if named.is_some() && !durable {
        let name = &input.ident;
        errors.at(
            name,
            format!(
                "`{name}` keeps nothing: make a field `Persistent<T>`, or put `#[durable]` before one that is so under \
                 another name; without such a field, remove `#[derive(Durable)]`"
            ),
        );
    }
    DurableStruct {
        private: krate::private(path),
        visibility: input.vis.clone(),
        ident: input.ident.clone(),
        generics: input.generics.clone(),
        fields,
        by_setup,
    }
}

fn lower_field(field: &Field, errors: &mut Errors) -> Option<DurableField> {
    let helper = Helper::of("durable", &field.attrs, errors);
    let mut once = Once::new();
    let (mut skip, mut initial) = (None, None);
    for setting in &helper.settings {
        let name = &setting.name;
        if !once.is_first(name, errors) {
            continue;
        }
        match name.to_string().as_str() {
            "skip" => {
                fields::word(setting, errors);
                skip = Some(name);
            }
            "initial" => initial = fields::initial(setting, errors).map(|value| (name, value)),
            _ => errors.at(
                name,
                format!("unknown option `{name}` before a durable field; there are `initial = ..` and `skip`"),
            ),
        }
    }
    if let (Some(_), Some((name, _))) = (skip, &initial) {
        errors.at(
            name,
            "a field behind `skip` is not kept, so `initial` says nothing here: remove one of the two",
        );
    }
    let is_named = |names: &[&str]| {
        last_segment(&field.ty)
            .is_some_and(|segment| names.iter().any(|name| segment.ident == name))
    };
    let kept = skip.is_none() && (helper.is_present || is_named(&["Persistent"]));
    if skip.is_none() && is_named(&["PersistentQueue", "PersistentOutbox"]) {
        errors.at(
            &field.ty,
            "queues and outboxes stand in trays, not on the hosted struct: move this into a struct with \
             `#[derive(Tray)]`, and give the block a `#[tray]` handler for it",
        );
        return None;
    }
    Some(DurableField {
        visibility: field.vis.clone(),
        docs: docs_of(&field.attrs),
        ident: field.ident.clone()?,
        ty: field.ty.clone(),
        kind: match kept {
            true => FieldKind::Kept {
                initial: initial.map(|(_, value)| value),
            },
            false => FieldKind::Unkept,
        },
    })
}
