//! Keeps the page about agents equal to what the adapters say. `OUTLAST_UPDATE_DOCS=1` writes it.

use std::fs;
use std::path::Path;

#[test]
fn the_page_about_agents_says_what_the_adapters_say() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md");
    let wanted = outlast_agent::docs::capability_table();
    if std::env::var_os("OUTLAST_UPDATE_DOCS").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let page = fs::read_to_string(&file).unwrap();
    assert!(page == wanted, "docs/agents.md is not what the adapters say; run this test with OUTLAST_UPDATE_DOCS=1");
}
