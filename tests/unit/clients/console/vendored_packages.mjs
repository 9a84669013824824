// A hook of Node.js that finds the console's packages in `vendor/`.
import { readFileSync } from "node:fs";

const VENDOR = new URL("../../../../infra/clients/console/vendor/", import.meta.url);
const MODULES = JSON.parse(readFileSync(new URL("modules.json", VENDOR), "utf-8"));

export function resolve(name, context, next) {
  if (!Object.hasOwn(MODULES, name)) return next(name, context);
  return { url: new URL(MODULES[name], VENDOR).href, format: "module", shortCircuit: true };
}
