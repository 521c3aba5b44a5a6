use super::*;

fn judged(kind: ListKind, raw: &str) -> Result<(String, Vec<String>), String> {
    judge(kind, &Bytes::from(raw.to_owned()))
        .map(|judged| (String::from_utf8(judged.members.json()).unwrap(), judged.repairs))
}

#[test]
fn tools_that_break_whole_lists_are_kept_out_with_a_reason() {
    for (tool, reason) in [
        (r#"{"name":"a"}"#, "has no inputSchema"),
        (r#"{"name":"a","inputSchema":null}"#, "has an inputSchema that is null, not an object"),
        (r#"{"name":"a","inputSchema":"object"}"#, "has an inputSchema that is a string, not an object"),
        (r#"{"name":"a","inputSchema":true}"#, "has an inputSchema that is a boolean, not an object"),
        (r#"{"name":"a","inputSchema":[]}"#, "has an inputSchema that is an array, not an object"),
        (
            r#"{"name":"a","inputSchema":{"type":"string"}}"#,
            "has an inputSchema of type \"string\", not \"object\"",
        ),
        (
            r#"{"name":"a","inputSchema":{"type":["null"]}}"#,
            "has an inputSchema of type [\"null\"], not \"object\"",
        ),
        (
            r#"{"name":"a","inputSchema":{"properties":[]}}"#,
            "has properties in its inputSchema that are an array",
        ),
        (
            r#"{"name":"a","inputSchema":{"properties":{"x":"string"}}}"#,
            "has a property \"x\" in its inputSchema that is a string",
        ),
        (
            r#"{"name":"a","inputSchema":{"required":true}}"#,
            "has an inputSchema whose required is no array of names",
        ),
        (
            r#"{"name":"a","inputSchema":{"required":[1]}}"#,
            "has an inputSchema whose required is no array of names",
        ),
        (
            r#"{"name":"a","inputSchema":{"type":"object","type":"array"}}"#,
            "has type twice in its inputSchema",
        ),
        (r#"{"name":"a","inputSchema":{},"inputSchema":{}}"#, "has inputSchema twice"),
        (r#"{"name":"a","n\u0061me":"b","inputSchema":{}}"#, "has name twice"),
        (r#"{"inputSchema":{}}"#, "has no name"),
        (r#"{"name":"","inputSchema":{}}"#, "has an empty name"),
        (r#"{"name":7,"inputSchema":{}}"#, "has a name that is a number, not a string"),
        (
            r#"{"name":"a","description":{},"inputSchema":{}}"#,
            "has a description that is an object, not a string",
        ),
        (r#"["a"]"#, "is no object"),
        ("null", "is no object"),
    ] {
        assert_eq!(judged(ListKind::Tools, tool), Err(reason.to_owned()), "{tool}");
    }
}

#[test]
fn what_strict_parsers_refuse_is_kept_out() {
    let deep = format!(
        r#"{{"name":"a","inputSchema":{}{}}}"#,
        "{\"x\":".repeat(200),
        "1".to_owned() + &"}".repeat(200)
    );
    for tool in [
        r#"{"name":"a","inputSchema":{"default":NaN}}"#,
        "{\"name\":\"a\",\"description\":\"raw\nline\",\"inputSchema\":{}}",
        r#"{"name":"a\ud800","inputSchema":{}}"#,
        r#"{"name":"a","inputSchema":{"maximum":1e999}}"#,
        &deep,
    ] {
        let reason = judged(ListKind::Tools, tool).unwrap_err();
        assert!(reason.starts_with("is no strict JSON: "), "{reason}");
    }
    assert!(judge(ListKind::Tools, &Bytes::from_static(b"{\"name\":\"a\xFF\",\"inputSchema\":{}}")).is_err());
}

#[test]
fn what_can_only_mean_one_thing_is_repaired() {
    for (tool, repaired, note) in [
        (
            r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","properties":{}}}"#,
            "inputSchema had no properties",
        ),
        (
            r#"{"name":"a","inputSchema":{"properties":{"x":{"n":1.0}}}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","properties":{"x":{"n":1.0}}}}"#,
            "inputSchema had no type",
        ),
        (
            r#"{"name":"a","inputSchema":{"type":["object","null"],"properties":{}}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","properties":{}}}"#,
            "inputSchema had several types",
        ),
        (
            r#"{"name":"a","inputSchema":{"type":"object","properties":{"x":true,"y":false}}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","properties":{"x":{},"y":{"not":{}}}}}"#,
            "inputSchema had properties that were true or false",
        ),
        (
            r#"{"name":"a","inputSchema":{"type":"object","properties":{},"required":null}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","properties":{}}}"#,
            "required of inputSchema was null",
        ),
        (
            r#"{"name":"a","description":null,"inputSchema":{"type":"object","properties":{}},"x":null}"#,
            r#"{"name":"a","inputSchema":{"type":"object","properties":{}},"x":null}"#,
            "description is null and is left out",
        ),
        (
            r#"{"name":"a","title":7,"inputSchema":{"type":"object","properties":{}}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","properties":{}}}"#,
            "title has a form that clients refuse and is left out",
        ),
        (
            r#"{"name":"a","annotations":{"readOnlyHint":null,"x":1},"inputSchema":{"type":"object","properties":{}}}"#,
            r#"{"name":"a","annotations":{"x":1},"inputSchema":{"type":"object","properties":{}}}"#,
            "annotations of a form that clients refuse are left out",
        ),
        (
            r#"{"name":"a","inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"array"},"_meta":{"k":1}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","properties":{}},"_meta":{"k":1,"toolway/outputSchema":{"type":"array"}}}"#,
            "outputSchema has a form that clients refuse and moved to _meta",
        ),
    ] {
        assert_eq!(judged(ListKind::Tools, tool), Ok((repaired.to_owned(), vec![note.to_owned()])), "{tool}");
    }
}

#[test]
fn what_is_good_is_left_alone() {
    for (kind, good) in [
        (
            ListKind::Tools,
            r#"{"name":"a b","x":1e2,"inputSchema":{"type":"object","properties":{},"anyOf":[{"$ref":"http://x"}]}}"#,
        ),
        (
            ListKind::Tools,
            r#"{"name":"a","inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"object"},"execution":{"taskSupport":"optional"},"icons":[{"src":"x","sizes":["any"]}]}"#,
        ),
        (ListKind::Prompts, r#"{"name":"p","arguments":[{"name":"x","required":true}]}"#),
        (
            ListKind::Resources,
            r#"{"uri":"test://a/b 数","name":"","size":7,"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12T15:00:58.12+02:00"}}"#,
        ),
        (ListKind::Templates, r#"{"uriTemplate":"{x}","name":"t"}"#),
    ] {
        assert_eq!(judged(kind, good), Ok((good.to_owned(), Vec::new())));
    }
}

#[test]
fn prompts_and_resources_have_their_own_faults() {
    for (kind, bad, reason) in [
        (ListKind::Prompts, r#"{"arguments":[]}"#, "has no name"),
        (
            ListKind::Prompts,
            r#"{"name":"p","arguments":{}}"#,
            "has arguments that are an object, not an array",
        ),
        (ListKind::Prompts, r#"{"name":"p","arguments":[{"name":1}]}"#, "has an argument without a name"),
        (ListKind::Prompts, r#"{"name":"p","arguments":["x"]}"#, "has an argument without a name"),
        (ListKind::Resources, r#"{"name":"r"}"#, "has no uri"),
        (ListKind::Resources, r#"{"uri":"r.txt","name":"r"}"#, "has the uri \"r.txt\", which has no scheme"),
        (ListKind::Resources, r#"{"uri":"1a:b","name":"r"}"#, "has the uri \"1a:b\", which has no scheme"),
        (
            ListKind::Resources,
            r#"{"uri":"https://","name":"r"}"#,
            "has the uri \"https://\", which clients refuse: empty host",
        ),
        (
            ListKind::Templates,
            r#"{"uriTemplate":1,"name":"r"}"#,
            "has a uriTemplate that is a number, not a string",
        ),
    ] {
        assert_eq!(judged(kind, bad), Err(reason.to_owned()), "{bad}");
    }
    for (kind, odd, repaired) in [
        (
            ListKind::Prompts,
            r#"{"name":"p","arguments":[{"name":"x","description":null,"required":"yes"}]}"#,
            r#"{"name":"p","arguments":[{"name":"x"}]}"#,
        ),
        (ListKind::Resources, r#"{"uri":"a:b","mimeType":null}"#, r#"{"uri":"a:b","name":"a:b"}"#),
        (
            ListKind::Resources,
            r#"{"uri":"a:b","name":"n","annotations":{"lastModified":"yesterday"}}"#,
            r#"{"uri":"a:b","name":"n","annotations":{}}"#,
        ),
    ] {
        assert_eq!(judged(kind, odd).map(|(json, _)| json), Ok(repaired.to_owned()), "{odd}");
    }
}

#[test]
fn dates_are_those_of_the_calendar() {
    for (text, fits) in [
        ("2025-01-12T15:00:58Z", true),
        ("2024-02-29T23:59:59.123456789Z", true),
        ("2025-02-29T00:00:00Z", false),
        ("1900-02-29T00:00:00Z", false),
        ("2025-01-12T15:00:58-23:59", true),
        ("2025-01-12T15:00:58+24:00", false),
        ("2025-01-12T15:00:58", false),
        ("2025-01-12T24:00:00Z", false),
        ("2025-01-12T15:00Z", false),
        ("2025-13-01T15:00:00Z", false),
        ("25-01-12T15:00:00Z", false),
        ("2025-01-12 15:00:00Z", false),
        ("2025-01-1éT15:00:00Z", false),
    ] {
        assert_eq!(is_timestamp(text), fits, "{text}");
    }
}

#[test]
fn what_is_large_costs_no_more_than_its_size() {
    let many: Vec<String> = (0..40_000).map(|n| format!("\"p{n}\":true")).collect();
    let tool =
        format!(r#"{{"name":"a","inputSchema":{{"type":"object","properties":{{{}}}}}}}"#, many.join(","));
    let (json, _) = judged(ListKind::Tools, &tool).unwrap();
    assert!(json.contains("\"p39999\":{}}"));
    let huge = format!(r#"{{"name":"a","description":"{}","inputSchema":{{}}}}"#, "x".repeat(MAX_DEFINITION));
    assert_eq!(judged(ListKind::Tools, &huge), Err("is larger than 1024 KiB".to_owned()));
}

#[test]
fn the_nameless_are_called_by_their_place() {
    assert_eq!(name_of(ListKind::Tools, &Bytes::from_static(b"{}"), 2), "#3");
    assert_eq!(name_of(ListKind::Tools, &Bytes::from_static(b"{\"name\":\"\"}"), 0), "#1");
    assert_eq!(name_of(ListKind::Resources, &Bytes::from_static(b"{\"uri\":\"x\"}"), 0), "x");
}
