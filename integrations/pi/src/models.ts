// Which models there are, and which agent each of them is. From toolway.json in pi's agent folder, TOOLWAY_PI_MODELS,
// or the list below.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getAgentDir, type ProviderModelConfig } from "@earendil-works/pi-coding-agent";

export const PROVIDER = "toolway";

/** A model of the file: its id, or more of it. */
interface ModelEntry {
	id: string;
	name?: string;
	contextWindow?: number;
	maxTokens?: number;
	input?: ("text" | "image")[];
}

/** The user's file. */
export interface Options {
	/** The program, if it is not the one of TOOLWAY_BIN or of PATH. */
	bin?: string;
	models?: (string | ModelEntry)[];
	/** Commands of agents that Toolway does not know by name. */
	agents?: Record<string, string[]>;
	/** More arguments for `toolway bridge`, as --allow and --deny. */
	arguments?: string[];
}

/** An agent without a model is asked for its own choice. */
const USUAL = ["native", "cursor", "opencode"];

/** Reads the file. One that cannot be read is told, and counts as an empty one. */
export function readOptions(): { options: Options; problem?: string } {
	const path = join(getAgentDir(), "toolway.json");
	try {
		const options = JSON.parse(readFileSync(path, "utf8"));
		if (typeof options !== "object" || options === null || Array.isArray(options)) {
			return { options: {}, problem: `${path}: an object is wanted` };
		}
		return { options };
	} catch (error) {
		const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
		return { options: {}, problem: missing ? undefined : `${path}: ${(error as Error).message}` };
	}
}

export function program(options: Options): string {
	return process.env.TOOLWAY_BIN || options.bin || "toolway";
}

export function models(options: Options): ProviderModelConfig[] {
	const named = (process.env.TOOLWAY_PI_MODELS ?? "").split(",").map((name) => name.trim());
	const wanted = named.some((name) => name) ? named.filter((name) => name) : (options.models ?? USUAL);
	return wanted.map((entry) => {
		const model = typeof entry === "string" ? { id: entry } : entry;
		return {
			type: "chat",
			id: model.id,
			name: model.name ?? `${model.id} (Toolway)`,
			reasoning: false,
			input: model.input ?? ["text", "image"],
			cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
			contextWindow: model.contextWindow ?? 200_000,
			maxTokens: model.maxTokens ?? 32_000,
		};
	});
}

/** `native:gpt-5`: the agent, and the model that it is asked for. */
export function parts(id: string): { agent: string; model: string } {
	const colon = id.indexOf(":");
	return colon < 0 ? { agent: id, model: "" } : { agent: id.slice(0, colon), model: id.slice(colon + 1) };
}

/** The arguments of `toolway bridge` for an agent; none for the bridge alone. */
export function bridgeArguments(agent: string | undefined, options: Options): string[] {
	if (agent === undefined) return [];
	const more = options.arguments ?? [];
	if (agent === "native") return ["--agent", "native", ...more];
	const command = options.agents?.[agent];
	return command ? ["--agent", "acp", ...more, "--", ...command] : ["--agent", `acp:${agent}`, ...more];
}
