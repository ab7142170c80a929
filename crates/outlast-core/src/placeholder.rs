//! `{word}` in the words of a `command` and in the values of its `env`: the one rule by which a plan is checked and an
//! agent is launched.
//!
//! A lower-case word in braces is a placeholder, and has to be one that there is. `{{word}}` stands for the text `{word}`,
//! and `${word}` is a shell's; both stay, as does a brace around anything else.

/// Every placeholder with what takes its place, in the order the documentation names them.
pub const PLACEHOLDERS: [(&str, &str); 7] = [
    ("task", "the task's id"),
    ("goal", "the goal, as the plan has it"),
    ("goal_file", "the file with what is asked for: the goal, the scope, the steps, what is known of earlier attempts"),
    ("workspace", "the folder that it works in"),
    ("model", "the model that the task or its agent names; empty where neither does"),
    ("attempt", "the attempt: a name that no other on this machine has, and that ends in a dot and its number from 1"),
    ("resume", "the session that an earlier attempt of it named on its output; empty where there is none"),
];

/// Their names.
pub const NAMES: [&str; 7] = {
    let mut names = [""; 7];
    let mut at = 0;
    while at < names.len() {
        names[at] = PLACEHOLDERS[at].0;
        at += 1;
    }
    names
};

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// It stays as it is.
    Text(&'a str),
    /// It is replaced: the name of a placeholder.
    Placeholder(&'a str),
    /// It reads like a placeholder and is none.
    Unknown(&'a str),
}

/// Takes a text apart.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(open) = text[at..].find('{').map(|offset| at + offset) {
        let rest = &text[open + 1..];
        if let Some(name) =
            rest.strip_prefix('{').and_then(word).filter(|name| rest[1 + name.len()..].starts_with("}}"))
        {
            parts.push(Part::Text(&text[from..open]));
            parts.push(Part::Text(&rest[..name.len() + 2]));
            at = open + name.len() + 4;
            from = at;
        } else if let Some(name) = word(rest).filter(|_| !text[..open].ends_with('$')) {
            let is_known = NAMES.contains(&name);
            parts.push(Part::Text(&text[from..open]));
            parts.push(if is_known { Part::Placeholder(name) } else { Part::Unknown(name) });
            at = open + name.len() + 2;
            from = at;
        } else {
            at = open + 1;
        }
    }
    parts.push(Part::Text(&text[from..]));
    parts.retain(|part| *part != Part::Text(""));
    parts
}

/// The word with which a text begins and that a brace ends.
fn word(text: &str) -> Option<&str> {
    let name = text.split_once('}')?.0;
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    (name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(inside)).then_some(name)
}

/// The first word that reads like a placeholder and is none.
pub fn unknown(text: &str) -> Option<&str> {
    parts(text).into_iter().find_map(|part| match part {
        Part::Unknown(name) => Some(name),
        Part::Text(_) | Part::Placeholder(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::Part::{Placeholder, Text, Unknown};
    use super::*;

    #[test]
    fn a_text_falls_into_what_stays_and_what_is_replaced() {
        for (text, wanted) in [
            ("", vec![]),
            ("{goal}", vec![Placeholder("goal")]),
            (
                "--task={task}.{attempt}!",
                vec![Text("--task="), Placeholder("task"), Text("."), Placeholder("attempt"), Text("!")],
            ),
            ("{prompt}", vec![Unknown("prompt")]),
            ("{goal-file}{goal2}", vec![Unknown("goal-file"), Unknown("goal2")]),
            // Nothing of another language is taken for one.
            (
                "awk '{print $1}' {} {a,b} x{2} {\"a\": 1} {{x {文}",
                vec![Text("awk '{print $1}' {} {a,b} x{2} {\"a\": 1} {{x {文}")],
            ),
            ("for i in 1; do echo ${i} ${task}; done", vec![Text("for i in 1; do echo ${i} ${task}; done")]),
            ("{{print}}", vec![Text("{print}")]),
            ("a{{goal}}b{goal}", vec![Text("a"), Text("{goal}"), Text("b"), Placeholder("goal")]),
            ("{{goal}", vec![Text("{"), Placeholder("goal")]),
            ("{ goal }{goal", vec![Text("{ goal }{goal")]),
        ] {
            assert_eq!(parts(text), wanted, "{text}");
        }
    }

    #[test]
    fn the_first_slip_is_found() {
        assert_eq!(unknown("{task} {file} {branch}"), Some("file"));
        assert_eq!(unknown("{task} {{file}}"), None);
    }
}
