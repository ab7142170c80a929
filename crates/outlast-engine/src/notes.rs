//! What a checkpoint did not take, in words: work that is in the workspace alone, and that nobody must miss unawares.

use outlast_core::Oid;
use outlast_git::{Aside, ByteSlice as _, Change, FILE_LIMIT_DEFAULT, Note, Report, ScopeDiff, SkipReason};

/// How many paths are named.
const PATHS_NAMED: usize = 3;

/// What a person should hear whose repository is not set up any more as it was when the run began.
pub(crate) const SETTINGS_CHANGED: &str = "somebody changed the settings of your repository while agents were at work (an \
     agent cannot write there): `git config --local --list` shows them";

/// What a person should hear when damage of our store was met with.
pub(crate) const MENDED_STORE: &str = "our store was damaged: damaged files are kept beside it (`*.damaged`), what anybody still has \
     of them is put back, and work goes on (`outlast doctor` names what is lost)";

/// What is in a workspace and in no checkpoint, for people; nothing where all of it is.
pub(crate) fn left_out(notes: &[Note]) -> Option<String> {
    let skipped = notes.iter().filter_map(|note| match note {
        Note::Skipped { path, reason } => Some(format!("`{}` ({})", path.to_str_lossy(), why(reason))),
        Note::NestedRepository(path) => Some(format!("`{}/.git` (a repository in the tree)", path.to_str_lossy())),
        _ => None,
    });
    let mut named: Vec<String> = skipped.collect();
    if named.len() > PATHS_NAMED {
        let more = named.len() - PATHS_NAMED;
        named.truncate(PATHS_NAMED);
        named.push(format!("{more} more"));
    }
    (!named.is_empty()).then(|| named.join(", "))
}

/// What of a change does not land because it is outside of the task's scope or in a copy of the project, in words; nothing
/// where all of it does.
pub(crate) fn stripped(split: &ScopeDiff) -> Option<String> {
    let outside = (!split.out_of_scope.is_empty())
        .then(|| format!("being outside `writes`: {}", self::outside(&split.out_of_scope)));
    let copies = (!split.in_worktrees.is_empty())
        .then(|| format!("being in a worktree that the agent made in its workspace: {}", worktrees(split)));
    let what: Vec<String> = outside.into_iter().chain(copies).collect();
    (!what.is_empty())
        .then(|| format!("left out of what lands, {} (kept; `outlast diff` shows it)", what.join("; and, ")))
}

/// The worktrees of its own that an agent has made, the first few by name.
pub(crate) fn worktrees(split: &ScopeDiff) -> String {
    let named = split.worktrees.iter().take(PATHS_NAMED).map(|folder| format!("`{}`", folder.to_str_lossy()));
    named.collect::<Vec<_>>().join(", ")
}

