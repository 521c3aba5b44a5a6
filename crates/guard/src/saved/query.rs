//! Owns jq queries over a saved result. The one place that holds a result as a tree; nothing of it runs unless asked.

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Native, RcIter};
use jaq_json::Val;

use crate::GuardError;

/// Filters that reach out of the data: the environment, the process, the terminal.
const FORBIDDEN: &[&str] =
    &["env", "halt", "halt_error", "stderr", "debug", "input", "inputs", "input_filename"];
/// Results may be built deep; their printing recurses.
const STACK: usize = 256 << 20;

/// Runs a filter over a JSON text; `take` gets each output as compact JSON and says whether to go on.
pub(super) fn query(
    json: Vec<u8>,
    filter: &str,
    take: &mut (dyn FnMut(&str) -> bool + Send),
) -> Result<(), GuardError> {
    let failed = |reason: String| GuardError::Query(reason);
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("query".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, || run(json, filter, take))
            .map_err(|error| failed(error.to_string()))?
            .join()
            .map_err(|_| failed("the filter broke off".to_owned()))?
    })
}

fn run(json: Vec<u8>, filter: &str, take: &mut (dyn FnMut(&str) -> bool + Send)) -> Result<(), GuardError> {
    let value: serde_json::Value = serde_json::from_slice(&json)
        .map_err(|error| GuardError::Query(format!("cannot read the JSON: {error}")))?;
    drop(json);
    let allowed = |name: &str| !FORBIDDEN.contains(&name);
    let loader = Loader::new(jaq_std::defs().chain(jaq_json::defs()).filter(|def| allowed(def.name)));
    let arena = Arena::default();
    let modules = loader
        .load(&arena, File { code: filter, path: () })
        .map_err(|errors| GuardError::Query(load_error(filter, &errors)))?;
    let natives = jaq_std::funs::<Val>().chain(jaq_json::funs()).filter(|(name, ..)| allowed(name));
    let filter =
        Compiler::<_, Native<Val>>::default().with_funs(natives).compile(modules).map_err(|errors| {
            let names = errors.iter().flat_map(|(_, errors)| {
                errors.iter().map(|(name, kind)| format!("undefined {} {name}", kind.as_str()))
            });
            GuardError::Query(names.collect::<Vec<_>>().join(", "))
        })?;
    let inputs = RcIter::new(std::iter::empty());
    for output in filter.run((Ctx::new([], &inputs), Val::from(value))) {
        let output = output.map_err(|error| GuardError::Query(error.to_string()))?;
        if !take(&output.to_string()) {
            break;
        }
    }
    Ok(())
}

fn load_error(filter: &str, errors: &jaq_core::load::Errors<&str, ()>) -> String {
    use jaq_core::load::Error;
    let place = |found: &str| {
        let at = found.as_ptr().addr().saturating_sub(filter.as_ptr().addr()).min(filter.len());
        format!("at character {}", filter.get(..at).map_or(0, |before| before.chars().count()) + 1)
    };
    let mut reasons = Vec::new();
    for (_, error) in errors {
        match error {
            Error::Io(errors) => reasons.extend(errors.iter().map(|(_, reason)| reason.clone())),
            Error::Lex(errors) => {
                reasons.extend(
                    errors
                        .iter()
                        .map(|(expected, found)| format!("expected {} {}", expected.as_str(), place(found))),
                );
            }
            Error::Parse(errors) => {
                reasons.extend(
                    errors
                        .iter()
                        .map(|(expected, found)| format!("expected {} {}", expected.as_str(), place(found))),
                );
            }
        }
    }
    reasons.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(json: &str, filter: &str) -> Result<Vec<String>, String> {
        let mut out = Vec::new();
        query(json.into(), filter, &mut |output| {
            out.push(output.to_owned());
            out.len() < 3
        })
        .map_err(|error| error.to_string())?;
        Ok(out)
    }

    #[test]
    fn filters_run_and_stop_when_told() {
        let json = r#"{"rows":[{"id":9007199254740993,"s":"é"},{"id":2},{"id":3},{"id":4}]}"#;
        assert_eq!(outputs(json, ".rows[0]").unwrap(), [r#"{"id":9007199254740993,"s":"é"}"#]);
        assert_eq!(outputs(json, ".rows[].id").unwrap().len(), 3);
        assert_eq!(outputs(json, "[.rows[] | select(.id < 4)] | length").unwrap(), ["2"]);
    }

    #[test]
    fn errors_say_what_is_wrong_and_nothing_outside_is_reached() {
        for (filter, reason) in [
            (".[", "query failed: expected"),
            ("nosuch", "undefined filter nosuch"),
            (".a.b", "cannot index"),
            ("env", "undefined filter env"),
            ("halt", "undefined filter halt"),
            ("halt_error", "undefined filter halt_error"),
            ("$ENV", "undefined variable $ENV"),
            ("input", "undefined filter input"),
            ("include \"x\"; .", "query failed: "),
        ] {
            let error = outputs(r#"{"a":[1]}"#, filter).unwrap_err();
            assert!(error.contains(reason), "{filter}: {error}");
        }
        assert!(outputs("{", ".").unwrap_err().contains("cannot read the JSON"));
    }
}
