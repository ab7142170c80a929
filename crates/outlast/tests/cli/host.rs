//! What the host lacks or has too much of: exit code 12, and nothing of the repository changed.

use std::fs;
use std::path::{Path, PathBuf};

use outlast_engine::Home;

use crate::bench::{Bench, Ran};

const PLAN: &str = "[agent.a]\nkind = \"claude-code\"\n[[task]]\nid = \"t\"\ngoal = \"g\"\n";

#[test]
fn an_agent_that_is_not_there_is_told_before_anything_starts() {
    let mut bench = Bench::new();
    bench.plan(PLAN);
    bench.env.set("KEY", "k");
    bench.env.write_config("[account.x]\nprovider = \"anthropic\"\nkey_env = \"KEY\"\n").unwrap();
    let before = bench.tree();
    let error = bench.run(&["run", "--yes", "--json"]).fails(12, "host/agent-missing");
    assert!(error["error"]["what"].as_str().unwrap().contains("`claude`"), "{error:#}");
    before.assert_same(&bench.tree(), "the repository is unchanged");
    bench.run(&["--json"]).ends(0).json("runs");
    assert_eq!(bench.run(&["--json"]).json("runs")["runs"].as_array().unwrap().len(), 0);
}

#[test]
fn an_agent_that_nobody_pays_for_is_told_before_anything_starts() {
    let mut bench = Bench::new();
    bench.plan(PLAN);
    bench.program("claude", "#!/bin/sh\nexit 0\n");
    let before = bench.tree();
    bench.run(&["run", "--yes", "--json"]).fails(3, "config/no-account");
    // Nor does an account of another provider help it.
    bench.env.set("KEY", "k");
    bench.env.write_config("[account.x]\nprovider = \"openai\"\nkey_env = \"KEY\"\n").unwrap();
    bench.run(&["run", "--yes", "--json"]).fails(3, "config/no-account");
    before.assert_same(&bench.tree(), "the repository is unchanged");
}

#[test]
fn an_agent_that_chooses_no_model_by_itself_is_refused_without_one() {
    let mut bench = Bench::new();
    bench.program("opencode", "#!/bin/sh\nexit 0\n");
    bench.plan(&PLAN.replace("claude-code", "opencode"));
    bench.env.set("KEY", "k");
    bench.env.write_config("[account.x]\nprovider = \"openai\"\nkey_env = \"KEY\"\n").unwrap();
    let before = bench.tree();
    let error = bench.run(&["run", "--yes", "--json"]).fails(3, "plan/no-model");
    assert_eq!(error["error"]["fix"][0], "add model = \"…\" to [agent.a]");
    before.assert_same(&bench.tree(), "the repository is unchanged");
}

#[test]
fn a_second_engine_is_refused_with_the_first_ones_pid() {
    let bench = Bench::new();
    bench.plan(&PLAN.replace("claude-code\"", "command\"\ncommand = [\"cp\", \"{goal_file}\", \"made.txt\"]"));
    let home = Home::new(bench.env.outlast_home());
    let lock = home.lock(bench.repo.dir()).unwrap();
    let before = bench.files();
    let pid = std::process::id().to_string();
    let error = bench.run(&["run", "--yes", "--json"]).fails(12, "host/engine-running");
    assert!(error["error"]["what"].as_str().unwrap().contains(&format!("process {pid}")), "{error:#}");
    bench.run(&["run", "--yes"]).ends(12).says(&pid).says("outlast status");
    let shown = bench.run(&["doctor", "--offline", "--json"]);
    assert!(shown.stdout.contains(&format!("process {pid} is at work")), "{shown:#?}");
    before.assert_same(&bench.files(), "nothing is changed");
    drop(lock);
    bench.run(&["run", "--yes"]).ends(0);
}

#[test]
fn progress_is_for_agents_and_says_so_elsewhere() {
    let bench = Bench::new();
    bench.run(&["progress", "done", "imports"]).ends(2).says("this is no attempt of a task").says("outlast status");
    bench.run(&["progress"]).ends(2).says("OUTLAST_PROGRESS_FILE is not set");
}

#[test]
fn a_limit_of_how_large_files_may_be_ends_nothing_in_silence() {
    let bench = Bench::new();
    bench.plan(&PLAN.replace("claude-code\"", "command\"\ncommand = [\"cp\", \"{goal_file}\", \"made.txt\"]"));
    // Of 512 bytes each. Files of half a MiB are too small for the journal, and no waiting makes them larger.
    for blocks in [0, 8, 16, 1000] {
        let told = limited(&bench, blocks).ends(12).says("do: ");
        assert!(told.stderr.contains("ulimit -f unlimited"), "{told:#?}");
        // There is no run to go on with, and the disk has room.
        assert!(!told.stderr.contains("resume") && !told.stderr.contains("free some space"), "{told:#?}");
    }
    bench.run(&["run", "--yes"]).ends(0);
}

/// A run in a shell whose files may have so many blocks.
fn limited(bench: &Bench, blocks: u32) -> Ran {
    let mut limited = bench.env.command("sh");
    let script = format!("ulimit -f {blocks} && exec \"$0\" run --yes");
    limited.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_outlast"));
    Ran::of(limited.current_dir(bench.repo.dir()))
}

