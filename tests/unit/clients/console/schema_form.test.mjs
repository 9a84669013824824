// Forms of JSON schemas: the values that they start with.
import assert from "node:assert/strict";
import { test } from "node:test";
import { initialValue, simplified } from "../../../../infra/clients/console/components/schema_form.js";

const properties = {
  level: { type: "integer", minimum: 5, maximum: 10 },
  on: { type: "boolean" },
  mode: { enum: ["eco", "boost"] },
  name: { type: "string" },
  kind: { const: "lamp" },
  limit: { anyOf: [{ type: "integer" }, { type: "null" }], default: 20 },
  cursor: { type: ["string", "null"], default: null },
};

test("a form starts with defaults and constants alone", () => {
  assert.deepEqual({ ...initialValue({ properties, required: ["level", "on"] }) }, { kind: "lamp", limit: 20 });
});

test("required controls of a device start at an end", () => {
  const value = initialValue({ properties, required: ["level", "on", "mode", "name"] }, { sliders: true });
  assert.deepEqual({ ...value }, { level: 5, on: false, mode: "eco", kind: "lamp", limit: 20 });
});

test("a property may be named like one of every object", () => {
  const value = initialValue({ properties: JSON.parse('{"__proto__": {"default": 1}, "toString": {"default": 2}}') });
  assert.deepEqual(Object.entries(value), [
    ["__proto__", 1],
    ["toString", 2],
  ]);
});

test("null is left out of a schema, and what surrounds the other kind stays", () => {
  assert.deepEqual(simplified({ anyOf: [{ type: "null" }, { type: "string" }], description: "text" }), {
    type: "string",
    description: "text",
  });
  assert.deepEqual(simplified({ type: ["integer", "null"] }), { type: "integer" });
  const several = { anyOf: [{ type: "string" }, { type: "integer" }] };
  assert.deepEqual(simplified(several), several);
});
