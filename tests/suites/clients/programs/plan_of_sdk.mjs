// MCP's TypeScript SDK, without a model: lists the tools, and makes the calls of the plan on its standard input.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "kho-clients", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.KHO_URL)));
const { tools } = await client.listTools();
const results = [];
for (const { name, arguments: args } of JSON.parse(readFileSync(0, "utf8"))) {
  const result = await client
    .callTool({ name, arguments: args })
    .catch((error) => ({ content: [{ text: String(error) }] }));
  results.push(result.content.map((part) => part.text).join(""));
}
await client.close();
console.log(JSON.stringify({ tools, results }));
