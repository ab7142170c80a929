//! What the binary says about itself: help, completions, the manual, and the reference made of them.

use crate::bench::Bench;

/// Widest line of help, in columns.
const COLUMNS_MAX: usize = 100;

/// The commands that the help lists.
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A description that goes on is indented further.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn the_help_of_every_command_fits_and_the_reference_holds_it() {
    let bench = Bench::new();
    let help = bench.run(&["--help"]).ends(0).stdout;
    let names = commands(&help);
    assert!(names.len() >= 17, "the contract's commands are listed: {names:?}");
    let mut reference = String::from(
        "# Command line\n\nEvery command with its options, as `outlast COMMAND --help` prints it. A test keeps this page equal to the \
         program.\n",
    );
    let mut section = |title: &str, help: &str| {
        reference.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", help.trim_end()));
    };
    section("outlast", &help);
    assert_eq!(bench.run(&["help"]).ends(0).stdout, help);
    // It has no page of its own.
    for name in names.iter().filter(|name| *name != "help") {
        assert_eq!(bench.run(&["help", name]).ends(0).stdout, bench.run(&[name.as_str(), "--help"]).ends(0).stdout);
        let help = bench.run(&[name.as_str(), "--help"]).ends(0).stdout;
        for line in help.lines() {
            assert!(line.chars().count() <= COLUMNS_MAX, "outlast {name} --help: {line}");
        }
        section(&format!("outlast {name}"), &help);
    }
    assert!(help.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{help}");
    assert!(!reference.contains("__"), "hidden commands stay hidden");
    snapbox::assert_data_eq!(reference, snapbox::file!["../../../../docs/cli.md"].raw());
}

#[test]
fn completions_and_the_manual_are_rendered() {
    let bench = Bench::new();
    for (shell, word) in [("bash", "complete -F"), ("zsh", "#compdef outlast"), ("fish", "complete -c outlast")] {
        let script = bench.run(&["completions", shell]).ends(0).shows(word).shows("doctor");
        assert!(script.stderr.is_empty(), "{script:#?}");
    }
    let page = bench.run(&["man"]).ends(0).shows(".TH outlast 1").shows("doctor");
    assert!(page.stderr.is_empty(), "{page:#?}");
}
