//! Folders that an agent shut are ours again; what it put in a folder's place is not touched.

use std::os::unix::fs::symlink;

use super::*;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_folder_that_an_agent_shut_is_opened_again_and_a_link_is_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let (shut, outside, link) = (place.path().join("shut"), place.path().join("outside"), place.path().join("link"));
    for folder in [&shut, &outside] {
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, Permissions::from_mode(0o055)).unwrap();
    }
    symlink(&outside, &link).unwrap();

    private_dir(&shut).unwrap();
    reopen(&link).unwrap();
    reopen(&place.path().join("gone")).unwrap();

    assert_eq!(mode(&shut), 0o755);
    assert_eq!(mode(&outside), 0o055);
}

#[test]
fn a_pipe_or_a_link_in_the_place_of_a_file_holds_nobody_up_and_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("progress.json");
    let temp = path.with_extension("tmp");
    let pipe = |path: &Path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    pipe(&path);
    pipe(&temp);
    assert!(read_if_there(&path).unwrap_err().to_string().contains("it is no file"));
    write_file(&path, b"one").unwrap();
    assert_eq!(read_if_there(&path).unwrap().as_deref(), Some(&b"one"[..]));

    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, "theirs").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &temp).unwrap();
    write_file(&path, b"two").unwrap();
    assert_eq!(fs::read(&elsewhere).unwrap(), b"theirs");
    assert_eq!(fs::read(&path).unwrap(), b"two");
}

#[test]
fn whoever_only_looks_keeps_nobody_from_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new(dir.path());
    fs::write(dir.path().join("engine.lock"), "").unwrap();
    let looks = Flock::lock(File::open(dir.path().join("engine.lock")).unwrap(), FlockArg::LockSharedNonblock).unwrap();
    std::thread::scope(|scope| {
        let taken = scope.spawn(|| home.lock(dir.path()).map(drop));
        std::thread::sleep(Duration::from_millis(50));
        drop(looks);
        taken.join().unwrap().unwrap();
    });
}
