//! The case H13 on the real binary: work that was parked for hours goes on in its session where that is short, and from a note
//! where the session is long and in no cache any more. The hours are taken off every time in the journal.

use std::fs;
use std::path::Path;
use std::time::Duration;

use outlast_core::Timestamp;
use outlast_journal::{Entry, Error, Journal, JournalReader};
use outlast_testkit::provider::{Fault, RefusalKind, Rule, Script, When};
use serde_json::Value;

use crate::world::{Plan, World, text};

/// A task that a window parks for so many minutes at its third turn, when its conversation is so many tokens long; and these
/// minutes later, when it is due.
fn parked_with(tokens: u64, minutes: u64) -> World {
    let refuse = Fault::Refuse { reason: RefusalKind::WindowQuota, seconds: Some(60 * minutes) };
    let when = When { step: Some(3), ..When::default() };
    let world = World::with_script(Script::default().with_fault(Rule { when, fault: refuse, times: Some(1) }));
    let script = format!(
        "write parts/a.txt \"part a\\n\"\nusage in=10 out=10 cache_read={tokens} cache_write=0\n\
         write parts/b.txt \"part b\\n\"\nwrite parts/c.txt \"part c\\n\""
    );
    let plan = Plan::new("land = \"auto\"\nhold = \"1s\"").agent_arguments(&["--retries", "0", "--resume", "{resume}"]);
    world.plan(&plan.task("work", &script, "writes = [\"parts/**\"]\nretries = 0"));
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    assert_eq!((&world.task("work")["state"], &world.task("work")["attempts"]), (&"parked".into(), &1.into()));
    pass(&world.homes()[0].join("journal.db"), Duration::from_secs(60 * (minutes + 1)));
    world
}

/// Writes a journal anew as if all in it had happened so much earlier. Of the ledger nothing is taken over.
fn pass(journal: &Path, time: Duration) {
    let mut entries = Vec::new();
    let reader = JournalReader::open(journal).unwrap();
    reader
        .replay(0, |_, entry| {
            let body = earlier(serde_json::from_str(&entry.body).unwrap(), time).to_string();
            let at = Timestamp::from_millis(entry.at.as_millis() - i64::try_from(time.as_millis()).unwrap());
            entries.push(Entry { at, body, ..entry });
            Ok::<(), Error>(())
        })
        .unwrap();
    drop(reader);
    for end in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{end}", journal.display())).ok();
    }
    Journal::open(journal).unwrap().append(entries).unwrap();
}

/// A value with every time in it, which is a number of milliseconds of these years, so much earlier.
fn earlier(value: Value, time: Duration) -> Value {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(at @ 1_600_000_000_000..2_500_000_000_000) => Value::from(at - time.as_millis() as i64),
            _ => Value::Number(number),
        },
        Value::Array(values) => values.into_iter().map(|value| earlier(value, time)).collect(),
        Value::Object(values) => values.into_iter().map(|(name, value)| (name, earlier(value, time))).collect(),
        other => other,
    }
}

#[test]
fn h13_parked_for_hours_a_long_session_is_left_for_a_note_and_a_short_one_is_gone_on_with() {
    let cases = [(1_200_000, 180, "hand_over"), (20_000, 180, "session"), (1_200_000, 30, "session")];
    for (tokens, minutes, rung) in cases {
        let world = parked_with(tokens, minutes);
        let told = world.run(&["resume"]).ends(0).stderr;
        world.all_are("landed");
        let task = world.task("work");
        assert_eq!((text(&task["resumed_by"]), &task["attempts"]), (rung.to_owned(), &2.into()), "{task:#}");
        let why = format!("its session of {} tokens is in no cache any more", tokens + 20);
        assert_eq!(told.contains(&why), rung == "hand_over", "{told}");
        world.nothing_is_left();
    }
}
