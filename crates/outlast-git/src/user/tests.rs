//! In whose name commits land.

use super::*;

fn repo(config: &[(&str, &str)]) -> UserRepo {
    let listed: String = config.iter().map(|(key, value)| format!("local\0{key}\n{value}\0")).collect();
    UserRepo {
        git: Git::locate().unwrap(),
        root: PathBuf::new(),
        git_dir: PathBuf::new(),
        common_dir: PathBuf::new(),
        config: Config::parse(listed.as_bytes()),
    }
}

#[track_caller]
fn check(config: &[(&str, &str)], variables: &[(&str, &str)], author: &str, committer: &str) {
    let repo = repo(config);
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let found = [("AUTHOR", "author"), ("COMMITTER", "committer")].map(|(role, section)| {
        match repo.identity(role, section, variable) {
            Ok(who) => format!("{} <{}>", who.name, who.email),
            Err(Error::Refused(Refusal::NoIdentity { missing })) => format!("no {missing}"),
            Err(error) => error.to_string(),
        }
    });
    assert_eq!(found, [author, committer]);
}

const USER: [(&str, &str); 2] = [("user.name", "Ann"), ("user.email", "ann@x")];

#[test]
fn an_identity_comes_from_where_git_takes_it() {
    check(&USER, &[], "Ann <ann@x>", "Ann <ann@x>");
    let both = [USER[0], USER[1], ("author.name", "Bob"), ("committer.email", "bot@x")];
    check(&both, &[], "Bob <ann@x>", "Ann <bot@x>");
    let variables = [("GIT_AUTHOR_NAME", "Eve"), ("GIT_AUTHOR_EMAIL", "eve@x"), ("GIT_COMMITTER_NAME", "CI")];
    check(&both, &variables, "Eve <eve@x>", "CI <bot@x>");
    check(&[], &variables, "Eve <eve@x>", "no user.email");
    check(&[], &[variables[2], ("EMAIL", "mail@x")], "no user.name", "CI <mail@x>");
    check(&USER, &[("GIT_AUTHOR_NAME", " "), ("EMAIL", "mail@x")], "Ann <ann@x>", "Ann <ann@x>");
}
