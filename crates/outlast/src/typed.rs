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

/// How an option is to be given.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given<'a> {
    /// Not at all.
    Without,
    /// By its name.
    Plain,
    /// With this value.
    With(&'a str),
}

/// The command that is being performed, with or without an option.
pub(crate) fn as_given(option: &str, how: Given<'_>) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut is_its_value = false;
    for given in std::env::args_os().skip(1) {
        let given = given.to_string_lossy().into_owned();
        let is_it = given == option || given.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
        if !is_it && !is_its_value {
            words.push(given.clone());
        }
        is_its_value = given == option && (matches!(how, Given::With(_)) || VALUED.contains(&option));
    }
    match how {
        Given::Without => {}
        Given::Plain => words.push(option.to_owned()),
        Given::With(value) => words.extend([option.to_owned(), value.to_owned()]),
    }
    let words: Vec<String> = std::iter::once("outlast".to_owned()).chain(words.iter().map(|text| word(text))).collect();
    words.join(" ")
}

/// The command that is being performed, with another word in the place of a run's name.
pub(crate) fn as_given_with(name: &str, run: &str) -> String {
    let words = std::env::args_os().skip(1).map(|given| given.to_string_lossy().into_owned());
    let words = with_run(words.collect(), name, run);
    let words: Vec<String> = std::iter::once("outlast".to_owned()).chain(words.iter().map(|text| word(text))).collect();
    words.join(" ")
}

fn with_run(mut given: Vec<String>, name: &str, run: &str) -> Vec<String> {
    let by_option = format!("--run={name}");
    let after = given.windows(2).position(|pair| pair[0] == "--run" && pair[1] == name).map(|at| at + 1);
    let place = after.or_else(|| given.iter().position(|word| *word == by_option));
    // The first word is the command.
    let place = place.or_else(|| given.iter().skip(1).position(|word| word == name).map(|at| at + 1));
    if let Some(word) = place.and_then(|at| given.get_mut(at)) {
        *word = if *word == by_option { format!("--run={run}") } else { run.to_owned() };
    }
    given
}

/// The command that is being performed, by its name.
pub(crate) fn verb() -> Option<String> {
    use clap::CommandFactory as _;
    let known = crate::args::Args::command();
    std::env::args().skip(1).find(|word| known.find_subcommand(word).is_some())
}

/// Options of these commands that have a value.
const VALUED: [&str; 4] = ["--agent", "--run", "--home", "--config"];

/// The command that is being performed, of a run, with those only of the tasks `named` in it that are to be kept.
pub(crate) fn as_given_for(run: &str, keep: &[&str], named: &[String]) -> String {
    let words = std::env::args_os().skip(1).map(|given| given.to_string_lossy().into_owned());
    let words = only(words.collect(), run, keep, named);
    let words: Vec<String> = std::iter::once("outlast".to_owned()).chain(words.iter().map(|text| word(text))).collect();
    words.join(" ")
}

fn only(given: Vec<String>, run: &str, keep: &[&str], named: &[String]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut option: Option<String> = None;
    for given in given {
        let of = option.take();
        if of.as_deref() == Some("--run") || given.starts_with("--run=") {
            continue;
        }
        if VALUED.contains(&given.as_str()) {
            option = Some(given.clone());
        }
        let is_another = of.is_none() && named.contains(&given) && !keep.contains(&given.as_str());
        if given != "--run" && !is_another {
            words.push(given);
        }
    }
    words.extend(["--run".to_owned(), run.to_owned()]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_again_for_some_of_its_tasks_and_another_run() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let only = |line: &str, keep: &[&str]| only(words(line), "r2", keep, &words("a b")).join(" ");
        assert_eq!(only("diff a b --run r1", &["a"]), "diff a --run r2");
        assert_eq!(only("diff --run=r1 --stat a b", &["a", "b"]), "diff --stat a b --run r2");
        assert_eq!(only("retry a b --agent b", &["a"]), "retry a --agent b --run r2");
    }

    #[test]
    fn another_word_takes_the_place_of_a_runs_name() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (given, told) in [
            ("status t", "status r"),
            ("status status", "status r"),
            ("log --run t t", "log --run r t"),
            ("log t --run=t", "log t --run=r"),
            ("--json pause t", "--json pause r"),
        ] {
            let name = if given.ends_with("status") { "status" } else { "t" };
            assert_eq!(with_run(words(given), name, "r").join(" "), told);
        }
    }

    #[test]
    fn a_plan_that_was_named_is_named_again() {
        assert_eq!(Typed(None).run("--yes"), "outlast run --yes");
        assert_eq!(Typed(Some("slow")).run("--yes"), "outlast run slow --yes");
        assert_eq!(Typed(Some("my plans/a b.toml")).check(), "outlast check 'my plans/a b.toml'");
    }
}
