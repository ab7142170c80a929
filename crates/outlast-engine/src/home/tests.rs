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
