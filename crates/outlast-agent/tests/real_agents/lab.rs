//! A workspace, a home, the scripted provider and a listener that must hear nothing, for one real CLI.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use outlast_agent::{
    Brief, Event, Exit, ExitStatus, Key, KeyShape, Kind, Launch, Reader, Session, Source, Summary, Verdict, adapter,
    discover, session_uuid,
};
use outlast_core::{RunId, TaskId};
use outlast_testkit::fixture::TestEnv;
use outlast_testkit::provider::{Provider, Running, Script};

use crate::hostile;

/// The attempt's key; the provider accepts no other.
pub(crate) const KEY: &str = "sk-attempt";

/// How long one run of a CLI may take: the slowest needs 10 s on an idle machine.
const RUN_MAX: Duration = Duration::from_secs(150);

/// How long a CLI may take to write what it has told of to its session.
const SESSION_WRITTEN_MAX: Duration = Duration::from_secs(30);

pub(crate) struct Lab {
    pub(crate) kind: Kind,
    pub(crate) env: TestEnv,
    pub(crate) provider: Running,
    pub(crate) evil: Evil,
    program: PathBuf,
}

/// What one run of a CLI came to.
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) events: Vec<Event>,
    pub(crate) summary: Summary,
    pub(crate) verdict: Verdict,
    /// All it printed, for messages.
    pub(crate) told: String,
}

impl Lab {
    /// `None`, said aloud, when there are no real agents to test with.
    pub(crate) async fn new(kind: Kind) -> Option<Self> {
        let Some(agents) = std::env::var_os("OUTLAST_REAL_AGENTS") else {
            eprintln!("SKIPPED: {kind} was not tested, OUTLAST_REAL_AGENTS is not set");
            return None;
        };
        let found = discover::discover(agents.to_str().unwrap());
        let program = found.into_iter().find(|found| found.kind == kind).expect("the agent is installed").program;
        let env = TestEnv::new().unwrap();
        for folder in ["home/tmp", "user"] {
            fs::create_dir_all(env.root().join(folder)).unwrap();
        }
        let repo = env.repo("work").unwrap();
        repo.commit_file("greeting.txt", "hello\n", "First").unwrap();
        let script = Script { keep_bodies: true, ..Script::default() }.with_keys([KEY]);
        let provider = Provider::start_local(script).await.unwrap();
        Some(Self { kind, env, provider, evil: Evil::listen(), program })
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.env.root().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.env.root().join("home")
    }

    /// Fills workspace and home with what must have no effect.
    pub(crate) fn turn_hostile(&self) {
        hostile::repository(&self.workspace(), &self.evil.url);
        hostile::home(&self.home(), &self.evil.url);
    }

    pub(crate) fn brief(&self, prompt: &str) -> Brief {
        let goal_file = self.env.root().join("home/goal.md");
        fs::write(&goal_file, prompt).unwrap();
        Brief {
            program: self.program.clone(),
            home: self.home(),
            temp: self.home().join("tmp"),
            workspace: self.workspace(),
            user_home: None,
            gateway_url: "http://127.0.0.1:{port}".into(),
            key: Key::new(KEY),
            key_shape: KeyShape::ApiKey,
            model: Some(if self.kind == Kind::ClaudeCode { "claude-opus-4-8[1m]".into() } else { "some-model".into() }),
            prompt: prompt.to_owned(),
            goal: String::new(),
            goal_file,
            session: Session::Fresh { id: session_uuid(b"a test") },
            attempt: "test/task.1".into(),
            run: RunId::from("test"),
            task: TaskId::from("task"),
            inherit: Vec::new(),
            extra_env: Default::default(),
            path: std::env::var("PATH").unwrap(),
            progress_file: self.home().join("progress"),
            handover_file: None,
            command: Vec::new(),
            command_env: Default::default(),
        }
    }

    /// Launches as the adapter says and waits for the end.
    pub(crate) fn run(&self, brief: &Brief) -> Ran {
        let launch = adapter(self.kind).launch(brief).unwrap();
        self.run_launch(&launch, |_| false)
    }

