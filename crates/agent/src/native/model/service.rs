//! Owns which services of models there are, how a model's id names one, and where its key and its address come from. It
//! makes no request.

use std::collections::BTreeMap;
use std::fmt;

use genai::adapter::AdapterKind;
use toolway_secret::Secret;
use url::Url;

use crate::error::AgentError;

/// How a service's answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// `OpenAI`'s chat completions, and everybody who speaks them.
    Chat,
    /// `OpenAI`'s responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// What the library reads for us.
    Library,
}

/// A service of models.
#[derive(Debug)]
pub(super) struct Service {
    /// Its name in `name::model`.
    pub(super) name: &'static str,
    pub(super) kind: AdapterKind,
    pub(super) wire: Wire,
    /// Variables that may hold its key. None: it needs no key.
    pub(super) keys: &'static [&'static str],
    /// Its address.
    base: &'static str,
    /// Variables that may hold another address.
    bases: &'static [&'static str],
    /// What a path must end with, where addresses are given without it.
    version: Option<&'static str>,
    /// Its models read pictures, as far as nothing else is known.
    pub(super) images: bool,
    /// It wants to see again what its models thought, as plain text.
    pub(super) echoes_thinking: bool,
}

const fn service(name: &'static str, kind: AdapterKind, wire: Wire, base: &'static str) -> Service {
    Service {
        name,
        kind,
        wire,
        keys: &[],
        base,
        bases: &[],
        version: None,
        images: false,
        echoes_thinking: false,
    }
}

static SERVICES: [Service; 12] = [
    Service {
        keys: &["OPENAI_API_KEY"],
        bases: &["OPENAI_BASE_URL"],
        images: true,
        ..service("openai", AdapterKind::OpenAI, Wire::Chat, "https://api.openai.com/v1/")
    },
    Service {
        keys: &["OPENAI_API_KEY"],
        bases: &["OPENAI_BASE_URL"],
        images: true,
        ..service("openai-responses", AdapterKind::OpenAIResp, Wire::Responses, "https://api.openai.com/v1/")
    },
    Service {
        keys: &["ANTHROPIC_API_KEY"],
        bases: &["ANTHROPIC_BASE_URL"],
        version: Some("v1"),
        images: true,
        ..service("anthropic", AdapterKind::Anthropic, Wire::Messages, "https://api.anthropic.com/v1/")
    },
    Service {
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        bases: &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
        version: Some("v1beta"),
        images: true,
        ..service(
            "gemini",
            AdapterKind::Gemini,
            Wire::Library,
            "https://generativelanguage.googleapis.com/v1beta/",
        )
    },
    Service {
        bases: &["OLLAMA_BASE_URL", "OLLAMA_HOST"],
        ..service("ollama", AdapterKind::Ollama, Wire::Library, "http://localhost:11434/")
    },
    Service {
        keys: &["OPENROUTER_API_KEY"],
        images: true,
        ..service("openrouter", AdapterKind::OpenRouter, Wire::Chat, "https://openrouter.ai/api/v1/")
    },
    Service {
        keys: &["DEEPSEEK_API_KEY"],
        echoes_thinking: true,
        ..service("deepseek", AdapterKind::DeepSeek, Wire::Chat, "https://api.deepseek.com/v1/")
    },
    Service {
        keys: &["GROQ_API_KEY"],
        ..service("groq", AdapterKind::Groq, Wire::Chat, "https://api.groq.com/openai/v1/")
    },
    Service {
        keys: &["MISTRAL_API_KEY"],
        ..service("mistral", AdapterKind::Mistral, Wire::Chat, "https://api.mistral.ai/v1/")
    },
    Service {
        keys: &["TOGETHER_API_KEY"],
        ..service("together", AdapterKind::Together, Wire::Chat, "https://api.together.xyz/v1/")
    },
    Service {
        keys: &["XAI_API_KEY"],
        images: true,
        ..service("xai", AdapterKind::Xai, Wire::Chat, "https://api.x.ai/v1/")
    },
    Service {
        keys: &["MOONSHOT_API_KEY"],
        echoes_thinking: true,
        ..service("moonshot", AdapterKind::Moonshot, Wire::Chat, "https://api.moonshot.ai/v1/")
    },
];

/// What the services are reached with: given by the program, or found in its environment.
#[derive(Clone, Default)]
pub(crate) struct ServiceAccess {
    /// The key that the program gave. An empty one is refused, and never replaced by one of the environment.
    pub(crate) api_key: Option<Secret>,
    /// The address that the program gave, instead of the service's own.
    pub(crate) base_url: Option<String>,
    /// The variables of the environment.
    pub(crate) variables: BTreeMap<String, String>,
}

impl fmt::Debug for ServiceAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccess")
            .field("api_key", &self.api_key)
            .field("base_url", &self.base_url.as_deref().map(without_user))
            .finish_non_exhaustive()
    }
}

impl ServiceAccess {
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
    }

    /// A variable by any of its names.
    pub(super) fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.variable(name))
    }
}

/// A model at its service, with all that is needed to ask it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) service: &'static Service,
    /// The model's name at the service.
    pub(super) model: String,
    /// The address, with a slash at its end.
    pub(super) base: Url,
    /// It is the service's own address.
    pub(super) official: bool,
    /// The key.
    pub(super) key: Option<Secret>,
}

