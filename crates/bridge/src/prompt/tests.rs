//! Behaviour of the two prompts: their sections, their wording, what of a conversation they tell.

mod record;

use serde_json::json;

use super::*;

const NAMES: [&str; 2] = ["pi__sem", "pi__todo"];
const MANIFEST: &str = "Callable tool surfaces of this run\n- bridge: pi__sem, pi__todo";

fn input<'a>(messages: &'a [Message]) -> PromptInput<'a> {
    PromptInput {
        profile: &Profile::PI,
        exposed: &NAMES,
        manifest: Some(MANIFEST),
        plan_mode: false,
        system: "Be kind to the build.",
        messages,
        sent: 0,
        budget_tokens: None,
    }
}

fn message(value: serde_json::Value) -> Message {
    serde_json::from_value(value).unwrap()
}

/// The places of texts, which must all occur, and once.
fn places(prompt: &str, texts: &[&str]) -> Vec<usize> {
    texts
        .iter()
        .map(|text| {
            assert_eq!(prompt.matches(text).count(), 1, "{text:?} in\n{prompt}");
            prompt.find(text).unwrap()
        })
        .collect()
}

#[test]
fn statement_36_first_prompt_has_all_sections_in_order_and_the_second_only_the_tail() {
    let messages = [Message::user("first wish"), Message::assistant("done"), Message::user("second wish")];
    let first = bootstrap(&input(&messages[..1])).text;
    let found = places(
        &first,
        &[
            "Tools in this run",
            MANIFEST,
            "Be kind to the build.",
            transcript::HEADING,
            "User:\nfirst wish",
            "answer the latest request",
            "Reminders\n",
        ],
    );
    assert!(found.is_sorted(), "{first}");
    assert!(first.ends_with(&tail::guard(&input(&messages), tail::Occasion::Bootstrap)));
    for (one, other) in
        [(MANIFEST, "Be kind"), ("Be kind to the build.", "Conversation"), ("first wish", "Now")]
    {
        assert!(first.contains(&format!("{one}\n\n{other}")), "an empty line between sections:\n{first}");
    }
    assert!(!first.contains("\n\n\n"), "{first}");

    let second = incremental(&PromptInput { sent: 1, ..input(&messages) }).text;
    for absent in
        ["Tools in this run", MANIFEST, "Be kind", "Conversation so far", "first wish", "User:", "done"]
    {
        assert!(!second.contains(absent), "{absent} in\n{second}");
    }
    assert!(places(&second, &["Continue.", "second wish", "Reminders\n"]).is_sorted());
    assert!(second.ends_with(&tail::guard(&input(&messages), tail::Occasion::Incremental)));
}

#[test]
fn statement_37_no_manifest_no_pointer_and_no_bridge_tools_no_bridge_wording() {
    let messages = [Message::user("hello")];
    let pointer = "listed below";
    let with = bootstrap(&input(&messages)).text;
    assert!(with.contains(pointer) && with.contains(MANIFEST));
    let without = bootstrap(&PromptInput { manifest: None, ..input(&messages) }).text;
    assert!(!without.contains(pointer) && !without.contains("Callable tool surfaces"), "{without}");
    assert!(without.contains("pi__"), "the names are still explained:\n{without}");
    let empty = bootstrap(&PromptInput { manifest: Some(" \n"), ..input(&messages) }).text;
    assert!(!empty.contains(pointer), "a manifest without text is none:\n{empty}");

    for profile in Profile::ALL {
        for plan_mode in [false, true] {
            let bare = PromptInput {
                profile: &profile,
                exposed: &[],
                manifest: Some("- the agent's own tools"),
                plan_mode,
                ..input(&messages)
            };
            for prompt in [bootstrap(&bare).text, incremental(&bare).text] {
                for word in ["bridge", profile.prefix, profile.server_key, profile.skill_tool] {
                    assert!(!prompt.to_lowercase().contains(word), "{word} in\n{prompt}");
                }
            }
        }
    }
}

#[test]
fn every_prompt_ends_with_the_guard_and_prefers_bridge_tools_only_if_there_are_some() {
    let messages = [Message::user("hello")];
    for profile in Profile::ALL {
        let names = [format!("{}mcp", profile.prefix)];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for exposed in [&names[..], &[]] {
            let input = PromptInput { profile: &profile, exposed, ..input(&messages) };
            for prompt in [bootstrap(&input).text, incremental(&input).text] {
                let guard = prompt.rsplit("\n\n").next().unwrap();
                assert!(guard.starts_with("Reminders\n"), "{prompt}");
                assert!(guard.contains("`cd`") && guard.contains("exact output"), "{guard}");
                assert!(guard.contains("Never write a tool call"), "{guard}");
                for tool in ["mcp", "subagent"] {
                    let preferred = guard.contains(&format!("`{}{tool}`", profile.prefix));
                    assert_eq!(preferred, !exposed.is_empty(), "{guard}");
                }
            }
        }
    }
}

