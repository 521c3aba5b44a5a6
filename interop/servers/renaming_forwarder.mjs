// An HTTP forwarder before a bridge that takes the prefix from the names of its tools and puts it back in calls, for peers
// that call tools of given names. Of everything else it changes nothing but its own address in Host.
import { createServer, request } from "node:http";

/** Serves `target` at `/mcp` of the port; the names of its tools lose `prefix`. */
export function forward(port, target, prefix) {
  const { hostname, port: targetPort, pathname, host } = new URL(target);
  const own = [`127.0.0.1:${port}`, `localhost:${port}`];

  const server = createServer(async (incoming, outgoing) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const headers = { ...incoming.headers };
    const body = called(Buffer.concat(chunks), headers, prefix);
    if (own.includes(headers.host)) headers.host = host;
    if (headers["content-length"] !== undefined) headers["content-length"] = String(body.length);
    const path = incoming.url === "/mcp" ? pathname : incoming.url;
    const onward = request({ hostname, port: targetPort, path, method: incoming.method, headers, agent: false });
    outgoing.on("close", () => onward.destroy());
    onward.on("error", () => outgoing.destroy());
    onward.on("response", (answer) => answered(answer, outgoing, prefix));
    onward.end(body);
  });
  server.keepAliveTimeout = 0;
  server.listen(port, "127.0.0.1");
}

/** A call's tool gets the prefix, in the body and in the header that repeats it. */
function called(body, headers, prefix) {
  let message;
  try {
    message = JSON.parse(body);
  } catch {
    return body;
  }
  if (message?.method !== "tools/call" || typeof message.params?.name !== "string") return body;
  if (headers["mcp-name"] !== undefined) headers["mcp-name"] = prefix + headers["mcp-name"];
  const params = { ...message.params, name: prefix + message.params.name };
  return Buffer.from(JSON.stringify({ ...message, params }));
}

function answered(answer, outgoing, prefix) {
  const headers = { ...answer.headers };
  const type = headers["content-type"] ?? "";
  delete headers["content-length"];
  outgoing.writeHead(answer.statusCode, headers);
  outgoing.flushHeaders();
  const isStream = type.startsWith("text/event-stream");
  let rest = "";
  answer.setEncoding("utf8");
  answer.on("data", (text) => {
    rest += text;
    const end = isStream ? rest.lastIndexOf("\n") + 1 : 0;
    if (end > 0) outgoing.write(rest.slice(0, end).replace(/^(data: ?)(.*)$/gm, (_, head, data) => head + listed(data, prefix)));
    rest = rest.slice(end);
  });
  answer.on("end", () => outgoing.end(isStream ? rest : listed(rest, prefix)));
  answer.on("error", () => outgoing.destroy());
}

/** A list of tools loses the prefix; any other text stays as it is. */
function listed(text, prefix) {
  if (!text.includes('"tools"')) return text;
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return text;
  }
  const tools = message?.result?.tools;
  if (!Array.isArray(tools)) return text;
  for (const tool of tools) {
    if (tool.name.startsWith(prefix)) tool.name = tool.name.slice(prefix.length);
  }
  return JSON.stringify(message);
}
