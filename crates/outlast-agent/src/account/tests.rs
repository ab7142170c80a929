//! The closing account in the shapes agents really give it.

use super::*;

#[test]
fn the_shape_the_preamble_asks_for() {
    let account = ClosingAccount::parse(
        "All three files are moved.\n\nChanged:\n- src/a.rs: uses the new client\n- src/b.rs: same\n  and its test\nWhy:\n- the old client is gone\nBlocked:\n- nothing\nAssumptions:\n- none\n",
    );
    assert_eq!(account.changed, ["src/a.rs: uses the new client", "src/b.rs: same and its test"]);
    assert_eq!(account.why, ["the old client is gone"]);
    assert_eq!(
        account,
        ClosingAccount { changed: account.changed.clone(), why: account.why.clone(), ..ClosingAccount::default() }
    );
}

#[test]
fn markdown_case_and_numbering_do_not_matter() {
    let account = ClosingAccount::parse(
        "## CHANGED\n1. one\n2) two\n\n**Why:** because\n### Blocked\nNone.\n- **Assumptions**: tabs stay\n## Notes\nnot ours\n",
    );
    assert_eq!(account.changed, ["one", "two"]);
    assert_eq!(account.why, ["because"]);
    assert!(account.blocked.is_empty());
    assert_eq!(account.assumptions, ["tabs stay"]);
}

#[test]
fn a_question_is_found_where_it_is_marked_and_where_it_ends_as_one() {
    for (text, wanted) in [
        ("Blocked: question: Which of the two schemas is current?", "Which of the two schemas is current?"),
        ("BLOCKED: Question: keep v1", "keep v1"),
        ("**Blocked:**\n- **question**: tabs or spaces", "tabs or spaces"),
        ("Blocked:\n- Should the old name stay?", "Should the old name stay?"),
        ("受阻\nBlocked：question：用哪个模式？", "用哪个模式？"),
    ] {
        assert_eq!(ClosingAccount::parse(text).question.as_deref(), Some(wanted), "{text:?}");
    }
}

#[test]
fn something_missing_is_told_apart_from_a_question() {
    let account = ClosingAccount::parse("Blocked:\n- missing: the package `left` is in no registry here\n");
    assert_eq!(account.missing.as_deref(), Some("the package `left` is in no registry here"));
    assert_eq!(account.question, None);
}

#[test]
fn prose_is_no_account() {
    for text in [
        "",
        "Changed the parser to fix it. Blocked streams are closed.",
        "Is that all right?",
        "Blocked: question: none",
    ] {
        let account = ClosingAccount::parse(text);
        assert!(
            account.question.is_none() && account.missing.is_none() && account.changed.is_empty(),
            "{text:?}: {account:?}"
        );
    }
}

#[test]
fn an_account_given_twice_counts_once() {
    let account = ClosingAccount::parse("Changed:\n- draft\n\nChanged:\n- final\n");
    assert_eq!(account.changed, ["final"]);
}
