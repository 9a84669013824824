// Schemas that devices send: what a form cannot show is left out, and texts are made visible.
import { visible } from "./visible_text.js";

const IS_OF = {
  boolean: (value) => typeof value === "boolean",
  integer: Number.isInteger,
  number: Number.isFinite,
  string: (value) => typeof value === "string",
  array: Array.isArray,
  object: isObject,
};
const DEPTH = 4;

// Return a schema of an object that forms can show.
export function safeSchema(schema, depth = DEPTH) {
  const properties = isObject(schema?.properties) ? Object.entries(schema.properties) : [];
  const required = Array.isArray(schema?.required) ? schema.required.filter((each) => typeof each === "string") : [];
  return {
    type: "object",
    properties: Object.fromEntries(
      properties.map(([name, field]) => [name, { title: visible(name), ...safeField(field, depth) }]),
    ),
    required,
  };
}

function safeField(field, depth) {
  if (!isObject(field) || depth === 0) return {};
  const type = Object.hasOwn(IS_OF, field.type) ? field.type : undefined;
  if (type === "object" && isObject(field.properties)) return { ...safeSchema(field, depth - 1), ...texts(field) };
  /** @type {Record<string, any>} */
  const safe = { ...texts(field), ...(type && { type }) };
  if (Array.isArray(field.enum) && field.enum.length > 0) safe.enum = field.enum.filter(isPlain);
  if (isPlain(field.default) && (!type || IS_OF[type](field.default))) safe.default = field.default;
  for (const name of ["minimum", "maximum", "multipleOf", "minLength", "maxLength"]) {
    if (Number.isFinite(field[name])) safe[name] = field[name];
  }
  if (type === "array") safe.items = safeField(field.items, depth - 1);
  return safe;
}

function texts({ description, title }) {
  return {
    ...(typeof description === "string" && { description: visible(description) }),
    ...(typeof title === "string" && { title: visible(title) }),
  };
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// A reader cannot choose or send a text that deceives knowingly.
function isPlain(value) {
  return ["boolean", "number"].includes(typeof value) || (typeof value === "string" && visible(value) === value);
}
