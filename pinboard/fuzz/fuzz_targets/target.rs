//! A target names one instance, as the worker reads it, or none.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinboard::proxy::{Target, TargetError};
use pinned_wire::ids::{decode_id, invalid_id_reason, invalid_namespace_reason};

fuzz_target!(|raw: &str| {
    match Target::parse(raw) {
        Ok(target) => {
            assert_eq!(invalid_namespace_reason(target.ns), None);
            assert_eq!(invalid_id_reason(&target.id), None);
            let path = raw.split('?').next().expect("a first part");
            let rest = path
                .strip_prefix(target.ns)
                .and_then(|rest| rest.strip_prefix('/'))
                .expect("a namespace");
            let (segment, rest) = rest.split_once('/').unwrap_or((rest, ""));
            assert_eq!(decode_id(segment).as_deref(), Ok(&*target.id));
            // Resolving what follows never leads elsewhere.
            let mut depth = 0;
            for segment in rest
                .split('/')
                .filter(|segment| !matches!(*segment, "" | "."))
            {
                depth += if segment == ".." { -1 } else { 1 };
                assert!(depth >= 0, "{raw}");
            }
            // And the way back is the same.
            let plain = format!("{}/{}", target.ns, target.id);
            let again = Target::parse(&plain).expect("a target");
            assert_eq!((again.ns, &again.id), (target.ns, &target.id));
        }
        Err(TargetError::InvalidId(reason)) => assert!(reason.starts_with("id must ")),
        Err(TargetError::NotFound) => {}
    }
});
