//! Properties of what fits.

use proptest::prelude::*;

use super::super::tail::{self, Occasion};
use super::super::{Message, PromptInput, bootstrap};
use super::*;
use crate::profile::Profile;

#[test]
fn a_token_begun_counts_whole_and_characters_count_in_any_script() {
    assert_eq!(estimate("", 0), 0);
    assert_eq!(estimate("abcd", 0), 1);
    assert_eq!(estimate("abcde", 0), 2);
    assert_eq!(estimate("日本語で", 0), 1);
    assert_eq!(estimate("🦀🦀🦀🦀🦀", 0), 2);
    assert_eq!(estimate("abcd", 2), 2_401);
}

#[test]
fn the_first_that_does_not_fit_ends_it_even_if_older_ones_would_fit() {
    let demand = Demand {
        entries: &[1, 1, 50, 3, 0, 4],
        kept: Some(3),
        fixed: 4,
        notice: 2,
        images: 0,
        budget_tokens: Some(4),
    };
    // 16 characters less 4, 3 and 2 leave 7: the last takes 4, and 50 does not fit.
    let shown = vec![false, false, false, true, true, true];
    assert_eq!(demand.fit(), Fit { shown, omitted: 3 });
    assert_eq!(Demand { budget_tokens: None, ..demand }.fit().omitted, 0);
    assert_eq!(Demand { budget_tokens: Some(15), ..demand }.fit().omitted, 3, "60 characters, 63 are wanted");
    assert_eq!(Demand { budget_tokens: Some(16), ..demand }.fit().omitted, 0, "64 characters");
}

/// Questions, answers, calls, results, images: also what came after the latest question.
fn mixed() -> Vec<Message> {
    let message = |json: &str| serde_json::from_str::<Message>(json).unwrap();
    let long = "result ".repeat(60);
    vec![
        Message::user("a first question about things"),
        message(
            r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"toolCall","id":"1","name":"t","arguments":{}}]}"#,
        ),
        message(&format!(
            r#"{{"role":"toolResult","toolCallId":"1","toolName":"t","content":[{{"type":"text","text":"{long}"}},{{"type":"image","data":"AA"}}]}}"#
        )),
        Message::assistant("more of it"),
        message(
            r#"{"role":"user","content":[{"type":"text","text":"the latest question"},{"type":"image","data":"AA"},{"type":"image","data":"BB"}]}"#,
        ),
        message(r#"{"role":"assistant","content":[{"type":"toolCall","id":"2","name":"t","arguments":{}}]}"#),
        message(r#"{"role":"toolResult","toolCallId":"2","toolName":"t","content":"late result"}"#),
    ]
}

#[test]
fn every_budget_is_kept_or_nothing_is_left_to_leave_out() {
    let all = mixed();
    for messages in (1..=all.len()).map(|count| &all[..count]) {
        let input = PromptInput {
            profile: &Profile::PI,
            exposed: &["pi__a"],
            manifest: Some("manifest"),
            plan_mode: true,
            system: "system",
            messages,
            sent: 0,
            budget_tokens: None,
        };
        let whole = bootstrap(&input);
        let full = estimate(&whole.text, whole.images.len());
        let mut omitted = usize::MAX;
        for budget in 0..full + 3 {
            let prompt = bootstrap(&PromptInput { budget_tokens: Some(budget), ..input });
            assert!(prompt.omitted <= omitted, "a larger budget leaves out more: {budget}");
            omitted = prompt.omitted;
            assert_eq!(prompt.images, whole.images);
            if budget >= full {
                assert_eq!(prompt, whole);
                continue;
            }
            let fits = estimate(&prompt.text, prompt.images.len()) <= budget;
            assert!(fits || omitted + 1 >= messages.len(), "{budget} of {full}: {omitted} left out");
            let notice = format!("{omitted} earlier message");
            assert_eq!(prompt.text.contains(&notice), omitted > 0, "{}", prompt.text);
            assert_eq!(prompt.text.contains("the latest question"), messages.len() > 4);
        }
    }
}

#[test]
fn one_message_that_is_larger_than_any_budget_is_sent_whole() {
    let huge = "x".repeat(1_000_000);
    let messages = [Message::user(&huge)];
    for budget in [0, 1, 300_000, usize::MAX] {
        let prompt = bootstrap(&PromptInput {
            profile: &Profile::HOST,
            exposed: &[],
            manifest: None,
            plan_mode: false,
            system: "",
            messages: &messages,
            sent: 0,
            budget_tokens: Some(budget),
        });
        assert!(prompt.text.contains(&huge) && prompt.omitted == 0 && !prompt.text.contains("left out"));
    }
}

