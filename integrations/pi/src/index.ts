// Toolway in pi: a provider whose models are whole agents. What they call of pi's tools comes back to pi as tool calls
// and runs on pi's own path, once; what they do with their own tools is shown, and run nowhere else.

import { writeSync } from "node:fs";
import { sep } from "node:path";
import {
	type Api,
	type AssistantMessageEventStream,
	getCurrentSystemPrompt,
	getCurrentTools,
	type Model,
	type SimpleStreamOptions,
	type TranscriptContext,
} from "@earendil-works/pi-ai/compat";
import { type ExtensionAPI, type ExtensionContext, getAgentDir, VERSION } from "@earendil-works/pi-coding-agent";
import { Bridge, BridgeFault } from "./bridge.ts";
import { bridgeArguments, models, type Options, PROVIDER, parts, program, readOptions } from "./models.ts";
import { Growing } from "./stream.ts";
import { displayWrapper, nativeWrapper, skillTool } from "./wrappers.ts";

/** The bridge's session for what pi asks of a model beside the conversation: summaries. */
const ASIDE = "aside";
const COMMAND = "cursor-tools";

type Moment = "sessionStart" | "beforeAgentStart" | "modelSelect" | "turnStart";
type Files = { path: string; content: string }[];

export default function toolway(pi: ExtensionAPI) {
	const { options, problem } = readOptions();
	new Extension(pi, options, problem);
}

class Extension {
	private bridge?: Bridge;
	private starting?: Promise<Bridge>;
	/** The agent behind the bridge. */
	private agent?: string;
	private ctx?: ExtensionContext;
	/** The tools as they were declared last. */
	private declared = "";
	private skills = "[]";
	private skillsDeclared = "";
	private files: Files = [];
	private wrappers: string[] = [];
	private ownTools = new Set<string>();
	private growing = new Map<number, Growing>();
	/** What a turn said before its number was known. */
	private early: { turn: number; event: any }[] = [];
	/** Calls of the agent that pi runs now, with how often they told of themselves. */
	private running = new Map<string, number>();
	/** pi asks for a summary, which is no turn of the conversation. */
	private aside = 0;
	private forget?: () => void;
	private closed = false;
	/** What failed last, and has been told. */
	private failed?: string;

	constructor(
		private pi: ExtensionAPI,
		private options: Options,
		private problem: string | undefined,
	) {
		pi.registerProvider(PROVIDER, {
			name: "Toolway",
			baseUrl: "toolway://bridge",
			// Keys are the agents' own; pi wants something to stand here.
			apiKey: "none",
			api: PROVIDER,
			models: models(options),
			streamSimple: (model, context, more) => this.stream(model, context, more),
		});
		pi.registerCommand(COMMAND, {
			description: "Shows which tools an agent of Toolway can call, and why not the others",
			handler: (_args, ctx) => this.report(ctx),
		});
		this.listen();
	}

	private listen(): void {
		const { pi } = this;
		pi.on("session_start", async (_event, ctx) => {
			this.ctx = ctx;
			if (this.problem) this.say(this.problem, "warning");
			if (ours(ctx.model)) await this.attempt(() => this.prepare("sessionStart", ctx.model));
		});
		pi.on("model_select", async (event, ctx) => {
			this.ctx = ctx;
			if (ours(event.model) || this.bridge) await this.attempt(() => this.prepare("modelSelect", event.model));
		});
		pi.on("before_agent_start", async (event, ctx) => {
			this.ctx = ctx;
			this.skills = JSON.stringify(
				event.systemPromptOptions.skills.map(({ name, description, filePath, baseDir, disableModelInvocation }) => ({
					name,
					description,
					filePath,
					baseDir,
					disableModelInvocation: disableModelInvocation === true,
				})),
			);
			this.files = event.systemPromptOptions.contextFiles.map(({ path, content }) => ({ path, content }));
			if (ours(ctx.model)) await this.attempt(() => this.prepare("beforeAgentStart", ctx.model));
		});
		pi.on("turn_start", async (_event, ctx) => {
			this.ctx = ctx;
			if (ours(ctx.model) && this.bridge) await this.attempt(() => this.prepare("turnStart", ctx.model));
		});
		pi.on("tool_call", (event) => this.admit(event.toolCallId));
		pi.on("tool_execution_update", (event) => {
			const told = this.running.get(event.toolCallId);
			if (told === undefined) return;
			this.running.set(event.toolCallId, told + 1);
			this.bridge?.tell("call/progress", { call: event.toolCallId, progress: told + 1 });
		});
		pi.on("tool_execution_end", (event) => {
			this.running.delete(event.toolCallId);
		});
		pi.on("session_before_compact", () => {
			this.aside++;
			this.bridge?.tell("session/tell", { event: "compaction" });
		});
		pi.on("session_compact", () => this.asideOver());
		pi.on("session_compact_failed", () => this.asideOver());
		pi.on("session_before_tree", (event) => {
			if (event.preparation.userWantsSummary) this.aside++;
		});
		pi.on("session_tree", () => {
			this.bridge?.tell("session/tell", { event: "treeNavigation" });
			this.asideOver();
		});
		pi.on("agent_start", () => {
			// A navigation that was given up tells nothing: whatever comes now is the conversation.
			this.aside = 0;
		});
		pi.on("session_shutdown", async () => {
			this.closed = true;
			this.forget?.();
			const bridge = this.bridge;
			this.bridge = undefined;
			bridge?.tell("session/tell", { event: "sessionShutdown" });
			await bridge?.close();
		});
	}

