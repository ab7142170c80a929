//! Reading `[run]`.

use outlast_core::plan::{Concurrency, Land};

use super::{RunLayer, shared};
use crate::document::{Table, Value};
use crate::paths::{self, Meant};
use crate::reader::{Located, Reader, find};
use crate::{CONCURRENCY_MAX, Code, keys, refname};

pub(super) fn read(reader: &mut Reader<'_>, table: &Table) -> RunLayer {
    reader.check_keys(table, "`[run]`", keys::RUN);
    let land = reader.parsed(table, "land", "\"review\" or \"auto\"", |text| match text {
        "review" => Some(Land::Review),
        "auto" => Some(Land::Auto),
        _ => None,
    });
    RunLayer {
        target: target(reader, table),
        concurrency: concurrency(reader, table),
        land: land.map(|land| land.value),
        hot_files: paths::read_list(reader, table, "hot_files", Meant::Glob),
        budget: shared::read_budget(reader, table),
        setup: shared::read_commands(reader, table, "setup"),
        hold: reader.duration(table, "hold"),
    }
}

fn target(reader: &mut Reader<'_>, table: &Table) -> Option<Located<String>> {
    let target = reader.text(table, "target")?;
    let Err(fault) = refname::check_target(&target.value) else {
        return Some(target);
    };
    let message = format!("target `{}` is no branch name: {fault}", target.value);
    reader.note(Code::BadTarget, &target.at, message, "name a branch, such as \"outlast/{run}\" or \"main\"");
    None
}

fn concurrency(reader: &mut Reader<'_>, table: &Table) -> Option<Located<Concurrency>> {
    match &find(table, "concurrency")?.node.value {
        Value::Text(_) => reader
            .parsed(table, "concurrency", "\"auto\" or a number", |text| (text == "auto").then_some(Concurrency::Auto)),
        _ => {
            let fixed = reader.small(table, "concurrency", 1, CONCURRENCY_MAX)?;
            Some(Located { value: Concurrency::Fixed(fixed.value), at: fixed.at })
        }
    }
}
