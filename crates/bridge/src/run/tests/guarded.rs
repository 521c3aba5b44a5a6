//! Results that are large: saved and previewed, or refused, and never in the way of others.

use toolway_guard::GuardConfig;

use super::*;

fn guard(directory: &tempfile::TempDir) -> Arc<Guard> {
    Arc::new(Guard::new(GuardConfig::new(directory.path().to_owned())))
}

fn saved(directory: &tempfile::TempDir) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut folders = vec![directory.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(std::fs::read(path).unwrap()) }
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn an_oversized_result_is_saved_and_previewed_and_a_failure_stays_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut rig = Rig::bound(Options { guard: Some(guard(&directory)), ..Options::default() });
    let body = format!("begin {} end", "0123456789 ".repeat(20_000));
    for (n, is_error) in [(1, false), (2, true)] {
        let mut call = rig.call("slow");
        let content = RawJson::of(&json!([{"type": "text", "text": body}]));
        assert_eq!(rig.run.settle(&rig.id(n), HostResult { content, is_error }), Settlement::Delivered);
        assert_eq!(rig.run.settle(&rig.id(n), HostResult::text("twice")), Settlement::Unknown);
        let Update::Result(bytes) = call.next().await else { panic!("no result") };
        assert!(bytes.len() < 20_000, "{} bytes", bytes.len());
        let result: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(result.get("isError"), is_error.then_some(&json!(true)));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("begin 0123") && text.contains(" end"), "{text}");
    }
    assert!(saved(&directory).iter().any(|file| memchr::memmem::find(file, body.as_bytes()).is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_a_tool_goes_by_its_real_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = GuardConfig::new(directory.path().to_owned());
    config.tool_rules = vec![
        (toolway_guard::Glob::new("slow").unwrap(), toolway_guard::ToolRule::Pass),
        (toolway_guard::Glob::new("fast").unwrap(), toolway_guard::ToolRule::Save),
    ];
    let mut rig = Rig::bound(Options { guard: Some(Arc::new(Guard::new(config))), ..Options::default() });
    let (mut slow, mut fast) = (rig.call("slow"), rig.call("fast"));
    let body = "x".repeat(100_000);
    rig.run.settle(&rig.id(1), HostResult::text(&body));
    rig.run.settle(&rig.id(2), HostResult::text("small"));
    assert_eq!(text(Some(slow.next().await)), body);
    assert_ne!(text(Some(fast.next().await)), "small");
}

#[tokio::test(start_paused = true)]
async fn results_at_the_limit_pass_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let mut rig = Rig::bound(Options { guard: Some(guard(&directory)), ..Options::default() });
    for (n, length) in [(1, 10), (2, 4_800), (3, 4_900), (4, 9_900)] {
        let mut call = rig.call("slow");
        let block = format!(r#"[ {{"text":"{}" ,"type":"text"}} ]"#, "a".repeat(length));
        let content = RawJson::new(block.clone()).unwrap();
        rig.run.settle(&rig.id(n), HostResult { content, is_error: false });
        let Update::Result(bytes) = call.next().await else { panic!("no result") };
        assert_eq!(bytes, format!("{{\"content\":[{}]}}", block.trim_matches(['[', ']', ' '])));
    }
    assert!(saved(&directory).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hundred_megabytes_are_bounded_with_and_without_a_guard() {
    let directory = tempfile::tempdir().unwrap();
    let content = format!("[{{\"type\":\"text\",\"text\":\"{}\"}}]", "y".repeat(100 << 20));
    let content = RawJson::new(content).unwrap();
    for guard in [Some(guard(&directory)), None] {
        let unguarded = guard.is_none();
        let mut rig = Rig::bound(Options { guard, ..Options::default() });
        let mut call = rig.call("slow");
        // Others do not wait for it.
        let mut fast = rig.call("fast");
        rig.run.settle(&rig.id(1), HostResult { content: content.clone(), is_error: false });
        rig.run.settle(&rig.id(2), HostResult::text("quick"));
        assert_eq!(text(now(&mut fast)), "quick");
        let Update::Result(bytes) = call.next().await else { panic!("no result") };
        assert!(bytes.len() < 20_000);
        let result: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(result.get("isError"), unguarded.then_some(&json!(true)), "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_can_be_saved_the_preview_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let guard = Some(Arc::new(Guard::new(GuardConfig::new(file.join("below")))));
    let mut rig = Rig::bound(Options { guard, ..Options::default() });
    let mut call = rig.call("slow");
    rig.run.settle(&rig.id(1), HostResult::text(&"zzzz ".repeat(10_000)));
    let Update::Result(bytes) = call.next().await else { panic!("no result") };
    let text = String::from_utf8_lossy(&bytes);
    assert!(bytes.len() < 20_000 && text.contains("zzzz zzzz"), "{text}");
}
