//! The log: what engine and gateway note beside the records, for whoever looks for a defect. One file in the home.
//!
//! It is made with its first line, never grows beyond [`LEN_MAX`] (then it becomes the one older file), and holds lines
//! of our own crates only, whatever `OUTLAST_LOG` asks for: others do not know which of the headers that pass through
//! them are secret. A line that cannot be written is lost: no command fails for its log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::fcntl::{Flock, FlockArg};
use outlast_engine::Home;
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt::layer, registry};

/// What is written where `OUTLAST_LOG` says nothing else, as in the filters of the crate `tracing-subscriber`.
const FILTER: &str = "info";
/// Weeks of a busy engine.
const LEN_MAX: u64 = 4 * 1024 * 1024;
/// The longest line: what an error quotes may be of any length.
const LINE_LEN_MAX: usize = 8 * 1024;

/// Where the log of this process is.
static PLACE: OnceLock<PathBuf> = OnceLock::new();

/// Where the log of a home is.
pub(crate) fn path(home: &Home) -> PathBuf {
    home.root().join("outlast.log")
}

/// Where the log of this process is, once it has one.
pub(crate) fn place() -> Option<&'static Path> {
    PLACE.get().map(PathBuf::as_path)
}

/// Takes lines from here on, a panic's among them. Says what is wrong with `OUTLAST_LOG`, if anything is.
pub(crate) fn begin(home: &Home) -> Option<String> {
    let wanted = std::env::var("OUTLAST_LOG").ok().filter(|wanted| !wanted.is_empty());
    let (filter, wrong) = match EnvFilter::builder().parse(wanted.as_deref().unwrap_or(FILTER)) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(FILTER), Some(format!("OUTLAST_LOG is not used: {error}"))),
    };
    let path = path(home);
    let ours = filter_fn(|line| line.target().starts_with("outlast"));
    let log =
        layer().with_writer(Log::new(path.clone(), LEN_MAX)).with_ansi(false).with_filter(filter).with_filter(ours);
    if registry().with(log).try_init().is_ok() && PLACE.set(path).is_ok() {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            tracing::error!(%panic, "a defect");
            told(panic);
        }));
    }
    wrong
}

/// The file, opened with its first line.
struct Log {
    path: PathBuf,
    len_max: u64,
    file: Mutex<Option<File>>,
}

impl Log {
    const fn new(path: PathBuf, len_max: u64) -> Self {
        Self { path, len_max, file: Mutex::new(None) }
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)
    }

    /// Appends a line; several processes may do so at once.
    fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = match held.take() {
            Some(file) => file,
            None => self.open()?,
        };
        let facts = file.metadata()?;
        if facts.len() + line.len() as u64 > self.len_max || facts.nlink() == 0 {
            file = self.turn_over(file)?;
        }
        held.insert(file).write_all(line)
    }

    /// Makes the file the older one and begins another, unless another process has done so.
    fn turn_over(&self, file: File) -> io::Result<File> {
        let full = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| io::Error::from(errno))?;
        let is_ours = fs::metadata(&self.path).is_ok_and(|now| full.metadata().is_ok_and(|own| own.ino() == now.ino()));
        if is_ours {
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        drop(full);
        self.open()
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Lines<'a>;

    fn make_writer(&'a self) -> Lines<'a> {
        Lines(self)
    }
}

/// Takes whole lines.
struct Lines<'a>(&'a Log);

impl Write for Lines<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut text = format!("{} ", std::process::id()).into_bytes();
        text.extend_from_slice(&line[..line.len().min(LINE_LEN_MAX)]);
        if line.len() > LINE_LEN_MAX {
            text.extend_from_slice("…\n".as_bytes());
        }
        // Told to nobody: there is no better place than the log itself.
        self.0.append(&text).unwrap_or_default();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_below(folder: &Path) -> u64 {
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
    }

    #[test]
    fn the_log_never_takes_more_than_twice_its_length_and_keeps_the_newest_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = || Log::new(folder.path().join("outlast.log"), 1_000);
        // Two processes, as it were, of which each notices what the other has done.
        let (one, other) = (log(), log());
        for n in 0..200 {
            let log = if n % 3 == 0 { &one } else { &other };
            log.make_writer().write_all(format!("line {n:03}\n").as_bytes()).unwrap();
            assert!(bytes_below(folder.path()) <= 2_000, "at line {n}");
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let kept = read("outlast.log.1") + &read("outlast.log");
        let numbers: Vec<u32> = kept.lines().map(|line| line[line.len() - 3..].parse().unwrap()).collect();
        assert_eq!(numbers, (200 - numbers.len() as u32..200).collect::<Vec<_>>());
        assert_eq!(fs::metadata(folder.path().join("outlast.log")).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_line_has_an_end_and_a_home_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::new(folder.path().join("outlast.log"), LEN_MAX);
        log.make_writer().write_all(&[b'x'; 3 * LINE_LEN_MAX]).unwrap();
        assert!(bytes_below(folder.path()) < 2 * LINE_LEN_MAX as u64);
        let nowhere = Log::new(folder.path().join("home/outlast.log"), LEN_MAX);
        nowhere.make_writer().write_all(b"line\n").unwrap();
        assert!(!folder.path().join("home").exists());
    }
}
