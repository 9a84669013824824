// An agent of the AI SDK, on the provider that the first argument names.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";

const { KHO_URL, MODEL_URL } = process.env;
const [apiKey, baseURL] = ["none", `${MODEL_URL}/v1`];
const models = {
  chat: () => createOpenAI({ apiKey, baseURL }).chat("a-model"),
  responses: () => createOpenAI({ apiKey, baseURL }).responses("a-model"),
  anthropic: () => createAnthropic({ apiKey, baseURL })("a-model"),
  gemini: () => createGoogleGenerativeAI({ apiKey, baseURL })("a-model"),
};
const client = await createMCPClient({ transport: { type: "http", url: KHO_URL } });
const model = models[process.argv[2]]();
const isStepCount = ai.isStepCount ?? ai.stepCountIs; // its name in version 6
await ai.generateText({ model, tools: await client.tools(), prompt: "Do the plan.", stopWhen: isStepCount(30) });
await client.close();