    /// Runs a launch; kills it, tools and all, once `stop` says so of an event.
    pub(crate) fn run_launch(&self, launch: &Launch, stop: impl Fn(&Event) -> bool) -> Ran {
        let mut child = self.start(launch);
        let (sender, output) = mpsc::channel();
        pass_on(child.stdout.take().unwrap(), Source::Stdout, sender.clone());
        pass_on(child.stderr.take().unwrap(), Source::Stderr, sender);
        let mut reader: Reader = adapter(self.kind).reader();
        let (mut events, mut told) = (Vec::new(), String::new());
        let mut stopped = false;
        // The channel closes when both streams have ended, so when nothing holds them any more.
        while let Some((source, bytes)) = next(&output, stopped) {
            told.push_str(&String::from_utf8_lossy(&bytes));
            let seen = reader.feed(source, &bytes);
            if !stopped && seen.iter().any(&stop) {
                stopped = true;
                child.kill().unwrap();
                // Its tools live on (that is measured behaviour), and with them its output.
                self.end_all();
            }
            events.extend(seen);
        }
        let status = child.wait().unwrap();
        events.extend(reader.finish());
        let mut summary = Summary::default();
        events.iter().for_each(|event| summary.note(event));
        let status = status.signal().map_or_else(|| ExitStatus::Code(status.code().unwrap()), ExitStatus::Signal);
        let exit = Exit { status, lingered: false };
        let verdict = adapter(self.kind).judge(&exit, &summary);
        Ran { exit, events, summary, verdict, told }
    }

    /// Runs a launch until the listener hears something, at most until it ends by itself.
    pub(crate) fn run_until_heard(&self, launch: &Launch) -> Option<String> {
        let mut child = self.start(launch);
        let heard = self.evil.heard.recv_timeout(RUN_MAX).ok();
        child.kill().unwrap();
        self.end_all();
        child.wait().unwrap();
        heard
    }

    fn start(&self, launch: &Launch) -> Child {
        let port = self.provider.url().rsplit(':').next().unwrap().to_owned();
        let with_port = |text: &str| text.replace("{port}", &port);
        for (path, text) in &launch.files {
            let file = self.home().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, with_port(text)).unwrap();
        }
        Command::new(&launch.argv[0])
            .args(launch.argv[1..].iter().map(|word| with_port(word)))
            .env_clear()
            .envs(launch.env.iter().map(|(name, value)| (name, with_port(value))))
            .current_dir(self.workspace())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn end_all(&self) {
        for pid in self.env.processes() {
            let _ended = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status().unwrap();
        }
    }

    /// Waits until a file below the home, of this extension, holds a text.
    pub(crate) fn wait_until_home_holds(&self, extension: &str, text: &str) {
        let until = Instant::now() + SESSION_WRITTEN_MAX;
        while !any_file_holds(&self.home(), extension, text) {
            assert!(Instant::now() < until, "no .{extension} file below the home holds {text}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the workspace has a file.
    pub(crate) fn wait_until_workspace_has(&self, file: &str) {
        let until = Instant::now() + SESSION_WRITTEN_MAX;
        while !self.workspace().join(file).exists() {
            assert!(Instant::now() < until, "the workspace has no {file}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The bodies of all model requests, in order.
    pub(crate) async fn bodies(&self) -> Vec<String> {
        let mut bodies = Vec::new();
        for entry in self.provider.model_requests().await {
            let body = self.provider.body(entry.number).await.unwrap();
            bodies.push(String::from_utf8_lossy(&body).into_owned());
        }
        bodies
    }
}

fn any_file_holds(folder: &Path, extension: &str, text: &str) -> bool {
    fs::read_dir(folder).unwrap().filter_map(Result::ok).map(|entry| entry.path()).any(|path| {
        if path.is_symlink() {
            false
        } else if path.is_dir() {
            any_file_holds(&path, extension, text)
        } else {
            path.extension().is_some_and(|found| found == extension) && holds(&path, text)
        }
    })
}

type Piece = (Source, Vec<u8>);

fn next(output: &mpsc::Receiver<Piece>, stopped: bool) -> Option<Piece> {
    match output.recv_timeout(RUN_MAX) {
        Ok(piece) => Some(piece),
        Err(mpsc::RecvTimeoutError::Disconnected) => None,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("silent for {RUN_MAX:?} (killed: {stopped})"),
    }
}

/// Passes a stream on in small pieces, so that lines arrive split.
fn pass_on(mut stream: impl Read + Send + 'static, source: Source, sender: mpsc::Sender<Piece>) {
    thread::spawn(move || {
        let mut piece = [0_u8; 777];
        while let Ok(read @ 1..) = stream.read(&mut piece) {
            if sender.send((source, piece[..read].to_vec())).is_err() {
                return;
            }
        }
    });
}

/// A listener that writes down the first line of whatever reaches it.
pub(crate) struct Evil {
    pub(crate) url: String,
    heard: mpsc::Receiver<String>,
}

impl Evil {
    fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, heard) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut head = [0_u8; 1024];
                let read = stream.read(&mut head).unwrap_or(0);
                let line = String::from_utf8_lossy(&head[..read]).lines().next().unwrap_or_default().to_owned();
                drop(stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { url, heard }
    }

    /// All that has reached it since the last look.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.try_iter().collect()
    }
}

/// Whether a file holds a text.
pub(crate) fn holds(file: &Path, text: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|content| content.contains(text))
}
