//! What an engine tries again and again, told to whoever waits for it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;

use outlast_core::TaskId;
use outlast_engine::{Engine, NoSpace, Trouble};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::commands::say;

/// The troubles of one engine, from the moment this is made.
pub(crate) struct Troubles {
    /// Nothing where another program listens already, or the engine is gone.
    receiver: Option<broadcast::Receiver<Trouble>>,
    /// What was last told of each task.
    told: BTreeMap<Option<TaskId>, String>,
}

impl Troubles {
    pub(crate) fn of(engine: &Engine) -> Self {
        Self { receiver: engine.troubles(), told: BTreeMap::new() }
    }

    /// Waits for the next one; for ever where there will be none.
    pub(crate) async fn next(&mut self) -> Trouble {
        if let Some(receiver) = &mut self.receiver {
            loop {
                match receiver.recv().await {
                    Ok(trouble) => return trouble,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => break,
                }
            }
        }
        std::future::pending().await
    }

    /// Tells them all, for as long as the engine works in `folder`: what is tried again may take its time.
    pub(crate) async fn tell_all(&mut self, folder: &Path) -> Infallible {
        loop {
            let trouble = self.next().await;
            self.tell(&trouble, NoSpace::of(folder));
        }
    }

    /// Tells what holds a task up, once for as long as it is the same.
    pub(crate) fn tell(&mut self, trouble: &Trouble, lack: NoSpace) {
        let told = in_words(trouble, lack);
        if self.told.get(&trouble.task) != Some(&told) {
            say(&told);
            self.told.insert(trouble.task.clone(), told);
        }
    }
}

fn in_words(trouble: &Trouble, lack: NoSpace) -> String {
    let again = if trouble.again { "; it is tried again" } else { "" };
    let advice = match (trouble.no_space, lack) {
        (false, _) => "",
        (true, NoSpace::Room) => "; free some space",
        (true, NoSpace::FileSize(_)) => "; stop it and start it again after `ulimit -f unlimited`",
    };
    let task = trouble.task.as_ref().map_or_else(String::new, |task| format!("{task}: "));
    format!("{task}{}{again}{advice}", trouble.what)
}
