// Large texts that are edited in parts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cutsOf } from "../../../../infra/clients/console/documents/large_text.js";

test("parts begin after ends of lines, have at most 100,000 characters, and together are the text", () => {
  const lines = Array.from({ length: 5000 }, (_, index) => `${index} ${"x".repeat(index % 97)}`).join("\n");
  const cuts = cutsOf(lines);
  assert.equal(cuts[0], 0);
  assert.equal(cuts.at(-1), lines.length);
  for (const [index, cut] of cuts.slice(1, -1).entries()) {
    assert.equal(lines[cut - 1], "\n");
    assert.ok(cut - cuts[index] <= 100_000);
  }
});

test("a line that is longer than a part is cut within", () => {
  assert.deepEqual(cutsOf("x".repeat(250_000)), [0, 100_000, 200_000, 250_000]);
  assert.deepEqual(cutsOf(""), [0, 0]);
});
