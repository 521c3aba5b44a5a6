// The tools that show what the agent did, with pi's own look of them, and the one that activates a skill. A wrapper
// answers from the record of the bridge and runs nothing; for a call that is no card it is pi's own tool.

import {
	createBashToolDefinition,
	createEditToolDefinition,
	createFindToolDefinition,
	createGrepToolDefinition,
	createLsToolDefinition,
	createReadToolDefinition,
	createWriteToolDefinition,
	type ToolDefinition,
} from "@earendil-works/pi-coding-agent";
import { Text } from "@earendil-works/pi-tui";
import type { Bridge } from "./bridge.ts";

type Definition = ToolDefinition<any, any, any>;

/** How ids of cards begin in profile pi, for a time at which no bridge is there to ask. */
const REPLAY_PREFIX = "cursor-replay-";

const OWN: Record<string, (cwd: string) => Definition> = {
	bash: createBashToolDefinition,
	edit: createEditToolDefinition,
	find: createFindToolDefinition,
	grep: createGrepToolDefinition,
	ls: createLsToolDefinition,
	read: createReadToolDefinition,
	write: createWriteToolDefinition,
};

/** What the bridge has recorded for this call; nothing, where the call is none of a card. */
async function recorded(bridge: Bridge | undefined, tool: string, id: string) {
	if (!id.startsWith(bridge?.profile.replayPrefix ?? REPLAY_PREFIX)) return undefined;
	if (!bridge) throw new Error("no recorded result: this only shows what an agent did");
	const record = await bridge.request("replay/take", { id, tool });
	if (!record.recorded) throw new Error("no recorded result: this only shows what an agent did");
	return { content: record.content, details: record.details, isError: record.isError };
}

/** A wrapper of one of pi's own tools. `quiet`: it is there for cards alone, and no prompt speaks of it. */
export function nativeWrapper(name: string, cwd: string, quiet: boolean, bridge: () => Bridge | undefined): Definition | undefined {
	const own = OWN[name]?.(cwd);
	if (!own) return undefined;
	const wrapper: Definition = {
		...own,
		async execute(id, params, signal, onUpdate, ctx) {
			return (await recorded(bridge(), name, id)) ?? own.execute(id, params, signal, onUpdate, ctx);
		},
	};
	if (quiet) {
		delete wrapper.promptSnippet;
		delete wrapper.promptGuidelines;
	}
	return wrapper;
}

/** The wrapper of everything that pi has no look for. */
export function displayWrapper(name: string, bridge: () => Bridge | undefined): Definition {
	return {
		name,
		label: name,
		description: "Shows what the agent did; it does nothing.",
		parameters: {
			type: "object",
			properties: { activityTitle: { type: "string" }, activitySummary: { type: "string" } },
			required: ["activityTitle"],
		},
		async execute(id) {
			const record = await recorded(bridge(), name, id);
			if (!record) throw new Error("no recorded result: this only shows what an agent did");
			return record;
		},
		renderCall(args: any, theme) {
			const title = theme.fg("toolTitle", theme.bold(args.activityTitle ?? name));
			return new Text(args.activitySummary ? `${title} ${theme.fg("muted", args.activitySummary)}` : title, 0, 0);
		},
	};
}

/** The tool by which the agent's model gets a skill. What it gives is the bridge's. */
export function skillTool(name: string, bridge: () => Bridge | undefined): Definition {
	return {
		name,
		label: "skill",
		description: "Loads a skill by its name: its complete instructions, its folder, and the files that belong to it.",
		parameters: {
			type: "object",
			properties: { name: { type: "string", description: "The name of a skill, as the catalogue of skills has it." } },
			required: ["name"],
			additionalProperties: false,
		},
		defaultActive: false,
		async execute(_id, params) {
			const open = bridge();
			if (!open) throw new Error("skills are activated by the agent alone, and none is there");
			const given = await open.request("skill/activate", { arguments: params });
			return { content: given.content, details: given.details, isError: given.isError };
		},
	};
}
