// For tests of the console's modules without a browser: what they read of one when they are loaded, and the packages
// of `vendor/` by the names of the import map.
import { register } from "node:module";

const stored = new Map([["kho.language", '"en"']]);
const browser = {
  location: { hash: "", search: "", pathname: "/console/" },
  history: { replaceState() {} },
  document: { documentElement: { dataset: {} }, hidden: false, addEventListener() {}, removeEventListener() {} },
  navigator: { languages: [] },
  localStorage: {
    getItem: (name) => stored.get(name) ?? null,
    setItem: (name, value) => stored.set(name, value),
    removeItem: (name) => stored.delete(name),
  },
  addEventListener() {},
  removeEventListener() {},
};
// Some of these are read-only in Node.js.
for (const [name, value] of Object.entries(browser)) Object.defineProperty(globalThis, name, { value });
register("./vendored_packages.mjs", import.meta.url);
