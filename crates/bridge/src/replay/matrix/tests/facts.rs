//! Results that are a text with facts about it.

use super::*;

#[test]
fn a_result_that_is_a_text_with_facts_beside_it_is_shown_as_that_text() {
    let told = |text: &str, details: Value| json!({"text": text, "isError": false, "details": details});
    for (kind, args, text, details) in [
        ("grep", json!({"pattern": "x"}), "a.txt:1:x", json!({"files": 1, "finds": 1})),
        ("glob", json!({"pattern": "*.txt"}), "a.txt\nb.txt", json!({"files": 2})),
        ("ls", json!({}), "a.txt (3)", json!({"entries": 1})),
        ("shell", json!({"command": "ls"}), "a.txt", json!({"exitCode": 0})),
    ] {
        let card = card(kind, args, told(text, details));
        assert_eq!((card.text().as_str(), card.is_error), (text, false), "{kind}");
    }
    let failed = card(
        "shell",
        json!({"command": "false"}),
        told("hi\n[exit code 3, after 0.0 s]", json!({"exitCode": 3})),
    );
    assert_eq!((failed.text().as_str(), failed.is_error), ("hi\n[exit code 3, after 0.0 s]", true));
    let blocks = json!({"content": [{"type": "text", "text": "a.txt"}, {"type": "text", "text": "b.txt"}]});
    assert_eq!(card("glob", json!({"pattern": "*"}), blocks).text(), "a.txt\nb.txt");
}