impl Target {
    /// The target of an id: `service::model`, or a name that tells its service. With an address of one's own, a plain
    /// id is that of a service that speaks `OpenAI`'s chat completions.
    pub(super) fn of(id: &str, access: &ServiceAccess) -> Result<Self, AgentError> {
        let id = id.trim();
        if id.is_empty() {
            return Err(AgentError::fault(
                "model.id",
                "no model is named, as in `anthropic::claude-sonnet-4-5`",
            ));
        }
        let (service, model) = match id.split_once("::") {
            Some((name, model)) => (named(name, id)?, model),
            None => (guessed(id, access)?, id),
        };
        if model.is_empty() {
            let message = format!("{id:?} names a service and no model");
            return Err(AgentError::fault("model.id", message));
        }
        let given = access.base_url.as_deref().or_else(|| access.first(service.bases));
        let base = address(service, given.unwrap_or(service.base))?;
        let key = key(service, id, access, given.is_some())?;
        Ok(Self { service, model: model.to_owned(), base, official: given.is_none(), key })
    }
}

fn named(name: &str, id: &str) -> Result<&'static Service, AgentError> {
    let plain = name.trim().to_ascii_lowercase().replace('_', "-");
    let plain = match plain.as_str() {
        "google" => "gemini",
        "responses" | "openai-resp" => "openai-responses",
        "claude" => "anthropic",
        "open-router" => "openrouter",
        other => other,
    };
    SERVICES.iter().find(|service| service.name == plain).ok_or_else(|| {
        let message = format!("{id:?} names a service that is not known: it is one of {}", names());
        AgentError::fault("model.id", message)
    })
}

/// All services, for the page that lists them.
#[cfg(test)]
pub(super) fn known() -> &'static [Service] {
    &SERVICES
}

fn names() -> String {
    SERVICES.iter().map(|service| service.name).collect::<Vec<_>>().join(", ")
}

fn by_name(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == name)
}

fn guessed(id: &str, access: &ServiceAccess) -> Result<&'static Service, AgentError> {
    let starts = |words: &[&str]| words.iter().any(|word| id.starts_with(word));
    let other_openai = access.base_url.is_some() || access.variable("OPENAI_BASE_URL").is_some();
    let name = if access.base_url.is_some() {
        "openai"
    } else if starts(&["gpt-", "chatgpt-", "o1", "o3", "o4", "codex-"]) {
        if !other_openai && reasons(id) { "openai-responses" } else { "openai" }
    } else if starts(&["claude"]) {
        "anthropic"
    } else if starts(&["gemini-", "gemma-"]) {
        "gemini"
    } else if starts(&["deepseek-"]) && access.variable("DEEPSEEK_API_KEY").is_some() {
        "deepseek"
    } else if starts(&["grok-"]) {
        "xai"
    } else if other_openai {
        "openai"
    } else {
        ""
    };
    by_name(name).ok_or_else(|| {
        let how = match id.split_once('/') {
            Some((service, model)) if by_name(service).is_some() => format!("`{service}::{model}`"),
            _ => format!("`SERVICE::{id}`, where SERVICE is one of {}", names()),
        };
        let message = format!("it is not known whose model {id:?} is: write {how}, or give a base URL");
        AgentError::fault("model.id", message)
    })
}

/// Models of `OpenAI`'s that think before they answer.
pub(super) fn reasons(model: &str) -> bool {
    let chat = model.contains("-chat");
    let starts = ["gpt-5", "gpt-6", "o1", "o3", "o4", "codex-"].iter().any(|word| model.starts_with(word));
    starts && !chat
}

fn address(service: &Service, text: &str) -> Result<Url, AgentError> {
    let fault = |reason: &str| {
        let shown = without_user(text);
        AgentError::fault("baseUrl", format!("{shown:?} is no address of {}: {reason}", service.name))
    };
    let text = text.trim();
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&full).map_err(|error| fault(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(fault("it must begin with http:// or https:// and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault("it must not hold a user or a password; give a key instead"));
    }
    let mut path = url.path().trim_end_matches('/').to_owned();
    if let Some(version) = service.version
        && !path.rsplit('/').next().is_some_and(|last| last.starts_with('v') && last.len() > 1)
    {
        path = format!("{path}/{version}");
    }
    url.set_path(&format!("{path}/"));
    Ok(url)
}

/// An address for people: no user, no password, no query.
fn without_user(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return "it".to_owned();
    };
    let cleaned = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    if cleaned.is_ok() { url.into() } else { "it".to_owned() }
}

fn key(
    service: &Service,
    id: &str,
    access: &ServiceAccess,
    own_address: bool,
) -> Result<Option<Secret>, AgentError> {
    let refused = |message: String| AgentError::Authentication { message };
    if let Some(key) = &access.api_key {
        let text = key.expose().trim();
        if text.is_empty() {
            return Err(refused(format!("the key that was given for {id:?} is empty")));
        }
        return checked(text, id, "the key that was given").map(Some);
    }
    if let Some((name, text)) = service.keys.iter().find_map(|name| Some((name, access.variable(name)?))) {
        return checked(text.trim(), id, name).map(Some);
    }
    if service.keys.is_empty() || own_address {
        return Ok(None);
    }
    let variables = service.keys.join(" or ");
    Err(refused(format!("{id:?} needs a key of {}: set {variables}, or give apiKey", service.name)))
}

fn checked(key: &str, id: &str, origin: &str) -> Result<Secret, AgentError> {
    if key.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        return Ok(Secret::in_use(key));
    }
    let message =
        format!("{origin} for {id:?} holds characters that no key has, such as spaces or line breaks");
    Err(AgentError::Authentication { message })
}
