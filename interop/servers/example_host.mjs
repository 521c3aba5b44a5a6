// Plays the user of an example host: `example_host.mjs SCRIPT.json`. Starts the host, takes the MCP server from its first
// line, starts the agents one after another, answers what the host asks on the way, ends it, and prints what came of all.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const { host, agents, answers, end } = JSON.parse(readFileSync(process.argv[2], "utf8"));

function started([program, ...args], stdin) {
  const child = spawn(program, args, { stdio: [stdin, "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) {
    child[stream].setEncoding("utf8").on("data", (text) => (output[stream] += text));
  }
  const ended = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code: code ?? signal, ...output }));
  });
  return { child, ended };
}

const { child, ended } = started(host, "pipe");
child.stdin.on("error", () => {});
createInterface({ input: child.stderr }).on("line", (line) => {
  if (line.endsWith("[y/n]")) child.stdin.write(`${answers.shift() ?? "n"}\n`);
});
const line = await Promise.race([
  new Promise((resolve) => createInterface({ input: child.stdout }).once("line", resolve)),
  ended.then(({ stderr }) => Promise.reject(new Error(`the host has ended: ${stderr}`))),
]);
const [{ url }] = Object.values(JSON.parse(line).mcpServers);
const came = [];
for (const words of agents) {
  came.push(await started(words.map((word) => word.replaceAll("{url}", url)), "ignore").ended);
}
if (end === "stdin") child.stdin.end();
else child.kill(end);
process.stdout.write(JSON.stringify({ agents: came, host: await ended, url }));
