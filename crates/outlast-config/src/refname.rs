//! Which names git takes for a branch (git-check-ref-format(1), its rules 1 to 10 and those of `--branch`).

use outlast_core::RunId;
use outlast_core::plan::RunSettings;

/// Checks a target, which may hold `{run}`.
///
/// # Errors
/// What is wrong with it, as a fragment.
pub(crate) fn check_target(target: &str) -> Result<(), &'static str> {
    let settings = RunSettings { target: Some(target.to_owned()), ..RunSettings::new("") };
    check_branch(&settings.target_of(&RunId::from("run-0000")))
}

fn check_branch(name: &str) -> Result<(), &'static str> {
    const FORBIDDEN: [char; 8] = [' ', '~', '^', ':', '?', '*', '[', '\\'];
    match name {
        "" => return Err("it is empty"),
        "@" | "HEAD" => return Err("it stands for the current commit"),
        name if name.starts_with('-') => return Err("it begins with `-`"),
        name if name.starts_with("refs/") => {
            return Err("it is a full ref: leave `refs/heads/` away");
        }
        name if name.contains('{') && !name.contains("@{") => {
            return Err("only `{run}` is replaced");
        }
        name if name.contains("..") || name.contains("@{") => return Err("it holds `..` or `@{`"),
        name if name.contains(FORBIDDEN) => {
            return Err("it holds a space or one of ~ ^ : ? * [ \\");
        }
        name if name.chars().any(char::is_control) => return Err("it holds a control character"),
        name if name.ends_with('.') => return Err("it ends with a dot"),
        name if name.len() > 200 => return Err("it is longer than 200 bytes"),
        _ => {}
    }
    for part in name.split('/') {
        match part {
            "" => return Err("a part between its slashes is empty"),
            part if part.starts_with('.') => return Err("a part begins with a dot"),
            part if part.ends_with(".lock") => return Err("a part ends with `.lock`"),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_branches_git_takes() {
        for good in ["main", "outlast/{run}", "feature/文档", "a.b", "x@y"] {
            assert_eq!(check_target(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "@",
            "HEAD",
            "-x",
            "refs/heads/main",
            "a..b",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[b",
            "a\\b",
            "a@{1}",
            "a.",
            "a/",
            "/a",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a\u{7f}b",
            "x/{task}",
        ] {
            assert!(check_target(bad).is_err(), "{bad}");
        }
    }
}