	private asideOver(): void {
		if (this.aside > 0) this.aside--;
		if (this.aside === 0) this.bridge?.tell("session/close", { session: ASIDE });
	}

	// The bridge.

	/** The bridge with that agent behind it; `undefined`: whichever is there, or none. */
	private async open(agent: string | undefined): Promise<Bridge> {
		if (this.starting) await this.starting.catch(() => {});
		const bridge = this.bridge;
		if (bridge?.isOpen && (agent === undefined || agent === this.agent)) return bridge;
		this.bridge = undefined;
		this.starting = (async () => {
			if (bridge?.isOpen) {
				// Which wrappers were made active for its agent is known to it alone.
				await this.sync(bridge, "modelSelect", false).catch(() => {});
				await bridge.close();
			}
			if (this.closed) throw new Error("the session is over");
			const started = await Bridge.start({
				command: program(this.options),
				arguments: bridgeArguments(agent, this.options),
				cwd: this.ctx?.cwd ?? process.cwd(),
				version: VERSION,
				ui: this.ctx?.hasUI === true,
				onNotification: (method, params) => this.told(method, params),
				onEnd: (reason) => this.lost(reason),
			});
			this.agent = agent;
			this.declared = "";
			this.skillsDeclared = "";
			this.bridge = started;
			return started;
		})();
		try {
			return await this.starting;
		} finally {
			this.starting = undefined;
		}
	}

	/** It ended, and nobody asked it to. */
	private lost(reason: string): void {
		for (const growing of this.growing.values()) growing.fail(reason);
		this.growing.clear();
		if (this.running.size === 0) return;
		// What pi runs for the agent has nobody to go to any more.
		this.running.clear();
		if (this.closed) return;
		this.say(reason, "error");
		this.ctx?.abort();
	}

	private told(method: string, params: any): void {
		switch (method) {
			case "turn/event": {
				const growing = this.growing.get(params.turn);
				if (!growing) this.early.push(params);
				else if (growing.take(params.event)) this.growing.delete(params.turn);
				break;
			}
			case "call/cancelled":
				// pi stops a run and not a single tool of it: it is stopped when nothing else of it is waited for.
				if (this.running.delete(params.call) && this.running.size === 0) this.ctx?.abort();
				break;
			case "notice":
				this.say(params.text, params.level);
				break;
			case "entry/append":
				this.pi.appendEntry(params.entry, params.data);
				break;
			case "tools/setActive":
				this.activate(params.active ? params.tools : [], params.active ? [] : params.tools);
				break;
		}
	}

	// What the bridge has to know, and what pi has to have.

	private async prepare(moment: Moment, model: Model<Api> | undefined): Promise<void> {
		const agentModel = ours(model);
		const bridge = await this.open(agentModel && model ? parts(model.id).agent : undefined);
		await this.sync(bridge, moment, agentModel);
		await this.declareTools(bridge);
		await this.declareSkills(bridge, agentModel);
	}

