// An editor of the Agent Client Protocol's own SDK: two sessions at once, a server of the editor's, a question for permission,
// a cancellation, wrong parameters, a session of another day, and stdin closed in the middle. Everything that comes is
// checked against the SDK's schemas. Prints what came of it as JSON.
// node acp_editor.mjs FILE, where FILE has: sdk, the folder of the SDK; model, the command of a scripted model, which prints
// its address; agent, the command of the agent; home, cwd; server, as session/new takes one.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const { sdk, model, agent, home, cwd, server } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const load = (file) => import(pathToFileURL(join(sdk, "dist/v1", file)).href);
const [{ client, methods, ndJsonStream, RequestError, PROTOCOL_VERSION }, zod] = await Promise.all([
	load("stable/acp.js"),
	load("schema/zod.gen.js"),
]);
// The end of its stdin is its end.
const scripted = spawn(model[0], model.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const address = await new Promise((resolve) => scripted.stdout.once("data", (line) => resolve(String(line).trim())));
const came = { faults: [], days: [] };

function check(schema, value, what) {
	const read = schema.safeParse(value);
	if (!read.success) came.faults.push(`${what}: ${read.error.message}: ${JSON.stringify(value)}`.slice(0, 2000));
	return value;
}

/** One start of the agent, to its end. `work` gets what it needs to be an editor. */
async function day(work) {
	const told = { updates: {}, asked: [], stderr: "" };
	const env = { HOME: home, PATH: process.env.PATH, OPENAI_API_KEY: "key-of-the-test", OPENAI_BASE_URL: `${address}/v1` };
	const running = spawn(agent[0], agent.slice(1), { cwd: home, env, stdio: ["pipe", "pipe", "pipe"] });
	running.stderr.on("data", (chunk) => {
		told.stderr = (told.stderr + chunk).slice(-20000);
	});
	const ended = new Promise((resolve) => running.on("close", (code, signal) => resolve(signal ?? code)));
	const waiting = [];
	let hungUp = false;
	const app = client({ name: "interop" })
		.onRequest(methods.client.session.requestPermission, ({ params }) => {
			check(zod.zRequestPermissionRequest, params, "request_permission");
			told.asked.push(params);
			const allow = params.options.find((option) => option.kind === "allow_once");
			return { outcome: { outcome: "selected", optionId: allow.optionId } };
		})
		.onNotification(methods.client.session.update, ({ params }) => {
			check(zod.zSessionNotification, params, "update");
			(told.updates[params.sessionId] ??= []).push(params.update);
			for (const one of waiting.splice(0)) if (!one(params)) waiting.push(one);
		});
	const stream = ndJsonStream(Writable.toWeb(running.stdin), Readable.toWeb(running.stdout));
	await app
		.connectWith(stream, async (context) => {
			const ask = async (method, schema, params) => {
				const answer = await context.request(method, params);
				return schema ? check(schema, answer, method) : answer;
			};
			const refused = async (method, params) => {
				try {
					await context.request(method, params);
				} catch (error) {
					if (error instanceof RequestError) return { code: error.code, message: error.message };
					return { code: null, message: String(error) };
				}
				return { code: 0, message: "it was taken" };
			};
			const greeting = await ask(methods.agent.initialize, zod.zInitializeResponse, {
				protocolVersion: PROTOCOL_VERSION,
				clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
				clientInfo: { name: "interop", version: "1.0.0" },
			});
			told.version = greeting.protocolVersion;
			const prompt = (sessionId, text) =>
				ask(methods.agent.session.prompt, zod.zPromptResponse, { sessionId, prompt: [{ type: "text", text }] });
			/** The first update for which this holds. */
			const update = (holds) =>
				new Promise((resolve) => waiting.push((params) => holds(params) && (resolve(params), true)));
			const cancel = (sessionId) => context.notify(methods.agent.session.cancel, { sessionId });
			/** Closes stdin, and reads to the end. */
			const hangUp = async () => {
				hungUp = true;
				running.stdin.end();
				await ended;
			};
			await work({ ask, refused, prompt, update, cancel, hangUp, told });
		})
		// Once the agent has ended, so has the connection.
		.catch((error) => hungUp || came.faults.push(`the editor failed: ${error?.stack ?? error}`));
	running.stdin.end();
	told.code = await ended;
	came.days.push(told);
	return told;
}

let first;
await day(async ({ ask, refused, prompt, update, told, cancel }) => {
	const open = async (mcpServers) =>
		(await ask(methods.agent.session.new, zod.zNewSessionResponse, { cwd, mcpServers })).sessionId;
	const [one, two] = await Promise.all([open([server]), open([])]);
	first = told.first = one;
	told.second = two;
	// Both at once: the one asks for permission, the other never ends by itself.
	const begun = update((params) => params.sessionId === two && params.update.sessionUpdate === "agent_message_chunk");
	const endless = prompt(two, "go on for ever");
	const made = prompt(one, "make it");
	await begun;
	told.meanwhile = await refused(methods.agent.session.prompt, { sessionId: two, prompt: [{ type: "text", text: "and now" }] });
	told.made = await made;
	await cancel(two);
	told.cancelled = await endless;
	told.built = await prompt(one, "build");
	told.wrong = [
		await refused(methods.agent.session.new, { cwd: "here", mcpServers: [] }),
		await refused(methods.agent.session.new, { cwd, mcpServers: [{ name: "x", command: 3, args: [], env: [] }] }),
		await refused(methods.agent.session.prompt, { sessionId: "nobody", prompt: [] }),
		await refused(methods.agent.session.prompt, { sessionId: one, prompt: [{ type: "audio", mimeType: "audio/wav", data: "" }] }),
		await refused(methods.agent.session.load, { sessionId: "nobody", cwd, mcpServers: [] }),
		await refused(methods.agent.session.setMode, { sessionId: one, modeId: "novel" }),
		await refused("session/fly", {}),
	];
});
await day(async ({ ask, prompt, update, hangUp, told }) => {
	const listed = await ask(methods.agent.session.list, zod.zListSessionsResponse, { cwd });
	told.listed = listed.sessions.map((session) => [session.sessionId, session.title]);
	await ask(methods.agent.session.load, zod.zLoadSessionResponse, { sessionId: first, cwd, mcpServers: [server] });
	told.repeated = [...(told.updates[first] ?? [])];
	told.updates = {};
	told.remembered = await prompt(first, "and now");
	// Stdin is closed in the middle of this one.
	const begun = update((params) => params.update.sessionUpdate === "agent_message_chunk");
	prompt(first, "go on for ever").catch(() => {});
	await begun;
	await hangUp();
});
scripted.stdin.end();
console.log(JSON.stringify(came));