/// Changed paths in words, the first few by name.
pub(crate) fn outside(changes: &[Change]) -> String {
    let named: Vec<String> = changes.iter().take(PATHS_NAMED).map(|c| format!("`{}`", c.path_lossy())).collect();
    match changes.len().saturating_sub(PATHS_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// What of these notes a person should hear of at once, although the tree is kept.
pub(crate) fn finding(notes: &[Note]) -> Option<String> {
    let head = notes.iter().find_map(|note| match note {
        Note::HeadNotCopied { head, why } => {
            Some(format!("its files are kept, the agent's own commits up to {head} are not: {why}"))
        }
        Note::RepositoryElsewhere { path, to } => Some(format!(
            "what it has at `{}`, outside the workspace, is not kept: `{}` names a repository there",
            to.to_str_lossy(),
            path.to_str_lossy()
        )),
        Note::NotKept { what, why } => Some(format!("only its workspace holds {what}: {why}")),
        _ => None,
    });
    let skipped = notes.iter().any(|note| matches!(note, Note::Skipped { .. }));
    head.or_else(|| {
        let what = left_out(notes).filter(|_| skipped)?;
        Some(format!("only its workspace holds {what}; none of it lands"))
    })
}

/// How a task goes on whose workspace was lost, of which `kept` was kept last and `restored` is back.
pub(crate) fn goes_on(kept: Option<&Oid>, restored: Option<&Oid>) -> &'static str {
    match (kept, restored) {
        (_, Some(_)) if kept == restored => "is back as it was at its last turn",
        (_, Some(_)) => "is back as it was at an earlier turn (what was kept of the later ones is lost)",
        (Some(_), None) => "begins from its base again (what was kept of it is lost)",
        (None, None) => "begins from its base again",
    }
}

/// That a workspace was gone and not all that was kept of it is there, and how its task goes on.
pub(crate) fn gone(goes_on: &str) -> String {
    format!("its workspace was gone, and {goes_on}")
}

/// That the last state of a workspace could not be kept when its attempt ended.
pub(crate) fn not_kept_at_the_end(why: &str) -> String {
    format!("its last state is in its workspace alone ({why}); `outlast doctor` says what helps")
}

/// That what was kept last of a task that is given up is lost.
pub(crate) fn lost_of_given_up(last: &Oid, kept: Option<&Oid>) -> String {
    match kept {
        Some(kept) => format!("its last checkpoint {last} is lost in part: {kept}, before it, is kept in its place"),
        None => format!("its last checkpoint {last} is lost, with all before it: nothing of it can be kept"),
    }
}

/// That a damaged workspace was set aside, what its task does now, and where its parts are.
pub(crate) fn set_aside(aside: &Aside, goes_on: &str) -> String {
    let record = aside.record.display();
    let place = match &aside.tree {
        Some(tree) => {
            format!("all that was in it is kept in `{}`, and what is left of the record in `{record}`", tree.display())
        }
        None => format!("what is left of the record is kept in `{record}`"),
    };
    format!("the record of its workspace was damaged, so it {goes_on}; {place}")
}

/// That the repository of a workspace was damaged and is mended.
pub(crate) fn mended(files: &[String]) -> String {
    let mut named: Vec<String> = files.iter().take(PATHS_NAMED).map(|file| format!("`.git/{file}`")).collect();
    let more = files.len().saturating_sub(PATHS_NAMED);
    named.extend((more > 0).then(|| format!("{more} more")));
    format!(
        "the repository in its workspace was damaged ({}) and is mended as far as is known: its files and commits are as they were",
        named.join(", ")
    )
}

/// What workspaces lack of the user's checkout, in words; nothing where they are like it.
pub(crate) fn lacking(report: &Report) -> Option<String> {
    let mut lacks = Vec::new();
    if let Some(hooks) = &report.hooks_absent {
        lacks.push(format!(
            "the hooks folder `{hooks}` is not in the commit, so none of its hooks runs (`setup` may make it)"
        ));
    }
    if let Some(count) = report.filtered.get("lfs") {
        lacks.push(format!("{count} files of Git LFS are pointers (`setup` may run `git lfs pull`)"));
    }
    if !report.not_included.is_empty() {
        let named: Vec<String> =
            report.not_included.iter().take(PATHS_NAMED).map(|path| format!("`{}`", path.to_str_lossy())).collect();
        lacks.push(format!("`.worktreeinclude` names {}, which leads out of the tree or is no file", named.join(", ")));
    }
    (!lacks.is_empty()).then(|| format!("in workspaces {}", lacks.join("; ")))
}

/// Why a path was not taken.
pub(crate) fn why(reason: &SkipReason) -> String {
    match reason {
        SkipReason::TooLarge { bytes } => format!("{bytes} bytes, more than {FILE_LIMIT_DEFAULT}"),
        SkipReason::Unreadable => "it cannot be read".to_owned(),
        SkipReason::NotAFile => "a pipe, a socket or a device".to_owned(),
        SkipReason::Unstorable => "git cannot hold such a name".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(path: &str, reason: SkipReason) -> Note {
        Note::Skipped { path: path.into(), reason }
    }

    #[test]
    fn e17_e18_what_a_workspace_lacks_is_named() {
        assert_eq!(lacking(&Report::default()), None);
        let mut report = Report { hooks_absent: Some(".husky/_".to_owned()), ..Report::default() };
        report.filtered.insert("crypt".to_owned(), 3);
        assert!(lacking(&report).unwrap().contains("`.husky/_` is not in the commit"));
        report.filtered.insert("lfs".to_owned(), 2);
        report.not_included.push(b"esc.log".to_vec());
        let told = lacking(&report).unwrap();
        assert!(told.contains("2 files of Git LFS") && told.contains("`esc.log`") && !told.contains("crypt"), "{told}");
    }

    #[test]
    fn what_is_left_out_is_named_with_its_reason() {
        assert_eq!(left_out(&[Note::Ignored("target/".into())]), None);
        let notes = [
            skipped("big.bin", SkipReason::TooLarge { bytes: 60_000_000 }),
            skipped("pipe", SkipReason::NotAFile),
            Note::NestedRepository("vendor/x".into()),
            skipped("shut", SkipReason::Unreadable),
        ];
        let told = "`big.bin` (60000000 bytes, more than 52428800), `pipe` (a pipe, a socket or a device), \
                    `vendor/x/.git` (a repository in the tree), 1 more";
        assert_eq!(left_out(&notes).as_deref(), Some(told));
        assert_eq!(finding(&notes[2..3]), None, "it is kept, beside the tree");
        let lost = [Note::NotKept { what: "what is staged".to_owned(), why: "it is split".to_owned() }];
        assert_eq!(finding(&lost).as_deref(), Some("only its workspace holds what is staged: it is split"));
        let elsewhere = [Note::RepositoryElsewhere { path: "sub/.git".into(), to: "/tmp/x".into() }];
        let told = "what it has at `/tmp/x`, outside the workspace, is not kept: `sub/.git` names a repository there";
        assert_eq!(finding(&elsewhere).as_deref(), Some(told));
        assert!(finding(&notes).unwrap().starts_with("only its workspace holds `big.bin`"));
    }
}
