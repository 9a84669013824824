// MCP's TypeScript SDK, without a model: lists the tools, and makes the calls of the plan in its folder.
// It starts the command that its arguments name, if there is one, and speaks with it over STDIO.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "kho-clients", version: "1" });
const [command, ...args] = process.argv.slice(2);
await client.connect(
  command
    ? new StdioClientTransport({ command, args, env: process.env })
    : new StreamableHTTPClientTransport(new URL(process.env.KHO_URL)),
);
const { tools } = await client.listTools();
const results = [];
for (const call of JSON.parse(readFileSync("plan.json", "utf8"))) {
  const result = await client.callTool(call).catch((error) => ({ content: [{ text: String(error) }] }));
  results.push(result.content.map((part) => part.text).join(""));
}
await client.close();
console.log(JSON.stringify({ tools, results }));
