use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "where\nit is"},
            "depth": {"type": "integer"},
            "ratio": {"type": ["number", "null"]},
            "all": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "where": {"type": "object"},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "either": {"type": ["string", "number"]},
            "mode": {"$ref": "#/$defs/mode"},
            "any": {}
        },
        "$defs": {"mode": {"enum": ["1", "2"]}}
    })
}

fn built(words: &[&str]) -> Result<Value, Wrong> {
    let words: Vec<Word> = words.iter().map(|word| word_of(word)).collect();
    build(&words, &schema()).map(|built| Value::Object(built.arguments))
}

fn word_of(word: &str) -> Word {
    pair(word).unwrap_or_else(|| Word::Json { text: word.to_owned(), from: "the argument".to_owned() })
}

#[test]
fn pairs_have_the_types_of_the_schema() {
    let words = [
        "path=5",
        "depth=5",
        "ratio=0.5",
        "all=true",
        "tags=a",
        "tags=2",
        "ids=[1,2]",
        r#"where={"a":"b=c"}"#,
        "maybe=null",
        "either=7",
        "mode=1",
        "any=[1]",
        "any:=\"x\"",
    ];
    let expected = json!({
        "path": "5", "depth": 5, "ratio": 0.5, "all": true, "tags": ["a", "2"], "ids": [1, 2], "where": {"a": "b=c"},
        "maybe": null, "either": "7", "mode": "1", "any": "x"
    });
    assert_eq!(built(&words), Ok(expected));
}

#[test]
fn pairs_stand_over_json_whatever_they_hold() {
    assert_eq!(
        built(&[r#"{"path":"a","tags":["x"],"depth":1}"#, "path=b=c", "tags=y", "tags=z"]),
        Ok(json!({"path": "b=c", "tags": ["y", "z"], "depth": 1}))
    );
}

#[test]
fn missing_arguments_are_named_all_at_once() {
    let schema =
        json!({"required": ["a", "b"], "properties": {"a": {"type": "string", "description": "the\na"}}});
    let wrong = build(&[], &schema).unwrap_err();
    assert_eq!(wrong.reason, "2 required arguments are missing: a (string: the a), b");
    assert_eq!(wrong.hint.as_deref(), Some("add a=... b=..."));
}

#[test]
fn what_does_not_fit_is_said_before_the_call() {
    for (word, reason) in [
        ("depth=five", "depth: \"five\" is no integer"),
        ("depth=1.5", "depth: \"1.5\" is no integer"),
        ("all=yes", "all: \"yes\" is no boolean"),
        ("ids=x", "ids: \"x\" is no item of an array of integer"),
        ("any:={", "any: \"{\" is no JSON: EOF while parsing an object at line 1 column 1"),
        ("[1]", "the argument is JSON, but no object"),
    ] {
        assert_eq!(built(&["path=x", word]).unwrap_err().reason, reason);
    }
}

#[test]
fn unknown_names_are_refused_or_mentioned() {
    let mut schema = schema();
    let words = [word_of("path=x"), word_of("dept=1")];
    let built = build(&words, &schema).unwrap();
    assert_eq!(built.arguments["dept"], 1);
    assert_eq!(
        built.notes,
        ["the tool has no argument \"dept\"; it is passed all the same (did you mean depth?)"]
    );
    schema["additionalProperties"] = json!({"type": "string"});
    assert_eq!(build(&words, &schema).unwrap().notes, Vec::<String>::new());
    schema["additionalProperties"] = json!(false);
    let wrong = build(&words, &schema).unwrap_err();
    assert_eq!(wrong.hint.as_deref(), Some("did you mean depth?"));
    assert_eq!(build(&[word_of("x=1")], &Value::Null).unwrap().notes, Vec::<String>::new());
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let schema = json!({
        "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/properties/b"}},
        "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "integer"}]}}
    });
    assert_eq!(build(&[word_of("a=1"), word_of("b=1")], &schema).unwrap().arguments["a"], 1);
}

#[test]
fn words_that_are_no_pairs() {
    assert_eq!((pair("=x"), pair(":=x"), pair("{}"), pair("-")), (None, None, None, None));
    assert_eq!(pair("a==b"), Some(Word::Pair("a".into(), "=b".into())));
}
