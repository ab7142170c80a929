//! The commands of a plan as advice names them: with the plan that is meant, or they would be about another one.

use outlast_git::word;

/// A plan as somebody named it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed<'a>(pub(crate) Option<&'a str>);

impl Typed<'_> {
    /// `outlast run` of it, with further words.
    pub(crate) fn run(self, more: &str) -> String {
        self.command("run", more)
    }

    /// `outlast check` of it.
    pub(crate) fn check(self) -> String {
        self.command("check", "")
    }

    fn command(self, verb: &str, more: &str) -> String {
        let plan = self.0.map(|plan| format!(" {}", word(plan))).unwrap_or_default();
        let more = if more.is_empty() { String::new() } else { format!(" {more}") };
        format!("outlast {verb}{plan}{more}")
    }
}

/// The command that is being performed, with or without an option.
pub(crate) fn as_given(option: &str, with: bool) -> String {
    let mut words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    words.retain(|word| word != option);
    words.extend(with.then(|| option.to_owned()));
    let words: Vec<String> = std::iter::once("outlast".to_owned()).chain(words.iter().map(|text| word(text))).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_was_named_is_named_again() {
        assert_eq!(Typed(None).run("--yes"), "outlast run --yes");
        assert_eq!(Typed(Some("slow")).run("--yes"), "outlast run slow --yes");
        assert_eq!(Typed(Some("my plans/a b.toml")).check(), "outlast check 'my plans/a b.toml'");
    }
}
