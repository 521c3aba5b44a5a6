//! Owns where definitions come from, as kinds: which are asked for, and which stands above which. Knows no paths.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::problem::Problem;

/// A setting source as the user names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SettingSource {
    /// The project's files.
    Project,
    /// The user's files.
    User,
    /// The team's file.
    Team,
    /// The administrator's file.
    Mdm,
    /// Enabled plugins.
    Plugins,
}

impl SettingSource {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Project, Self::User, Self::Team, Self::Mdm, Self::Plugins];

    /// The name used in options and outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Team => "team",
            Self::Mdm => "mdm",
            Self::Plugins => "plugins",
        }
    }

    /// Reads a list of names. An unknown name is an error, and so is `all` beside others; an empty list is none.
    pub fn parse_list<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>, Problem> {
        let names: Vec<&str> = names.into_iter().map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.contains(&"all") {
            let alone = names.iter().all(|name| *name == "all");
            let mixed = || Problem::error("\"all\" stands beside other sources").hint("name all alone");
            return if alone { Ok(Self::ALL.to_vec()) } else { Err(mixed()) };
        }
        let mut sources = Vec::new();
        for name in names {
            let source = name.parse()?;
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        Ok(sources)
    }
}

impl FromStr for SettingSource {
    type Err = Problem;

    fn from_str(name: &str) -> Result<Self, Problem> {
        Self::ALL.into_iter().find(|source| source.name() == name).ok_or_else(|| {
            Problem::error(format!("there is no setting source {name:?}"))
                .hint("they are project, user, team, mdm, plugins and all")
        })
    }
}

/// Where one definition comes from. The order is that of precedence: the least stands highest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Given for one run of an agent.
    PerSend,
    /// Given by a program, or ad hoc on the command line.
    Inline,
    /// A file the user named with `--config`.
    Config,
    /// The administrator's file.
    Mdm,
    /// A plugin.
    Plugin {
        /// Its name.
        plugin: String,
        /// Where it is installed.
        root: PathBuf,
    },
    /// A file of the project.
    Project,
    /// A file of the user's.
    User,
    /// The team's file.
    Team,
}

impl Source {
    /// The name used in outputs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::PerSend => "per-send",
            Self::Inline => "inline",
            Self::Config => "config",
            Self::Mdm => "mdm",
            Self::Plugin { .. } => "plugin",
            Self::Project => "project",
            Self::User => "user",
            Self::Team => "team",
        }
    }

    /// Whether its content must be approved before it starts anything.
    pub fn needs_approval(&self) -> bool {
        matches!(self, Self::Plugin { .. } | Self::Project)
    }

    /// Whether it is explicit input, which needs no approval whatever it says.
    pub fn is_explicit(&self) -> bool {
        matches!(self, Self::PerSend | Self::Inline | Self::Config)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin { plugin, .. } => write!(f, "plugin {plugin}"),
            _ => f.write_str(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_known_and_all_stands_alone() {
        for source in SettingSource::ALL {
            assert_eq!(SettingSource::parse_list([source.name()]).unwrap(), [source]);
        }
        assert_eq!(SettingSource::parse_list(["all"]).unwrap(), SettingSource::ALL);
        assert_eq!(SettingSource::parse_list([]).unwrap(), []);
        let wrong = SettingSource::parse_list(["project", "users"]).unwrap_err();
        assert!(wrong.to_string().contains("no setting source \"users\""), "{wrong}");
        assert!(SettingSource::parse_list(["all", "user"]).is_err());
    }

    #[test]
    fn precedence_is_the_order_of_sources() {
        let plugin = Source::Plugin { plugin: "p".to_owned(), root: PathBuf::new() };
        let order = [
            Source::PerSend,
            Source::Inline,
            Source::Config,
            Source::Mdm,
            plugin,
            Source::Project,
            Source::User,
            Source::Team,
        ];
        assert!(order.is_sorted());
    }
}
