//! Folders of a made-up attempt, and launches shown without the names of this machine.

#![expect(clippy::unwrap_used, reason = "a test helper may fail loudly")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use outlast_agent::{Brief, Key, KeyShape, Kind, Launch, Session};
use outlast_core::{RunId, TaskId};
use serde_json::{Value, json};

/// The attempt's key: a canary.
pub(crate) const KEY: &str = "sk-attempt-canary";

/// A home, a temporary folder, a workspace and an installed program.
pub(crate) struct Folders {
    root: PathBuf,
    _dir: tempfile::TempDir,
}

impl Folders {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home", "home/tmp", "workspace", "user", "bin"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for program in ["agent.js", "node", "sh"] {
            let file = root.join("bin").join(program);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        // A Python environment with a script, and the library that its interpreter brings.
        for (file, text) in [
            ("python/bin/python3.13", String::new()),
            ("python/lib/python3.13/os.py", String::new()),
            ("venv/pyvenv.cfg", String::new()),
            ("venv/bin/kimi", format!("#!{}/venv/bin/python3\nimport sys\n", root.display())),
        ] {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        symlink(root.join("python/bin/python3.13"), root.join("venv/bin/python3")).unwrap();
        Self { root, _dir: dir }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    pub(crate) fn user_home(&self) -> PathBuf {
        self.root.join("user")
    }

    pub(crate) fn workspace_file(&self, path: &str, text: &str) {
        let file = self.workspace().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    pub(crate) fn brief(&self, kind: Kind) -> Brief {
        let command = if kind == Kind::Command { vec!["sh".to_owned(), "{goal_file}".to_owned()] } else { Vec::new() };
        Brief {
            program: self.root.join(if kind == Kind::Kimi { "venv/bin/kimi" } else { "bin/agent.js" }),
            home: self.home(),
            temp: self.home().join("tmp"),
            workspace: self.workspace(),
            user_home: Some(self.user_home()),
            gateway_url: "http://127.0.0.1:{port}".into(),
            key: Key::new(KEY),
            key_shape: KeyShape::ApiKey,
            model: Some("some-model".into()),
            prompt: "Do the task.".into(),
            goal: "Do it.".into(),
            goal_file: self.home().join("goal.md"),
            session: Session::Fresh { id: "00000000-1111-8222-8333-444444444444".into() },
            attempt: "run-1/task.1".into(),
            run: RunId::from("run-1"),
            task: TaskId::from("task"),
            inherit: Vec::new(),
            extra_env: BTreeMap::new(),
            path: self.root.join("bin").to_str().unwrap().to_owned(),
            progress_file: self.home().join("progress"),
            handover_file: None,
            command,
            command_env: BTreeMap::new(),
        }
    }
}

/// A launch as JSON, this test's folders named `[root]`; files that hold JSON are shown as such.
pub(crate) fn shown(folders: &Folders, launch: &Launch) -> Value {
    let files: BTreeMap<_, _> = launch
        .files
        .iter()
        .map(|(path, text)| {
            (
                path.to_str().unwrap(),
                serde_json::from_str(text).unwrap_or_else(|_| json!(text.lines().collect::<Vec<_>>())),
            )
        })
        .collect();
    let env: BTreeMap<_, _> = launch
        .env
        .iter()
        .map(|(name, value)| {
            (name, serde_json::from_str::<Value>(value).ok().filter(Value::is_object).unwrap_or_else(|| json!(value)))
        })
        .collect();
    let shown = json!({
        "argv": launch.argv,
        "env": env,
        "files": files,
        "read_paths": launch.read_paths,
        "execute_paths": launch.execute_paths,
        "dialect": launch.dialect.map(outlast_agent::Dialect::name),
        "hold": format!("{:?}", launch.hold),
    });
    let text = shown.to_string().replace(folders.root().to_str().unwrap(), "[root]");
    serde_json::from_str(&text).unwrap()
}
