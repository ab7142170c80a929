//! One launch under test: its folders, its spec, and waiting for what it does.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outlast_process::{
    ContainmentChoice, Event, ExitRecord, FileRules, LaunchSpec, OsText, ShimClient, ShimId, ShimState, Spawner,
    Timeouts, files,
};
use tempfile::TempDir;

/// A named test.
pub(crate) type Test = (&'static str, fn(&'static Spawner));

/// No event of a test may take longer.
const PATIENCE: Duration = Duration::from_secs(20);

static LAUNCHES: AtomicU32 = AtomicU32::new(0);

/// A launch that is about to be made: change `spec`, then start it.
pub(crate) struct Bench {
    folder: TempDir,
    pub(crate) spec: LaunchSpec,
}

/// A started launch and a connection to its shim. The tree is killed when this is dropped.
pub(crate) struct Running {
    _folder: TempDir,
    pub(crate) spec: LaunchSpec,
    pub(crate) shim: ShimId,
    pub(crate) client: ShimClient,
    pub(crate) state: ShimState,
}

impl Bench {
    /// `sh -c script` in an own workspace, with nothing but a `PATH` and a `TMPDIR`.
    pub(crate) fn new(script: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (attempt, workspace, temp) = (at("attempt"), at("workspace"), at("temp"));
        let number = LAUNCHES.fetch_add(1, Ordering::Relaxed);
        let spec = LaunchSpec {
            argv: ["sh", "-c", script].map(OsText::from).into(),
            env: BTreeMap::from([
                ("PATH".to_owned(), "/usr/bin:/bin".into()),
                ("TMPDIR".to_owned(), temp.clone().into()),
            ]),
            cwd: workspace.clone(),
            attempt_dir: attempt,
            marker: format!("test-{}-{number}", std::process::id()),
            sandbox: FileRules { write: vec![workspace, temp], ..FileRules::system() },
            connect_ports: None,
            containment: ContainmentChoice::Auto,
            timeouts: Timeouts { wall: Some(PATIENCE), ..Timeouts::default() },
            kill_grace: Duration::from_millis(200),
            output_limit_bytes: 1 << 20,
            line_limit_bytes: 1 << 16,
            files: Vec::new(),
            listener: None,
        };
        Self { folder, spec }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it and takes the shim's greeting.
    pub(crate) async fn start(self, spawner: &Spawner) -> Running {
        let shim = spawner.spawn_async(&self.spec).await.unwrap();
        let mut client = ShimClient::connect(&self.spec.attempt_dir).await.unwrap();
        let Some(Event::State(state)) = client.next_event().await.unwrap() else { panic!("the shim does not greet") };
        Running { _folder: self.folder, spec: self.spec, shim, client, state: *state }
    }

    /// Starts it and waits for its end.
    pub(crate) async fn run(self, spawner: &Spawner) -> Ended {
        let shim = spawner.spawn_async(&self.spec).await.unwrap();
        Ended::of(self.folder, self.spec, &shim).await
    }
}

impl Running {
    /// A launch that another engine has started.
    pub(crate) fn adopted(bench: Bench, shim: ShimId, client: ShimClient, state: ShimState) -> Self {
        Self { _folder: bench.folder, spec: bench.spec, shim, client, state }
    }

    /// The next event that `wanted` makes something of.
    pub(crate) async fn next<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> T {
        let found = async {
            loop {
                let event = self.client.next_event().await.unwrap().expect("the shim has left too early");
                if let Some(found) = wanted(&event) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("no such event")
    }

    /// Waits until the program has written this many bytes to stdout.
    pub(crate) async fn wrote(&mut self, bytes: u64) {
        if self.state.stdout_bytes < bytes {
            let enough = |event: &Event| match event {
                Event::Output { stdout_bytes, .. } if *stdout_bytes >= bytes => Some(()),
                _ => None,
            };
            self.next(enough).await;
        }
    }

    /// Asks for the state as it is now.
    pub(crate) async fn next_state(&mut self) -> ShimState {
        self.client.request_status().await.unwrap();
        self.next(|event| if let Event::State(state) = event { Some((**state).clone()) } else { None }).await
    }

    /// Waits for the end as the control socket tells it.
    pub(crate) async fn exited(&mut self) -> ExitRecord {
        self.next(|event| if let Event::Exited(record) = event { Some(record.clone()) } else { None }).await
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.spec.cwd
    }

    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(self.spec.attempt_dir.join(files::STDOUT)).unwrap()
    }

    /// Everything that carries this launch's marker or uses its workspace.
    pub(crate) fn traces(&self) -> Vec<outlast_process::Survivor> {
        outlast_process::survivors(&self.spec.marker, self.workspace()).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shim.kill().unwrap();
        outlast_process::kill_survivors(&self.traces(), PATIENCE).unwrap();
    }
}

/// A launch that has ended.
pub(crate) struct Ended {
    pub(crate) exit: ExitRecord,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) spec: LaunchSpec,
    _folder: TempDir,
}

impl Ended {
    pub(crate) async fn of(folder: TempDir, spec: LaunchSpec, shim: &ShimId) -> Self {
        tokio::time::timeout(PATIENCE, shim.wait_gone()).await.expect("the launch does not end").unwrap();
        let read = |name| match std::fs::read(spec.attempt_dir.join(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            bytes => String::from_utf8_lossy(&bytes.unwrap()).into_owned(),
        };
        assert_eq!(read(files::SHIM_LOG), "", "the shim complained");
        let exit = files::load_exit(&spec.attempt_dir).unwrap().expect("an exit record");
        Self { exit, stdout: read(files::STDOUT), stderr: read(files::STDERR), spec, _folder: folder }
    }
}

/// Runs an async test on one thread.
pub(crate) fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE * 2, test).await.expect("the test takes too long") });
}

/// Leaves a descriptor open that is not close-on-exec, as a careless parent of the engine would.
pub(crate) fn leak_a_descriptor() {
    let file = std::fs::File::open("/etc/passwd").unwrap();
    nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    assert!(file.as_raw_fd() > 2);
    let _leaked = file.into_raw_fd();
}

/// A named pipe in a folder: reading it blocks a script until the test writes.
pub(crate) fn make_gate(folder: &Path) -> PathBuf {
    let gate = folder.join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    gate
}

/// Lets a script that reads the gate go on.
pub(crate) async fn open_gate(gate: PathBuf) {
    tokio::task::spawn_blocking(move || std::fs::write(gate, "go\n").unwrap()).await.unwrap();
}