#[test]
fn work_that_makes_larger_files_than_there_may_be_is_not_waited_for_and_goes_on_without_the_limit() {
    let bench = Bench::new();
    let write =
        "n=0; while [ $n -lt 200 ]; do n=$((n+1)); command -p head -c 10000 /dev/urandom > made.$n || exit 1; done";
    let plan = PLAN.replace("claude-code\"", &format!("command\"\ncommand = [\"sh\", \"-c\", \"{write}\"]"));
    bench.plan(&plan);
    // No file of its own is as large; what is kept of all of them is.
    let told = limited(&bench, 2100).ends(12).says("ulimit -f unlimited").says("outlast resume");
    assert!(told.stderr.contains("nothing is lost") || told.stderr.contains("Nothing is lost"), "{told:#?}");
    assert!(!told.stderr.to_lowercase().contains("free some space"), "{told:#?}");
    bench.run(&["resume"]).ends(0);
    let status = bench.run(&["status", "--json"]).json("status");
    assert_eq!(status["tasks"][0]["attempts"], 1, "no try is used: {status:#}");
}

/// A bench with a run that is over, and the folder with its state.
fn with_a_run() -> (Bench, PathBuf) {
    let bench = Bench::new();
    bench.plan(&PLAN.replace("claude-code\"", "command\"\ncommand = [\"cp\", \"{goal_file}\", \"made.txt\"]"));
    bench.run(&["run", "--yes"]).ends(0);
    let folder = Home::new(bench.env.outlast_home()).repositories().unwrap().remove(0);
    (bench, folder)
}

#[test]
fn a_journal_that_is_gone_while_the_rest_is_there_is_told_as_damage() {
    let (bench, folder) = with_a_run();
    let (journal, aside) = (folder.join("journal.db"), folder.join("aside"));
    fs::rename(&journal, &aside).unwrap();
    for arguments in
        [&["status"][..], &[], &["run", "--yes"], &["run", "--yes", "--again"], &["resume"], &["land", "t"]]
    {
        let told = bench.run(arguments).ends(10).says("error[journal/damaged]").says("journal.db is gone").says("do: ");
        assert!(told.stderr.contains("workspaces"), "{told:#?}");
        assert!(!journal.exists(), "{arguments:?} makes a new one");
    }
    bench.run(&["status", "--json"]).fails(10, "journal/damaged");
    let doctor = bench.run(&["doctor", "--offline"]);
    assert!(doctor.stdout.contains("journal.db is gone"), "{doctor:#?}");
    fs::rename(&aside, &journal).unwrap();
    bench.run(&["status"]).ends(0);
}

#[test]
fn what_the_host_refuses_is_no_defect_and_is_told_with_what_helps() {
    let (bench, folder) = with_a_run();
    // A folder where a file of ours belongs.
    let lock = folder.join("journal.db.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    bench.run(&["run", "--yes", "--again"]).ends(12).says("error[host/cannot]").says("move the folder away");
    fs::remove_dir(&lock).unwrap();
    let spooled = folder.join("spool/00000001.spool");
    fs::create_dir(&spooled).unwrap();
    bench.run(&["run", "--yes", "--again"]).ends(12).says("error[host/cannot]").says("move the folder away");
    fs::remove_dir(&spooled).unwrap();
    for files in [6, 12, 16, 24] {
        let mut limited = bench.env.command("sh");
        let script = format!("ulimit -n {files} && exec \"$0\" run --yes --again");
        limited.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_outlast"));
        let told = Ran::of(limited.current_dir(bench.repo.dir()));
        assert!(matches!(told.code, 4 | 12) && told.stderr.contains("ulimit -n 1024"), "{files}: {told:#?}");
    }
}

#[test]
fn h15_files_of_the_store_that_hold_no_byte_are_told_and_nothing_is_lost() {
    let (bench, folder) = with_a_run();
    let store = folder.join("store.git");
    let told = |file: &Path| {
        let doctor = bench.run(&["doctor", "--offline"]).ends(12);
        assert!(doctor.stdout.contains(&format!("holds no byte: {}", file.display())), "{doctor:#?}");
    };
    let head = store.join("HEAD");
    fs::write(&head, "").unwrap();
    told(&head);
    let runs = fs::read_dir(store.join("refs/outlast")).unwrap();
    let result = runs.map(|run| run.unwrap().path().join("t/result")).find(|result| result.is_file()).unwrap();
    let id = fs::read_to_string(result).unwrap();
    let object = store.join("objects").join(&id[..2]).join(id[2..].trim());
    let aside = folder.join("aside");
    fs::rename(&object, &aside).unwrap();
    fs::write(&object, "").unwrap();
    // In another name it is another commit, so that it cannot be made anew. It is not tried for ever, and says what helps.
    bench.repo.git(&["config", "user.name", "Somebody Else"]).unwrap();
    bench.run(&["land", "t"]).ends(12);
    assert!(!fs::read(&head).unwrap().is_empty(), "it is made anew");
    told(&object);
    bench.run(&["status"]).shows("holds no byte").shows(&object.display().to_string()).shows("from a backup");
    fs::rename(&aside, &object).unwrap();
    bench.run(&["land", "t"]).ends(0);
    let doctor = bench.run(&["doctor", "--offline"]);
    assert!(!doctor.stdout.contains("no byte"), "{doctor:#?}");
}
