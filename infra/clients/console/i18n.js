// Languages: t("page.key", {name}) returns the text of strings/<language>/<page>.js; tables are loaded when needed.
import { signal } from "@preact/signals";
import { read, write } from "./storage.js";

export const LANGUAGES = { en: "English", vi: "Tiếng Việt" };
export const language = signal(initialLanguage());
const tables = signal({});
const names = new Set();

// Load the strings of a page, or of "app", in the current language. All languages have the same keys.
export async function loadStrings(name) {
  names.add(name);
  await loadTable(language.value, name);
}

// Switch to another language, once all strings that are in use are there.
export async function setLanguage(code) {
  await Promise.all([...names].map((name) => loadTable(code, name)));
  write("language", code);
  language.value = code;
  document.documentElement.lang = code;
}

// Return a text. `{name}` in it is replaced by vars.name. A text in forms is chosen by vars.count.
export function t(key, vars = {}) {
  const [name, ...path] = key.split(".");
  let text = tables.value[`${language.value}/${name}`];
  for (const part of path) text = text?.[part];
  if (typeof text === "object" && text?.other !== undefined) {
    text = text[new Intl.PluralRules(language.value).select(vars.count ?? 0)] ?? text.other;
  }
  if (typeof text !== "string") return key;
  return text.replace(/\{(\w+)\}/g, (mark, variable) => {
    const value = vars[variable];
    if (value === undefined) return mark;
    return typeof value === "number" ? formatNumber(value) : String(value);
  });
}

// Return true if there is a text of this key.
export function hasText(key) {
  return t(key) !== key;
}

export function formatNumber(number, options) {
  return new Intl.NumberFormat(language.value, options).format(number);
}

// Return a time of the API (ISO 8601, or seconds since 1970) in the reader's zone.
export function formatTime(time) {
  const date = typeof time === "number" ? new Date(time * 1000) : new Date(time);
  if (Number.isNaN(date.getTime())) return String(time ?? "");
  return new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "short" }).format(date);
}

// Return how long ago a time was, such as "3 minutes ago".
export function formatAge(time) {
  const seconds = (new Date(time).getTime() - Date.now()) / 1000;
  if (Number.isNaN(seconds)) return "";
  /** @type {[Intl.RelativeTimeFormatUnit, number][]} */
  const units = [
    ["day", 86_400],
    ["hour", 3600],
    ["minute", 60],
    ["second", 1],
  ];
  const [unit, length] = units.find(([, each]) => Math.abs(seconds) >= each) ?? units.at(-1);
  return new Intl.RelativeTimeFormat(language.value, { numeric: "auto" }).format(Math.round(seconds / length), unit);
}

async function loadTable(code, name) {
  const id = `${code}/${name}`;
  if (tables.value[id]) return;
  const table = (await import(`./strings/${code}/${name}.js`)).default;
  tables.value = { ...tables.value, [id]: table };
}

function initialLanguage() {
  const wanted = [read("language"), ...(navigator.languages ?? [])].filter(Boolean);
  const code = wanted.map((each) => each.slice(0, 2).toLowerCase()).find((each) => each in LANGUAGES) ?? "en";
  document.documentElement.lang = code;
  return code;
}
