// Schemas that devices send.
import assert from "node:assert/strict";
import { test } from "node:test";
import { safeSchema } from "../../../../infra/clients/console/components/safe_schema.js";

const field = (schema) => safeSchema({ properties: { it: schema } }).properties.it;

test("anything except a schema is a form without fields", () => {
  for (const schema of [null, undefined, 7, "text", [], { properties: [] }, { properties: "x", required: "y" }]) {
    assert.deepEqual(safeSchema(schema), { type: "object", properties: {}, required: [] });
  }
});

test("texts are visible, and values that deceive are no choices", () => {
  const safe = field({ type: "string", description: "a\u202eb", enum: ["ok", "o\u200bk", {}, 3], default: "d\u0000" });
  assert.deepEqual(safe, { title: "it", type: "string", description: "a\ufffdb", enum: ["ok", 3] });
});

test("a kind that is unknown, or a default of another kind, is left out", () => {
  assert.deepEqual(field({ type: "toString", minimum: Infinity, maxLength: 5 }), { title: "it", maxLength: 5 });
  assert.deepEqual(field({ type: "integer", default: "5" }), { title: "it", type: "integer" });
  assert.deepEqual(field({ type: "integer", default: 5 }), { title: "it", type: "integer", default: 5 });
});

test("a schema that nests without end is cut at the fourth level", () => {
  const endless = { type: "object", properties: {} };
  endless.properties.below = endless;
  let [schema, depth] = [safeSchema(endless), 0];
  for (; schema.properties?.below; schema = schema.properties.below) depth += 1;
  assert.equal(depth, 5); // the last one has no kind
  assert.equal(schema.type, undefined);
});