fn conversation() -> impl Strategy<Value = Vec<Message>> {
    let text = prop_oneof!["[a-z \n]{0,80}", "\\PC{0,40}", "[文字🦀é]{0,60}"];
    let message = (any::<bool>(), text)
        .prop_map(|(is_user, text)| if is_user { Message::user(&text) } else { Message::assistant(&text) });
    prop::collection::vec(message, 0..30)
}

proptest! {
    #[test]
    fn a_prompt_is_within_its_budget_or_has_nothing_to_spare(
        messages in conversation(),
        budget in 0_usize..1_200,
        system in "\\PC{0,60}",
    ) {
        let input = PromptInput {
            profile: &Profile::HOST, exposed: &["host__a"], manifest: Some("manifest"), plan_mode: false,
            system: &system, messages: &messages, sent: 0, budget_tokens: Some(budget),
        };
        let prompt = bootstrap(&input);
        let whole = bootstrap(&PromptInput { budget_tokens: None, ..input });
        prop_assert!(prompt.text.ends_with(&tail::guard(&input, Occasion::Bootstrap)));
        prop_assert!(prompt.text.starts_with("Tools in this run") && prompt.text.contains(system.trim()));
        if prompt.omitted == 0 {
            prop_assert_eq!(&prompt.text, &whole.text);
        } else {
            prop_assert!(estimate(&whole.text, 0) > budget);
            let notice = format!("[{} earlier message", prompt.omitted);
            prop_assert!(prompt.text.contains(&notice));
        }
        let latest = messages.iter().rfind(|message| message.is_user());
        let least: Vec<Message> = latest.cloned().into_iter().collect();
        if let Some(latest) = latest {
            let text = super::super::transcript::latest_text(latest);
            prop_assert!(prompt.text.contains(&text));
        }
        let least = bootstrap(&PromptInput { messages: &least, budget_tokens: None, ..input });
        // The heading, the notice and what separates them.
        let scaffold = 60;
        prop_assert!(
            estimate(&prompt.text, 0) <= budget.max(estimate(&least.text, 0) + scaffold),
            "{} of {}", estimate(&prompt.text, 0), budget
        );
    }

    #[test]
    fn what_is_shown_of_the_newest_has_no_gap(
        entries in prop::collection::vec(0_usize..50, 0..40),
        kept in prop::option::of(0_usize..40),
        fixed in 0_usize..100,
        notice in 0_usize..40,
        images in 0_usize..3,
        budget in prop::option::of(0_usize..3_000),
    ) {
        let kept = kept.filter(|kept| *kept < entries.len());
        let demand = Demand { entries: &entries, kept, fixed, notice, images, budget_tokens: budget };
        let Fit { shown, omitted } = demand.fit();
        prop_assert_eq!(shown.len(), entries.len());
        prop_assert!(kept.is_none_or(|kept| shown[kept]));
        let hidden = entries.iter().zip(&shown).filter(|(entry, shown)| **entry > 0 && !**shown).count();
        prop_assert_eq!(hidden, omitted);
        let others: Vec<(usize, bool)> = entries.iter().copied().zip(shown.iter().copied()).enumerate()
            .filter(|(place, _)| Some(*place) != kept).map(|(_, pair)| pair).collect();
        let first = others.iter().position(|(_, shown)| *shown).unwrap_or(others.len());
        prop_assert!(others[first..].iter().all(|(_, shown)| *shown));
        let sum: usize = entries.iter().zip(&shown).filter(|(_, shown)| **shown).map(|(entry, _)| entry).sum();
        if let Some(budget) = budget {
            let limit = budget.saturating_sub(images * IMAGE_TOKENS) * CHARACTERS_PER_TOKEN;
            let least = fixed + kept.map_or(0, |kept| entries[kept]);
            let notice = if omitted > 0 { notice } else { 0 };
            prop_assert!(sum + fixed + notice <= limit.max(least + notice));
            if let Some((next, _)) = others[..first].iter().rev().find(|(entry, _)| *entry > 0) {
                prop_assert!(sum + next + fixed + notice > limit, "the next one would have fitted");
            }
        }
    }
}
