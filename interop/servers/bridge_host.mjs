// A scripted host of `toolway bridge`, after docs/host-protocol.md: `bridge_host.mjs SCRIPT.json`, with Node.js 24.
// It declares tools whose behaviour the script says, opens runs, starts agents at the address of a run, and prints what
// it has heard as JSON. With `forward`, a port, it starts no agents and serves its run there until it is killed.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { forward } from "./renaming_forwarder.mjs";

const WAIT_MS = 20_000;

/** Numbers that JavaScript would round stay as they are written. */
const exact = (text) =>
  JSON.parse(text, (_, value, { source }) =>
    typeof value === "number" && String(value) !== source ? JSON.rawJSON(source) : value,
  );

/** Lines end at "\n" only: `readline` would end them at U+2028 too, which JSON may have in its texts. */
function eachLine(stream, take) {
  let rest = "";
  stream.setEncoding("utf8").on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    lines.forEach(take);
  });
}

const script = exact(readFileSync(process.argv[2], "utf8"));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(holds) {
  for (const end = Date.now() + WAIT_MS; !holds() && Date.now() < end; ) await pause(20);
}

class Bridge {
  closing = null;
  #waiting = new Map();
  #last = 0;

  constructor([program, ...args], handlers) {
    this.process = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
    this.process.stdin.on("error", () => {});
    eachLine(this.process.stdout, (line) => {
      const message = exact(line);
      if (message.method === "bridge/closing") this.closing = message.params.reason;
      if (message.method) return handlers[message.method]?.(message.params);
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error) waiting.reject(new Error(`${message.error.code} ${message.error.message}`));
      else waiting.resolve(message.result);
    });
    this.ended = new Promise((resolve) => this.process.on("close", (code) => resolve(code)));
    this.ended.then(() => this.#waiting.forEach(({ reject }) => reject(new Error("the bridge has ended"))));
  }

  ask(method, params = {}) {
    const id = ++this.#last;
    this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }
}

const open = new Map(); // call id -> what stops it
const gathered = new Map(); // tool -> calls that wait for each other
const runs = new Map(); // the script's name -> { id, server, session, facts }
const sessions = new Set(["main"]);
const heard = []; // one entry for each call
let visit = null;

/** The call's answer, as its tool's behaviour has it. */
async function perform(does, call, stop) {
  for (const progress of does.progress ?? []) await bridge.ask("call/progress", { call: call.call, ...progress });
  if (does.stuck && !stop.aborted) await new Promise((resolve) => stop.addEventListener("abort", resolve));
  if (does.gather) {
    const waiting = gathered.get(call.tool) ?? [];
    gathered.set(call.tool, waiting);
    const ready = new Promise((resolve) => waiting.push(resolve));
    if (waiting.length === does.gather) for (const resolve of waiting.splice(0).reverse()) resolve();
    await ready;
  }
  if (does.closes) await close(does.closes, "the conversation is over");
  if (does.leaves) await leave();
  if (does.removes) await declare(visit.session ?? "main", (tool) => tool.name !== does.removes);
  if (does.blocks) return { content: does.blocks, isError: true };
  if (does.echo) return { content: [{ type: "text", text: JSON.stringify(call.arguments) }] };
  return { content: does.content ?? [], isError: does.isError ?? false };
}

async function started(call) {
  const entry = { visit: visit?.name, tool: call.tool, call: call.call, cancelled: [] };
  heard.push(entry);
  const stop = new AbortController();
  open.set(call.call, { stop, entry });
  const { does } = script.tools.find((tool) => tool.name === call.tool);
  if (does.fails) {
    entry.unasked = true;
    entry.settled = (await bridge.ask("call/fail", { call: call.call, reason: does.fails })).settled;
    return;
  }
  const answer = await perform(does, call, stop.signal);
  if (does.leaves) {
    Object.assign(entry, { unasked: true, settled: false });
    return;
  }
  entry.admitted = (await bridge.ask("call/admit", { call: call.call })).admitted;
  entry.settled = (await bridge.ask("call/result", { call: call.call, details: undefined, ...answer })).settled;
  // Nothing may come of a second answer.
  entry.again = (await bridge.ask("call/result", { call: call.call, content: "again" })).settled;
}

const bridge = new Bridge(script.bridge, {
  "calls/started": ({ calls }) => calls.forEach((call) => started(call).catch(failed)),
  "call/cancelled": ({ call, reason }) => {
    const { stop, entry } = open.get(call);
    entry.cancelled.push(reason);
    stop.abort();
  },
});

function failed(error) {
  process.stderr.write(`host: ${error.stack}\n`);
  process.exitCode = 1;
  bridge.process.stdin.end();
}

function declare(session, keep = () => true) {
  const tools = script.tools.filter(keep).map(({ does, ...tool }) => tool);
  return bridge.ask("tools/declare", { session, tools });
}

/** The run of that name, opened when it is asked for the first time. */
async function run(name, session) {
  if (!sessions.has(session)) {
    sessions.add(session);
    await bridge.ask("session/open", { session });
  }
  if (!runs.has(name)) {
    await bridge.ask("settings/declare", { session, settings: script.sessions?.[session] ?? {} });
    const { signature } = await declare(session);
    const opened = await bridge.ask("run/open", { session });
    if (opened.signature !== signature) throw new Error("another signature than declared");
    runs.set(name, { ...opened, facts: null });
  }
  return runs.get(name);
}

async function close(name, reason) {
  const closed = runs.get(name);
  if (!closed || closed.facts) return;
  closed.facts = await bridge.ask("run/facts", { run: closed.run });
  await bridge.ask("run/close", { run: closed.run, reason });
}

/** The host goes in the midst of everything: it only closes what it writes to. */
async function leave() {
  for (const open of runs.values()) open.facts ??= await bridge.ask("run/facts", { run: open.run });
  bridge.process.stdin.end();
  await bridge.ended;
}

/** An agent's command, to its end. */
function agent(words, url) {
  const [program, ...args] = words.map((word) => word.replaceAll("{url}", url));
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) {
    child[stream].setEncoding("utf8").on("data", (text) => (output[stream] += text));
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...output }));
  });
}

async function main() {
  const host = { name: "interop", version: "1.0.0" };
  const { profile } = await bridge.ask("initialize", { protocolVersion: 1, host });
  if (script.forward) {
    const { server } = await run("forwarded", "main");
    forward(script.forward, server.url, profile.toolPrefix);
    return;
  }
  const visits = [];
  for (visit of script.visits) {
    const { server } = await run(visit.run, visit.session ?? "main");
    // Agents of one visit come at the same time.
    const agents = await Promise.all(visit.agents.map((words) => agent(words, server.url)));
    const own = () => heard.filter((entry) => entry.visit === visit.name);
    await until(() => own().every((entry) => entry.settled !== undefined));
    visits.push({ name: visit.name, agents });
  }
  for (const name of runs.keys()) await close(name, "the agent is gone");
  if (!bridge.process.stdin.writableEnded) {
    await bridge.ask("shutdown");
    bridge.process.stdin.end();
  }
  const code = await bridge.ended;
  const known = ({ facts, hidden, deadlines }) => ({ ...facts, hidden, deadlines });
  const facts = Object.fromEntries([...runs].map(([name, opened]) => [name, known(opened)]));
  process.stdout.write(JSON.stringify({ visits, heard, facts, code, closing: bridge.closing }));
}

main().catch(failed);