	/** Wrappers of pi's tools come and go with the model. */
	private async sync(bridge: Bridge, moment: Moment, agentModel: boolean): Promise<void> {
		const { pi } = this;
		const foreign = pi.getAllTools().filter(({ name, sourceInfo }) => {
			return sourceInfo.source !== "builtin" && !this.ownTools.has(name);
		});
		const plan = await bridge.request("wrappers/sync", {
			moment,
			agentModel,
			active: pi.getActiveTools(),
			foreign: foreign.map(({ name }) => name),
			display: this.ctx?.mode ?? "print",
		});
		const cwd = this.ctx?.cwd ?? process.cwd();
		const own = () => this.bridge;
		for (const name of plan.register) {
			const wrapper =
				name === bridge.profile.displayTool
					? displayWrapper(name, own)
					: nativeWrapper(name, cwd, plan.activate.includes(name), own);
			if (!wrapper) continue;
			this.ownTools.add(name);
			pi.registerTool(wrapper);
		}
		this.activate(plan.activate, plan.deactivate);
		this.wrappers = plan.wrappers;
		for (const warning of plan.warnings) this.say(warning, "warning");
	}

	private activate(more: string[], fewer: string[]): void {
		const active = this.pi.getActiveTools();
		const wanted = active.filter((name) => !fewer.includes(name));
		wanted.push(...more.filter((name) => !wanted.includes(name)));
		if (wanted.length !== active.length || more.some((name) => !active.includes(name))) {
			this.pi.setActiveTools(wanted);
		}
	}

	/** The registry as it is now, where it is another one than the bridge knows. */
	private async declareTools(bridge: Bridge): Promise<void> {
		const tools = this.pi.getAllTools().filter(({ exposure }) => exposure !== "hidden");
		const params = {
			tools: tools.map(({ name, description, promptGuidelines, parameters, sourceInfo }) => ({
				name,
				description,
				guidelines: promptGuidelines ?? [],
				parameters,
				provenance: { source: sourceInfo.source, path: sourceInfo.path, scope: sourceInfo.scope },
			})),
			active: this.pi.getActiveTools(),
			ownDisplayTool: this.ownTools.has(bridge.profile.displayTool),
			ownSkillTool: this.ownTools.has(bridge.profile.skillTool),
		};
		const declared = JSON.stringify(params);
		if (declared === this.declared) return;
		await bridge.request("tools/declare", params);
		this.declared = declared;
	}

	private async declareSkills(bridge: Bridge, agentModel: boolean): Promise<void> {
		const name = bridge.profile.skillTool;
		const declared = `${agentModel} ${this.skills} ${this.pi.getActiveTools().length === 0}`;
		if (declared === this.skillsDeclared) return;
		const { toolActive } = await bridge.request("skills/declare", { skills: JSON.parse(this.skills), agentModel });
		this.skillsDeclared = declared;
		if (toolActive && !this.ownTools.has(name)) {
			if (this.pi.getAllTools().some((tool) => tool.name === name)) return;
			this.ownTools.add(name);
			this.pi.registerTool(skillTool(name, () => this.bridge));
		}
		if (this.ownTools.has(name)) this.activate(toolActive ? [name] : [], toolActive ? [] : [name]);
		await this.declareTools(bridge);
	}

	// Turns.

	private stream(model: Model<Api>, context: TranscriptContext, more?: SimpleStreamOptions): AssistantMessageEventStream {
		const growing = new Growing(model);
		void this.turn(growing, model, context, more?.signal).catch((error: Error) => {
			growing.fail(error.message, more?.signal?.aborted === true);
		});
		return growing.stream;
	}

