// Texts in two languages: equal keys, none missing and none unused.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import * as i18n from "../../../../infra/clients/console/i18n.js";
import { PAGES } from "../../../../infra/clients/console/pages.js";

const CONSOLE = new URL("../../../../infra/clients/console/", import.meta.url);
const [ENGLISH, VIETNAMESE] = [await texts("en"), await texts("vi")];

// Return the texts of a language by key, such as "app.pages.ask". One in forms, chosen by a number, is an object.
async function texts(code) {
  const all = new Map();
  const walk = (value, key) => {
    if (typeof value === "string" || value.other !== undefined) all.set(key, value);
    else for (const [name, each] of Object.entries(value)) walk(each, `${key}.${name}`);
  };
  for (const file of readdirSync(new URL(`strings/${code}/`, CONSOLE))) {
    walk((await import(new URL(`strings/${code}/${file}`, CONSOLE))).default, file.replace(".js", ""));
  }
  return all;
}

// Return the modules' keys: literals, and the beginnings of those that end with variables, as patterns.
function usedKeys() {
  const names = readdirSync(new URL("strings/en/", CONSOLE)).map((file) => file.replace(".js", ""));
  const key = new RegExp(`["\`]((?:${names.join("|")})\\.(?:\\w|\\.|\\$\\{[^{}]*\\})+)["\`]`, "g");
  const files = readdirSync(CONSOLE, { recursive: true }).filter((name) => /^(?!vendor|strings).*\.js$/.test(name));
  const sources = files.map((name) => readFileSync(new URL(name, CONSOLE), "utf-8"));
  return new Set(sources.flatMap((source) => [...source.matchAll(key)].map(([, name]) => name)));
}

const pattern = (key) => new RegExp(`^${key.replaceAll(".", "\\.").replace(/\$\{[^}]*\}/g, "[^.]+")}$`);

test("both languages have the same keys, with the same variables", () => {
  const described = (all) =>
    [...all].map(([key, text]) => `${key} ${[...new Set((text.other ?? text).match(/\{\w+\}/g))].sort()}`).sort();
  assert.deepEqual(described(VIETNAMESE), described(ENGLISH));
});

test("each key that a module names has a text", () => {
  const keys = [...usedKeys()];
  assert.ok(keys.length > 300);
  const all = [...ENGLISH.keys()];
  assert.deepEqual(
    keys.filter((key) => !all.some((each) => pattern(key).test(each))),
    [],
  );
});

test("each text is named by a module", () => {
  const patterns = [...usedKeys()].map(pattern);
  assert.deepEqual(
    [...ENGLISH.keys()].filter((key) => !patterns.some((each) => each.test(key))),
    [],
  );
});

test("each page is a module with a name and texts of its own", () => {
  const modules = readdirSync(new URL("pages/", CONSOLE)).map((file) => file.replace(".js", ""));
  assert.deepEqual(PAGES.toSorted(), modules.sort());
  assert.deepEqual(
    PAGES.filter((name) => !ENGLISH.has(`app.pages.${name}`) || !ENGLISH.has(`${name}.title`)),
    [],
  );
});

test("variables are replaced, numbers as the language writes them, and unknown keys are shown", async () => {
  await i18n.loadStrings("app");
  await i18n.loadStrings("documents");
  assert.equal(i18n.t("documents.revision", { revision: 1234 }), "revision 1,234");
  assert.equal(i18n.t("documents.revision"), "revision {revision}");
  assert.equal(i18n.t("app.absent"), "app.absent");
  assert.equal(i18n.hasText("app.pages.ask"), true);
  await i18n.setLanguage("vi");
  assert.match(i18n.t("documents.revision", { revision: 1234 }), /1\.234/);
  await i18n.setLanguage("en");
});

test("a time that is none is shown as it is, and an age in the largest unit", () => {
  assert.equal(i18n.formatTime("soon"), "soon");
  assert.equal(i18n.formatTime(undefined), "");
  assert.equal(i18n.formatTime(1_000_000_000), i18n.formatTime("2001-09-09T01:46:40Z"));
  const ago = (seconds) => i18n.formatAge(new Date(Date.now() - seconds * 1000).toISOString());
  assert.deepEqual([ago(90_000), ago(7260), ago(160)], ["yesterday", "2 hours ago", "3 minutes ago"]);
  assert.equal(i18n.formatAge("never"), "");
});
