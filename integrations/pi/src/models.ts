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

/** What each member of the file has to be. */
const WANTED: Record<keyof Options, [what: string, fits: (value: any) => boolean]> = {
	bin: ["a path", (value) => typeof value === "string"],
	models: ["a list of names, or of objects with an id", (value) => Array.isArray(value) && value.every(isModel)],
	agents: ["an object of commands, each a list of words", (value) => isObject(value) && Object.values(value).every((command: any) => isWords(command) && command.length > 0)],
	arguments: ["a list of words", isWords],
};

/** Reads the file. What cannot be read of it is told, and counts as not said. */
export function readOptions(): { options: Options; problem?: string } {
	const path = join(getAgentDir(), "toolway.json");
	let read: any;
	try {
		read = JSON.parse(readFileSync(path, "utf8"));
	} catch (error) {
		const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
		return { options: {}, problem: missing ? undefined : `${path}: ${(error as Error).message}` };
	}
	if (!isObject(read)) return { options: {}, problem: `${path}: an object is wanted` };
	const options: Record<string, any> = {};
	const problems: string[] = [];
	for (const [key, value] of Object.entries(read)) {
		const [what, fits] = Object.hasOwn(WANTED, key) ? WANTED[key as keyof Options] : ["", () => false];
		if (fits(value)) options[key] = value;
		else problems.push(what ? `${key}: ${what} is wanted` : `${key}: there is no such key`);
	}
	return { options, problem: problems.length > 0 ? `${path}: ${problems.join("; ")}` : undefined };
}

function isObject(value: any): boolean {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isWords(value: any): boolean {
	return Array.isArray(value) && value.every((word) => typeof word === "string");
}

function isModel(value: any): boolean {
	const of = (key: string, kind: string) => value[key] === undefined || typeof value[key] === kind;
	if (typeof value === "string") return value !== "";
	return (
		isObject(value) &&
		typeof value.id === "string" &&
		value.id !== "" &&
		of("name", "string") &&
		of("contextWindow", "number") &&
		of("maxTokens", "number") &&
		(value.input === undefined || isWords(value.input))
	);
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
	const command = Object.hasOwn(options.agents ?? {}, agent) ? options.agents?.[agent] : undefined;
	return command ? ["--agent", "acp", ...more, "--", ...command] : ["--agent", `acp:${agent}`, ...more];
}
