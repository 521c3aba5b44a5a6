//! Owns what the usual OTEL variables say about traces. Reads no environment: the caller gives the values.

use std::time::Duration;

use toolway_secret::Secret;
use toolway_transport::Connector;

/// Where a collector listens unless told otherwise (OTLP/HTTP).
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where spans are sent, and which.
#[derive(Debug, Clone)]
pub struct TracesConfig {
    /// The whole URL: `http://localhost:4318/v1/traces`.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<(String, Secret)>,
    /// For one request.
    pub timeout: Duration,
    /// `service.name`
    pub service: String,
    /// Further attributes of the resource.
    pub attributes: Vec<(String, String)>,
    /// Which share of traces that begin here is kept, 0 to 1.
    pub ratio: f64,
    /// A trace that a client has begun is kept if the client keeps it.
    pub follow_parent: bool,
    /// How the collector is reached.
    pub connector: Connector,
}

impl TracesConfig {
    /// Every span, to that URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            service: "toolway".to_owned(),
            attributes: Vec::new(),
            ratio: 1.0,
            follow_parent: true,
            connector: Connector::default(),
        }
    }

    /// From the variables of the OpenTelemetry specification ("Environment Variable Specification", "OTLP Exporter").
    /// `None`: no endpoint is set, or traces are switched off. Remarks are for people: something is done otherwise
    /// than the variables say. The error names the variable.
    pub fn from_variables(
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<(Self, Vec<String>)>, String> {
        let get =
            |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let of_traces = |name: &str| get(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
        let either = |name: &str| of_traces(name).or_else(|| get(&format!("OTEL_EXPORTER_OTLP_{name}")));
        if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let exporter = get("OTEL_TRACES_EXPORTER");
        if exporter.as_deref() == Some("none") {
            return Ok(None);
        }
        let url = match (of_traces("ENDPOINT"), get("OTEL_EXPORTER_OTLP_ENDPOINT")) {
            (Some(url), _) => url,
            (None, Some(base)) => format!("{}/v1/traces", base.trim_end_matches('/')),
            (None, None) if exporter.as_deref() == Some("otlp") => format!("{DEFAULT_ENDPOINT}/v1/traces"),
            (None, None) => return Ok(None),
        };
        if let Some(other) = exporter.filter(|exporter| exporter != "otlp") {
            return Err(format!("OTEL_TRACES_EXPORTER is {other:?}; only otlp and none are supported"));
        }
        let mut remarks = Vec::new();
        match either("PROTOCOL").as_deref() {
            None | Some("http/json") => {}
            Some("http/protobuf") => remarks.push(
                "OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf; traces are sent as http/json to the same address".to_owned(),
            ),
            Some(other) => {
                return Err(format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL is {other:?}, which is not supported; use http/json (port 4318)"
                ));
            }
        }
        let mut config = Self::new(url);
        if let Some(headers) = either("HEADERS") {
            let headers = pairs(&headers).map_err(|pair| format!("OTEL_EXPORTER_OTLP_HEADERS: {pair}"))?;
            config.headers = headers.into_iter().map(|(name, value)| (name, Secret::in_use(value))).collect();
        }
        if let Some(timeout) = either("TIMEOUT") {
            let millis = timeout.parse().ok().filter(|millis| *millis > 0);
            let millis = millis
                .ok_or_else(|| format!("OTEL_EXPORTER_OTLP_TIMEOUT is {timeout:?}, no milliseconds"))?;
            config.timeout = Duration::from_millis(millis);
        }
        if let Some(attributes) = get("OTEL_RESOURCE_ATTRIBUTES") {
            config.attributes =
                pairs(&attributes).map_err(|pair| format!("OTEL_RESOURCE_ATTRIBUTES: {pair}"))?;
        }
        let named = config.attributes.iter().position(|(name, _)| name == "service.name");
        if let Some((_, name)) = named.map(|at| config.attributes.remove(at)) {
            config.service = name;
        }
        config.service = get("OTEL_SERVICE_NAME").unwrap_or(config.service);
        config.sampler(get("OTEL_TRACES_SAMPLER"), get("OTEL_TRACES_SAMPLER_ARG"))?;
        Ok(Some((config, remarks)))
    }

    fn sampler(&mut self, name: Option<String>, argument: Option<String>) -> Result<(), String> {
        let Some(name) = name else { return Ok(()) };
        let plain = name.strip_prefix("parentbased_");
        self.follow_parent = plain.is_some();
        self.ratio = match plain.unwrap_or(&name) {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => {
                let ratio = argument.as_deref().unwrap_or("1").parse::<f64>().ok();
                ratio.filter(|ratio| (0.0..=1.0).contains(ratio)).ok_or_else(|| {
                    format!("OTEL_TRACES_SAMPLER_ARG is {:?}, not from 0 to 1", argument.unwrap_or_default())
                })?
            }
            _ => return Err(format!("OTEL_TRACES_SAMPLER is {name:?}, which is not supported")),
        };
        Ok(())
    }
}