#[test]
fn plan_mode_is_told_at_the_front_of_the_first_prompt_and_at_the_end_of_the_next() {
    let messages = [Message::user("hello")];
    let planning = PromptInput { plan_mode: true, ..input(&messages) };
    let first = bootstrap(&planning).text;
    assert!(places(&first, &["Plan mode", MANIFEST]).is_sorted());
    let next = incremental(&planning).text;
    assert!(places(&next, &["hello", "Plan mode"]).is_sorted());
    for prompt in [&first, &next] {
        assert!(prompt.contains("`pi__*` tools"), "{prompt}");
    }
    assert!(!bootstrap(&input(&messages)).text.contains("Plan mode"));
    assert!(!incremental(&input(&messages)).text.contains("Plan mode"));
}

#[test]
fn statement_39_over_budget_the_latest_message_and_the_guards_stay_and_the_notice_counts_the_rest() {
    let mut messages: Vec<Message> = (0..50)
        .flat_map(|turn| {
            [
                Message::user(&format!("wish {turn} {}", "文".repeat(200))),
                Message::assistant(&format!("answer {turn} {}", "x".repeat(200))),
            ]
        })
        .collect();
    messages.push(Message::user("the latest wish"));
    let budget_tokens = Some(1_500);
    let prompt = bootstrap(&PromptInput { budget_tokens, ..input(&messages) });
    assert!(estimate(&prompt.text, 0) <= 1_500, "{}", estimate(&prompt.text, 0));
    assert!(prompt.omitted > 50 && prompt.omitted < 101, "{}", prompt.omitted);
    let notice = format!("[{} earlier messages are left out here: they did not fit.]", prompt.omitted);
    places(&prompt.text, &[&notice, "the latest wish", "Tools in this run", MANIFEST, "Reminders\n"]);
    assert!(prompt.text.contains("answer 49 "), "the newest come first");
    assert!(!prompt.text.contains("wish 0 "));

    let tiny = bootstrap(&PromptInput { budget_tokens: Some(1), ..input(&messages) });
    places(&tiny.text, &["the latest wish", "Tools in this run", MANIFEST, "Be kind", "Reminders\n"]);
    assert_eq!(tiny.omitted, 100);
    let one = bootstrap(&PromptInput { budget_tokens: Some(1), ..input(&messages[99..]) });
    assert!(one.text.contains("[1 earlier message is left out here"), "{}", one.text);
    let enough = bootstrap(&PromptInput { budget_tokens: Some(100_000), ..input(&messages) });
    assert_eq!((enough.omitted, enough.text.contains("left out")), (0, false));
}

#[test]
fn images_of_the_latest_user_message_go_along_and_are_paid_first() {
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    let messages = [
        message(json!({"role": "user", "content": [{"type": "text", "text": "old"}, image("OLD0")]})),
        Message::assistant(&"seen ".repeat(100)),
        message(
            json!({"role": "user", "content": [{"type": "text", "text": "compare"}, image("NEW1"), image("NEW2")]}),
        ),
    ];
    let prompt = bootstrap(&input(&messages));
    let data: Vec<&str> = prompt.images.iter().map(|image| image.data.as_str()).collect();
    assert_eq!(data, ["NEW1", "NEW2"]);
    assert!(prompt.images.iter().all(|image| image.mime_type == "image/png"));
    assert!(prompt.text.contains("old\n[image, not sent: image/png]"), "{}", prompt.text);
    assert!(prompt.text.contains("compare\n[image, attached: image/png]\n[image, attached: image/png]"));
    assert!(!prompt.text.contains("OLD0") && !prompt.text.contains("NEW1"));
    let next = incremental(&PromptInput { sent: 2, ..input(&messages) });
    assert_eq!(next.images, prompt.images);

    let text_alone = estimate(&prompt.text, 0);
    let budget = |tokens| bootstrap(&PromptInput { budget_tokens: Some(tokens), ..input(&messages) }).omitted;
    assert_eq!(budget(text_alone + 2 * 1200), 0);
    assert_eq!(budget(text_alone + 2 * 1200 - 2), 2, "all would fit, had the images cost nothing");
}

#[test]
fn messages_that_the_agent_never_got_are_not_lost() {
    let steering = [
        Message::user("first"),
        Message::assistant("working"),
        Message::user("also this"),
        Message::user("and that"),
    ];
    let prompt = incremental(&PromptInput { sent: 1, ..input(&steering) }).text;
    assert!(places(&prompt, &["also this", "and that"]).is_sorted());
    let prompt = incremental(&PromptInput { sent: 3, ..input(&steering) }).text;
    assert!(prompt.contains("and that") && !prompt.contains("also this"));
    let prompt = incremental(&PromptInput { sent: 4, ..input(&steering) }).text;
    assert!(prompt.contains("and that"), "a second try sends the latest message again");
    assert!(incremental(&input(&[])).text.ends_with(&tail::guard(&input(&[]), tail::Occasion::Incremental)));
}

#[test]
fn a_conversation_without_anything_to_tell_has_no_section() {
    let thinking = message(json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}));
    let prompt = bootstrap(&PromptInput { system: "", ..input(&[thinking]) });
    assert!(!prompt.text.contains("Conversation so far") && !prompt.text.contains("hm"), "{}", prompt.text);
    assert!(!prompt.text.contains("\n\n\n"));
}
