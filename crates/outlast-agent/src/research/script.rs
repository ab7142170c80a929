//! The calls in a script of codex's JavaScript tool, as far as they can be read without running it.

use serde_json::{Value, json};

/// The tools that a script calls with arguments that stand in it, in order: name and arguments.
pub(super) fn calls(script: &str) -> Vec<(String, Value)> {
    let mut calls = Vec::new();
    let mut rest = script;
    while let Some((_, after)) = rest.split_once("tools.") {
        rest = after;
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, argument) = after.split_at(end);
        let Some(argument) = argument.trim_start().strip_prefix('(') else { continue };
        if let Some(arguments) = literal(argument.trim_start()) {
            calls.push((name.to_owned(), arguments));
        }
    }
    calls
}

/// A JSON value at the start of a text, or what of it matters where it is JavaScript and no JSON.
fn literal(text: &str) -> Option<Value> {
    if let Some(Ok(value)) = serde_json::Deserializer::from_str(text).into_iter::<Value>().next() {
        return Some(value);
    }
    if text.starts_with('{') {
        let (_, after) = text.split_once("cmd")?;
        let value = after.trim_start_matches(['"', '\'']).trim_start().strip_prefix(':')?;
        return Some(json!({ "cmd": string(value.trim_start())? }));
    }
    string(text).map(Value::from)
}

/// A JavaScript string at the start of a text; `None` where something is put into it as the script runs.
fn string(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let mut chars = text.chars().skip(1);
    let mut string = String::new();
    loop {
        match chars.next()? {
            c if c == quote => return Some(string),
            '\\' => match chars.next()? {
                'n' => string.push('\n'),
                't' => string.push('\t'),
                'r' => string.push('\r'),
                '\n' => {}
                'u' | 'x' => return None,
                c => string.push(c),
            },
            '$' if quote == '`' && chars.clone().next() == Some('{') => return None,
            c => string.push(c),
        }
    }
}