/// `a=b,c=d`, with values as in a URL (W3C Baggage). The error does not show the value: it may be secret.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pairs = parts.enumerate().map(|(index, part)| {
        let wrong = || format!("entry {} is not NAME=VALUE", index + 1);
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let (name, value) = (name.trim(), decoded(value.trim()).ok_or_else(wrong)?);
        if name.is_empty() { Err(wrong()) } else { Ok((name.to_owned(), value)) }
    });
    pairs.collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = after.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<(TracesConfig, Vec<String>)>, String> {
        TracesConfig::from_variables(|name| {
            variables.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_sent_unless_an_endpoint_is_named() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "x")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_SDK_DISABLED", "TRUE")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert!(of(variables).unwrap().is_none(), "{variables:?}");
        }
    }

    #[test]
    fn variables_for_traces_win() {
        let (config, remarks) = of(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, y = z"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=s,deployment.environment=dev"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ])
        .unwrap()
        .unwrap();
        assert_eq!(config.url, "http://c:4318/v1/traces");
        let headers: Vec<_> =
            config.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [("x-key", "a b"), ("y", "z")]);
        assert_eq!(
            (config.timeout, config.ratio, config.follow_parent),
            (Duration::from_millis(1500), 0.25, true)
        );
        assert_eq!(config.service, "s");
        assert_eq!(config.attributes, [("deployment.environment".to_owned(), "dev".to_owned())]);
        assert_eq!(remarks.len(), 1);
        let (config, _) = of(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/x"),
            ("OTEL_SERVICE_NAME", "n"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_TRACES_SAMPLER", "always_off"),
        ])
        .unwrap()
        .unwrap();
        assert_eq!((config.url.as_str(), config.service.as_str()), ("http://t/x", "n"));
        assert_eq!((config.ratio, config.follow_parent), (0.0, false));
        let (config, _) = of(&[("OTEL_TRACES_EXPORTER", "otlp")]).unwrap().unwrap();
        assert_eq!(config.url, "http://localhost:4318/v1/traces");
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name_and_without_secrets() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c");
        for (variable, error) in [
            (
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
                "OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\", which is not supported; use http/json (port 4318)",
            ),
            (
                ("OTEL_TRACES_EXPORTER", "zipkin"),
                "OTEL_TRACES_EXPORTER is \"zipkin\"; only otlp and none are supported",
            ),
            (
                ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
                "OTEL_TRACES_SAMPLER is \"jaeger_remote\", which is not supported",
            ),
            (("OTEL_EXPORTER_OTLP_TIMEOUT", "0"), "OTEL_EXPORTER_OTLP_TIMEOUT is \"0\", no milliseconds"),
            (
                ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,topsecret"),
                "OTEL_EXPORTER_OTLP_HEADERS: entry 2 is not NAME=VALUE",
            ),
            (
                ("OTEL_EXPORTER_OTLP_HEADERS", "a=%zz"),
                "OTEL_EXPORTER_OTLP_HEADERS: entry 1 is not NAME=VALUE",
            ),
        ] {
            assert_eq!(of(&[endpoint, variable]).unwrap_err(), error);
        }
    }
}
