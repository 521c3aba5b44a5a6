// Runs a scenario step by step over one client and returns the transcript.
// It knows no SDK: `ops` is the adapter of one client generation.

const DEADLINE_MS = 30_000;
const RELIST_MS = 500;
const PROGRESS = "notifications/progress";

/** Messages the server sent by itself, in the order of arrival. */
export class Inbox {
  messages = [];
  progress = [];
  waiters = [];

  add(message) {
    if (message.method === undefined) return;
    if (message.method === PROGRESS) {
      // Belongs to its call. A server may report on after a cancellation, so this is no event.
      const { progressToken, ...update } = message.params;
      this.progress.push({ token: progressToken, update });
    } else {
      this.messages.push({ method: message.method, params: message.params ?? null });
    }
    this.waiters = this.waiters.filter((waiter) => !waiter());
  }

  count(method) {
    if (method === PROGRESS) return this.progress.length;
    return this.messages.filter((message) => message.method === method).length;
  }

  wait(method, count, limit = DEADLINE_MS) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${count} x ${method} within ${limit} ms`)), limit);
      const check = () => {
        if (this.count(method) < count) return false;
        clearTimeout(timer);
        resolve({ seen: method });
        return true;
      };
      if (!check()) this.waiters.push(check);
    });
  }
}

async function all(list, member) {
  const items = [];
  let cursor;
  do {
    const page = await list(cursor === undefined ? {} : { cursor });
    items.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { [member]: items };
}

/** The list; with `until`, asked again at every change (or now and then) until it has these names. */
async function listed(step, ops, inbox) {
  const changed = `notifications/${step.what}/list_changed`;
  const deadline = Date.now() + DEADLINE_MS;
  for (;;) {
    const changes = inbox.count(changed);
    const list = await all(ops.list[step.what], step.what);
    const names = new Set(list[step.what].map((item) => item.name));
    if ((step.until ?? []).every((name) => names.has(name)) || Date.now() > deadline) return list;
    await inbox.wait(changed, changes + 1, RELIST_MS).catch(() => {});
  }
}

async function cancelled(step, ops, inbox) {
  const abort = new AbortController();
  const before = inbox.count(PROGRESS);
  const call = ops.call(step.tool, step.args ?? {}, { signal: abort.signal, onprogress: () => {} });
  const outcome = call.then(
    () => ({ finished: true }),
    () => ({ finished: false }),
  );
  await inbox.wait(PROGRESS, before + 1);
  abort.abort("no longer wanted");
  return outcome;
}

async function reporting(step, ops, inbox) {
  const known = new Set(inbox.progress.map(({ token }) => token));
  const result = await ops.call(step.tool, step.args ?? {}, { onprogress: () => {} });
  const own = inbox.progress.filter(({ token }) => !known.has(token));
  return { result, progress: own.map(({ update }) => update) };
}

async function perform(step, ops, inbox) {
  switch (step.do) {
    case "list":
      return listed(step, ops, inbox);
    case "call":
      return step.progress ? reporting(step, ops, inbox) : ops.call(step.tool, step.args ?? {}, {});
    case "calls":
      return Promise.all(step.calls.map((call) => ops.call(call.tool, call.args ?? {}, {})));
    case "read":
      return ops.read(step.uri);
    case "prompt":
      return ops.prompt(step.name, step.args);
    case "complete":
      return ops.complete({ ref: step.ref, argument: step.argument, context: step.context });
    case "level":
      return ops.level(step.level);
    case "subscribe":
      return ops.subscribe(step.uri);
    case "unsubscribe":
      return ops.unsubscribe(step.uri);
    case "ping":
      return ops.ping();
    case "roots_changed":
      return ops.rootsChanged();
    case "wait":
      return inbox.wait(step.method, step.count ?? 1);
    case "cancel":
      return cancelled(step, ops, inbox);
    default:
      throw new Error(`unknown step ${step.do}`);
  }
}

function failure(error) {
  return { code: error.code ?? null, message: String(error.message ?? error), data: error.data ?? null };
}

export async function run(scenario, server, ops, inbox) {
  const steps = [];
  for (const step of scenario.steps) {
    try {
      steps.push({ result: (await perform(step, ops, inbox)) ?? null });
    } catch (error) {
      steps.push({ error: failure(error) });
    }
  }
  return { server, steps, events: inbox.messages };
}

/** Whether a session cannot be ended because there is no server any more, as a step of the scenario says. */
export function isGone(error, scenario) {
  const codes = [error.code, error.data?.status, error.cause?.code];
  const known = [410, "ECONNREFUSED", "ECONNRESET", "UND_ERR_SOCKET"];
  return scenario.steps.some((step) => step.gone) && codes.some((code) => known.includes(code));
}

/** What this client answers when the server asks it something: always the same. */
export const answers = {
  roots: { roots: [{ uri: "file:///tmp/interop-root", name: "interop" }] },
  sampling: {
    model: "interop-model",
    role: "assistant",
    stopReason: "endTurn",
    content: { type: "text", text: "sampled \u00e9\u4e16\ud83d\ude00" },
  },
  elicitation(params) {
    const content = {};
    for (const [name, schema] of Object.entries(params.requestedSchema?.properties ?? {})) {
      if (schema.default !== undefined) content[name] = schema.default;
      else if (schema.enum !== undefined) content[name] = schema.enum[0];
      else if (schema.type === "boolean") content[name] = true;
      else if (schema.type === "integer" || schema.type === "number") content[name] = schema.minimum ?? 7;
      else if (schema.type === "string" && schema.format === undefined) content[name] = "elicited";
    }
    return { action: "accept", content };
  },
};

export const capabilities = {
  roots: { listChanged: true },
  sampling: {},
  elicitation: { form: {}, url: {} },
};

/** argv: SCENARIO.json TARGET-as-JSON MODE */
export function argumentsOf(argv, readFileSync) {
  const [scenario, target, mode] = argv.slice(2);
  return { scenario: JSON.parse(readFileSync(scenario, "utf8")), target: JSON.parse(target), mode: mode ?? "legacy" };
}
