// A user who signs in to servers with `toolway`, at a shell: `sign_in.mjs PLAY.json`. The play has the commands of the
// protected server, of the browser and of toolway, and the steps in order:
//   { name, run: [words] }                 runs toolway to its end
//   { name, together: N, run: [words] }    the same so many times at once; what came is a list
//   { name, login: [words] }               runs it too; the address that it shows is opened in the browser
//   { name, expire: true }                 the server takes no token any more that it saw
//   { name, show: STEP }                   sends the token that STEP printed to the server by hand
// It prints what came of each, and the journal of the server, as JSON.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createInterface } from "node:readline";

const play = JSON.parse(readFileSync(process.argv[2], "utf8"));
const ADDRESS = /http:\/\/127\.0\.0\.1:\d+\/auth\?\S+/;

const [program, ...words] = play.server;
const server = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"] });
let complaints = "";
server.stderr.on("data", (data) => (complaints += data));
const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
const first = await lines.next();
if (first.done) throw new Error(`the server did not start: ${complaints}`);
const { resource, machine, document } = JSON.parse(first.value);

writeFileSync(
  play.config,
  JSON.stringify({
    mcpServers: {
      person: { url: resource },
      machine: {
        url: resource,
        auth: { CLIENT_ID: machine.id, CLIENT_SECRET: "${env:MACHINE_SECRET}", grantType: "client_credentials" },
      },
      document: { url: resource, auth: { CLIENT_ID: document, scopes: ["mcp"] } },
    },
  }),
);

function start([program, ...words]) {
  const child = spawn(program, words, {
    cwd: play.work,
    env: { ...play.env, MACHINE_SECRET: machine.secret },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const came = { code: null, stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) child[stream].setEncoding("utf8").on("data", (data) => (came[stream] += data));
  const ended = once(child, "close").then(([code]) => Object.assign(came, { code }));
  return { child, came, ended };
}

async function login(command) {
  const { child, came, ended } = start(command);
  let browser;
  const look = () => {
    const address = ADDRESS.exec(came.stdout + came.stderr)?.[0];
    if (address && !browser) browser = start([...play.browser, address]).ended;
  };
  child.stdout.on("data", look);
  child.stderr.on("data", look);
  await ended;
  const visit = await browser;
  return { ...came, visit: visit && JSON.parse(visit.stdout || JSON.stringify(visit.stderr)) };
}

async function show(token) {
  const answer = await fetch(resource, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami" } }),
  });
  return { status: answer.status };
}

const steps = {};
for (const step of play.steps) {
  const run = () => start([play.toolway, ...step.run]).ended;
  if (step.together) steps[step.name] = await Promise.all(Array.from({ length: step.together }, run));
  else if (step.run) steps[step.name] = await run();
  if (step.login) steps[step.name] = await login([play.toolway, ...step.login]);
  if (step.show) steps[step.name] = await show(steps[step.show].stdout.trim());
  if (step.expire) {
    server.stdin.write("expire\n");
    steps[step.name] = (await lines.next()).value;
  }
}
server.stdin.end();
await once(server, "close");
const journal = readFileSync(play.journal, "utf8").trim().split("\n").map((line) => JSON.parse(line));
process.stdout.write(JSON.stringify({ resource, secret: machine.secret, steps, journal, complaints }) + "\n");
