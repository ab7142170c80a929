//! What of the user's configuration decides how files look in a working tree: line ends, filters, ignore lists.
//!
//! It is read once, through git, so that includes and conditions count; a task's whole life sees the same values.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::Git;
use crate::{Result, durable};

/// The user's configuration as git reads it in one checkout, last value of each key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config(Vec<(String, String)>);

impl Config {
    /// Reads all of it with one start of git.
    pub(crate) fn load(git: &Git, checkout: &Path) -> Result<Self> {
        let listed = git.in_checkout(checkout).args(["config", "--list", "--show-scope", "-z"]).ok()?;
        Ok(Self::parse(&listed))
    }

    pub(crate) fn parse(listed: &[u8]) -> Self {
        let text = String::from_utf8_lossy(listed);
        let mut fields = text.split('\0');
        let mut pairs = Vec::new();
        while let (Some(scope), Some(pair)) = (fields.next(), fields.next()) {
            // What outlast itself puts on top of every call is none of the user's.
            if scope == "command" {
                continue;
            }
            pairs.push(match pair.split_once('\n') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                // A key without `=` means true (git-config).
                None => (pair.to_owned(), "true".to_owned()),
            });
        }
        Self(pairs)
    }

    /// The last value of a key, whose section and name are in lower case.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The values that git's conversion between objects and files depends on; the filter of Git LFS is left out, so
    /// that its pointer files stay as they are and nothing is fetched.
    fn conversion(&self) -> Vec<(String, String)> {
        let wanted = |key: &str| {
            matches!(key, "core.autocrlf" | "core.eol" | "core.checkroundtripencoding")
                || key.starts_with("filter.") && !key.starts_with("filter.lfs.")
        };
        self.0.iter().filter(|(key, _)| wanted(key)).cloned().collect()
    }
}

/// Everything that decides how a tree becomes files and files become a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Conversion keys for git, in the order git read them.
    pub(crate) conversion: Vec<(String, String)>,
    /// Ignore patterns of the user's own file and of the repository's `info/exclude`, lowest first.
    pub(crate) excludes: Vec<u8>,
    /// Attributes of the user's own file.
    pub(crate) global_attributes: Vec<u8>,
    /// Attributes of the repository's `info/attributes`.
    pub(crate) info_attributes: Vec<u8>,
}

impl Settings {
    /// Reads the settings of a checkout.
    pub(crate) fn load(git: &Git, config: &Config, checkout: &Path, common_dir: &Path) -> Result<Self> {
        let file = |key: &str, default: &str| -> Result<Vec<u8>> {
            let path = match config.get(key) {
                Some("") => None,
                Some(_) => Some(typed_path(git, checkout, key)?),
                None => user_config_folder().map(|folder| folder.join(default)),
            };
            Ok(path.map_or(Ok(None), |p| durable::read(&p))?.unwrap_or_default())
        };
        let mut excludes = file("core.excludesfile", "ignore")?;
        excludes.push(b'\n');
        excludes.extend(durable::read(&common_dir.join("info/exclude"))?.unwrap_or_default());
        Ok(Self {
            conversion: config.conversion(),
            excludes,
            global_attributes: file("core.attributesfile", "attributes")?,
            info_attributes: durable::read(&common_dir.join("info/attributes"))?.unwrap_or_default(),
        })
    }

    /// The last value of a conversion key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.conversion.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The conversion keys without any that names a program.
    pub(crate) fn without_programs(&self) -> impl Iterator<Item = &(String, String)> {
        self.conversion.iter().filter(|(key, _)| !key.starts_with("filter."))
    }
}

/// A path from the configuration with `~` resolved by git.
fn typed_path(git: &Git, checkout: &Path, key: &str) -> Result<PathBuf> {
    let said = git.in_checkout(checkout).args(["config", "--type=path", "-z", "--get", key]).ok()?;
    let path = PathBuf::from(String::from_utf8_lossy(said.strip_suffix(b"\0").unwrap_or(&said)).into_owned());
    Ok(if path.is_absolute() { path } else { checkout.join(path) })
}

/// `$XDG_CONFIG_HOME/git`, else `~/.config/git` (gitignore(5), gitattributes(5)).
fn user_config_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config"))).map(|folder| folder.join("git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_line_ends_and_bare_keys_are_read() {
        let config = Config::parse(
            b"global\0core.autocrlf\nfalse\0local\0core.autocrlf\ninput\0local\0filter.x.clean\na\nb\0\
              local\0filter.lfs.clean\ngit-lfs\0local\0core.flag\0command\0core.autocrlf\ntrue\0",
        );
        assert_eq!(config.get("core.autocrlf"), Some("input"));
        assert_eq!(config.get("core.flag"), Some("true"));
        let kept: Vec<_> = config.conversion().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(kept, ["core.autocrlf=false", "core.autocrlf=input", "filter.x.clean=a\nb"]);
    }
}
