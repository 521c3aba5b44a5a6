// Drives pi over its RPC mode: prompts one after the other, then the end of stdin. Prints what came of it as JSON.
// node pi.mjs FILE, where FILE has: model, the command of a scripted model, which prints its address; command, cwd, env;
// prompts, for each what is said, whether it starts a run, and the kind of event at which that is aborted, or at which the
// programs that pi started are killed, if they are; or another command.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

const { model, command, cwd, env, prompts } = JSON.parse(readFileSync(process.argv[2], "utf8"));
// The end of its stdin is its end.
const scripted = spawn(model[0], model.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const address = await new Promise((resolve) => scripted.stdout.once("data", (line) => resolve(String(line).trim())));
const [program, ...words] = command;
const pi = spawn(program, words, { cwd, env: { ...env, OPENAI_BASE_URL: `${address}/v1` }, stdio: ["pipe", "pipe", "pipe"] });
const came = { notices: [], answers: [], messages: [], errors: [], stderr: "", code: null };
const waiting = new Map();
let settled = () => {};
let abortAt;
let killAt;

pi.stderr.on("data", (chunk) => {
	came.stderr = (came.stderr + chunk).slice(-20000);
});

function take(record) {
	if (record.type === "response") {
		waiting.get(record.id)?.(record);
		waiting.delete(record.id);
		return;
	}
	if (abortAt !== undefined && record.type === abortAt) {
		abortAt = undefined;
		pi.stdin.write(`${JSON.stringify({ type: "abort" })}\n`);
	}
	if (killAt !== undefined && record.type === killAt) {
		killAt = undefined;
		const children = readFileSync(`/proc/${pi.pid}/task/${pi.pid}/children`, "utf8").split(" ").filter((id) => id.trim());
		for (const child of children) process.kill(Number(child), "SIGKILL");
	}
	if (record.type === "agent_settled") settled();
	else if (record.type === "message_end") came.messages.push(record.message);
	else if (record.type === "extension_error") came.errors.push(record.error);
	else if (record.type === "extension_ui_request" && record.method === "notify") {
		came.notices.push({ level: record.notifyType ?? "info", text: record.message });
	}
}

let rest = Buffer.alloc(0);
pi.stdout.on("data", (chunk) => {
	rest = Buffer.concat([rest, chunk]);
	for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
		const line = rest.subarray(0, end).toString("utf8");
		rest = rest.subarray(end + 1);
		if (line.trim()) take(JSON.parse(line));
	}
});

function ask(id, type, more) {
	return new Promise((resolve) => {
		waiting.set(id, resolve);
		pi.stdin.write(`${JSON.stringify({ id, type, ...more })}\n`);
	});
}

const ended = new Promise((resolve) => {
	pi.on("error", (error) => resolve(String(error)));
	pi.on("close", (code, signal) => resolve(signal ?? code));
});
const work = (async () => {
	let number = 0;
	for (const { message, run, abort, kill, command } of prompts) {
		if (command) {
			const { type, ...more } = command;
			came.answers.push(await ask(`command-${++number}`, type, more));
			continue;
		}
		abortAt = abort;
		killAt = kill;
		const over = new Promise((resolve) => {
			settled = resolve;
		});
		const response = await ask(`prompt-${++number}`, "prompt", { message });
		if (!response.success) throw new Error(`pi refused a prompt: ${response.error}`);
		if (run) await over;
	}
	const state = await ask("state", "get_state", {});
	came.session = state.data?.sessionFile;
	pi.stdin.end();
})();
await Promise.race([work, ended]);
came.code = await ended;
scripted.stdin.end();
process.stdout.write(JSON.stringify(came));