	private async turn(growing: Growing, model: Model<Api>, context: TranscriptContext, signal?: AbortSignal): Promise<void> {
		const { agent, model: named } = parts(model.id);
		const bridge = await this.open(agent);
		const aside = this.aside > 0;
		if (aside) await this.openAside(bridge);
		else await this.declareTools(bridge);
		if (signal?.aborted) return growing.fail("the request was aborted", true);
		const params = {
			session: aside ? ASIDE : "main",
			messages: messages(context),
			system: { text: getCurrentSystemPrompt(context.messages) },
			model: named,
			cwd: this.ctx?.cwd ?? process.cwd(),
			budgetTokens: Math.floor(model.contextWindow * 0.7),
		};
		const conversation = {
			instructionFiles: this.files.map((file) => ({ ...file, layer: layer(file.path) })),
			contextTools: getCurrentTools(context.messages).map(({ name }) => name),
			wrappers: this.wrappers,
			display: this.ctx?.mode ?? "print",
		};
		const { turn } = await bridge.request("turn/start", {
			...params,
			...(aside ? { mode: "plan", settingSources: [], display: "print" } : conversation),
		});
		growing.start();
		this.growing.set(turn, growing);
		this.abortWith(bridge, params.session, turn, signal);
		const early = this.early.filter((told) => told.turn === turn);
		this.early = [];
		for (const { event } of early) this.told("turn/event", { turn, event });
	}

	/** pi gives up the turn, or what came of it: the signal is that of the whole run. */
	private abortWith(bridge: Bridge, session: string, turn: number, signal?: AbortSignal): void {
		const abort = () => bridge.tell("turn/abort", { session, turn });
		if (signal?.aborted) return abort();
		signal?.addEventListener("abort", abort, { once: true });
		if (session === ASIDE) return;
		this.forget?.();
		this.forget = () => signal?.removeEventListener("abort", abort);
	}

	private async openAside(bridge: Bridge): Promise<void> {
		try {
			await bridge.request("session/open", { session: ASIDE });
		} catch (error) {
			// It is open already.
			if (!(error instanceof BridgeFault)) throw error;
		}
	}

	/** Before a tool runs: a call that nobody waits for does not. */
	private async admit(id: string): Promise<{ block: true; reason: string } | undefined> {
		const bridge = this.bridge;
		if (!bridge || !id.startsWith(bridge.profile.runPrefix)) return undefined;
		try {
			const { admitted, reason } = await bridge.request("call/admit", { call: id });
			if (!admitted) return { block: true, reason };
			this.running.set(id, 0);
			return undefined;
		} catch (error) {
			return { block: true, reason: (error as Error).message };
		}
	}

	// The user.

	private async report(ctx: ExtensionContext): Promise<void> {
		this.ctx = ctx;
		this.failed = undefined;
		await this.attempt(async () => {
			const agentModel = ours(ctx.model);
			if (agentModel) await this.prepare("turnStart", ctx.model);
			const bridge = await this.open(agentModel && ctx.model ? parts(ctx.model.id).agent : undefined);
			await this.declareTools(bridge);
			const { text } = await bridge.request("report/read");
			if (ctx.hasUI) ctx.ui.notify(text, "info");
			// What extensions write to stdout goes elsewhere in print mode, and in the others it is for records of JSON.
			else if (ctx.mode === "print") writeSync(1, `${text}\n`);
			else process.stderr.write(`${text}\n`);
		});
	}

	/** What fails here must not fail pi; the next turn says it again. The same failure of several moments is told once. */
	private async attempt(work: () => Promise<void>): Promise<void> {
		try {
			await work();
			this.failed = undefined;
		} catch (error) {
			const { message } = error as Error;
			if (message !== this.failed) this.say(message, "error");
			this.failed = message;
		}
	}

	private say(text: string, level: "info" | "warning" | "error"): void {
		if (this.ctx?.hasUI) this.ctx.ui.notify(`Toolway: ${text}`, level);
		else process.stderr.write(`Toolway: ${text}\n`);
	}
}

function ours(model: { provider: string } | undefined): boolean {
	return model?.provider === PROVIDER;
}

/** Files of pi's own folder are the user's, all others the project's. */
function layer(path: string): "global" | "project" {
	return path.startsWith(getAgentDir() + sep) ? "global" : "project";
}

/** The conversation, each message the same each time: what pi notes beside it changes. */
function messages(context: TranscriptContext): unknown[] {
	return context.messages.flatMap((message) => {
		switch (message.role) {
			case "user":
			case "assistant":
				return [{ role: message.role, content: message.content }];
			case "toolResult": {
				const { role, toolCallId, toolName, content, isError } = message;
				return [{ role, toolCallId, toolName, content, isError }];
			}
			default:
				return [];
		}
	});
}
