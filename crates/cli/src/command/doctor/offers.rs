//! Owns what is said of the tools that servers listed: how many an agent gets, which not, under which names, and at
//! which cost. Pure.

use toolway_proxy::gateway::{Catalogue, ListKind, Naming, RawLists, ServerCatalogue, ServerConfig, Shaping};

use super::report::{Check, Layer, Quarantined, Renamed, ToolsReport};

/// Names that are told one by one.
const TOLD: usize = 5;

/// What one server's lists amount to.
pub(super) struct Offer {
    /// For the gateway's view of all servers.
    pub(super) catalogue: ServerCatalogue,
    /// The figures.
    pub(super) report: ToolsReport,
    /// What should be known of them.
    pub(super) checks: Vec<Check>,
}

/// Judges a server's lists as the gateway does.
pub(super) fn offer(config: &ServerConfig, lists: &RawLists, naming: Naming) -> Offer {
    let shaping = Shaping { naming, filter: &config.filter, relax_output: true, pins: None };
    let catalogue = ServerCatalogue::new(&config.name, lists, shaping);
    let tools = catalogue.definitions(ListKind::Tools);
    let renamed = tools.iter().filter(|tool| naming.is_changed(&config.name, config.filter.shown(&tool.own)));
    let renamed: Vec<Renamed> =
        renamed.map(|tool| Renamed { tool: tool.own.clone(), shown: tool.exposed.clone() }).collect();
    let quarantined: Vec<Quarantined> = catalogue
        .refused()
        .iter()
        .filter(|refused| refused.kind == ListKind::Tools)
        .map(|refused| Quarantined { tool: refused.name.clone(), reason: refused.reason.clone() })
        .collect();
    let report = ToolsReport {
        count: tools.len(),
        hidden: catalogue.hidden(),
        tokens: catalogue.tokens() as u64,
        renamed,
        quarantined,
    };
    let checks = checks(&report, &catalogue, lists, naming);
    Offer { catalogue, report, checks }
}

fn checks(report: &ToolsReport, catalogue: &ServerCatalogue, lists: &RawLists, naming: Naming) -> Vec<Check> {
    let mut checks = Vec::new();
    let listed = format!("{} tools listed, about {} tokens", report.count, report.tokens);
    if report.count > 0 {
        checks.push(Check::ok(Layer::Tools, listed));
    } else if !lists.tools.is_empty() && report.hidden > 0 && report.quarantined.is_empty() {
        let fix = "change tools.allow or tools.deny in the entry";
        checks.push(Check::warning(Layer::Tools, "the filter of the entry hides every tool", fix));
    } else if lists.prompts.is_empty() && lists.resources.is_empty() && lists.templates.is_empty() {
        let fix = "see the server's own documentation: it may need an option or a login to show tools";
        checks.push(Check::warning(Layer::Tools, "it lists no tools, prompts or resources", fix));
    } else {
        checks.push(Check::ok(Layer::Tools, "it lists no tools, but prompts or resources"));
    }
    for tool in &report.quarantined {
        let finding = format!(
            "the tool {:?} {}: held back, so that the others reach the client",
            tool.tool, tool.reason
        );
        checks.push(Check::warning(Layer::Tools, finding, "tell the server's author"));
    }
    if let Some(first) = report.renamed.first() {
        let finding = format!(
            "{} names do not fit {} characters of A-Z a-z 0-9 _ -: {:?} is shown as {:?}",
            report.renamed.len(),
            naming.limit(),
            first.tool,
            first.shown
        );
        let fix = "nothing to do: calls find their way; tools.rename gives better names";
        checks.push(Check::warning(Layer::Tools, finding, fix));
    }
    let notes = catalogue.notes().iter().filter(|note| !lists.notes.contains(note));
    checks.extend(notes.map(|note| Check::warning(Layer::Tools, note.clone(), "correct tools in the entry")));
    for tool in
        catalogue.definitions(ListKind::Tools).iter().filter(|tool| !tool.repairs.is_empty()).take(TOLD)
    {
        let finding = format!("the tool {:?} was repaired: {}", tool.own, tool.repairs.join("; "));
        checks.push(Check::ok(Layer::Tools, finding));
    }
    checks
}

/// What is wrong only with all servers together: two tools that would have one name. With the server's name.
pub(super) fn together(offers: Vec<ServerCatalogue>) -> Vec<(String, Check)> {
    let mut all = Catalogue::new(Vec::new(), None);
    let mut own = Vec::new();
    for (number, catalogue) in offers.into_iter().enumerate() {
        own.extend(catalogue.refused().iter().cloned());
        all.set(number, std::sync::Arc::new(catalogue));
    }
    let between = all.refused().into_iter().filter(|refused| !own.contains(refused));
    between
        .map(|refused| {
            let finding = format!("{} {:?} {}", refused.kind.noun(), refused.name, refused.reason);
            (refused.server, Check::warning(Layer::Tools, finding, "rename one of the two with tools.rename"))
        })
        .collect()
}
