// Differences between two texts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines, rowsOf } from "../../../../infra/clients/console/documents/diff.js";

const side = (parts, other) => parts.filter(({ kind }) => kind !== other).flatMap(({ lines }) => lines);

function assertLeads(before, after, parts) {
  assert.equal(side(parts, "added").join("\n"), before);
  assert.equal(side(parts, "removed").join("\n"), after);
}

test("one changed line is removed and added between equal ones", () => {
  assert.deepEqual(diffLines("a\nb\nc", "a\nx\nc"), [
    { kind: "same", lines: ["a"] },
    { kind: "removed", lines: ["b"] },
    { kind: "added", lines: ["x"] },
    { kind: "same", lines: ["c"] },
  ]);
});

test("texts with too many edits are compared between lines that occur once on both sides", () => {
  const lines = (word) => Array.from({ length: 3000 }, (_, index) => `${word} ${index}`).join("\n");
  const [before, after] = [`${lines("a")}\nanchor\n${lines("b")}`, `${lines("c")}\nanchor\n${lines("d")}`];
  const parts = diffLines(before, after);
  assertLeads(before, after, parts);
  assert.deepEqual(
    parts.map(({ kind, lines: { length } }) => [kind, length]),
    [
      ["removed", 3000],
      ["added", 3000],
      ["same", 1],
      ["removed", 3000],
      ["added", 3000],
    ],
  );
});

test("lines that changed places are kept as far as they are in order", () => {
  const noise = (word) => Array.from({ length: 2500 }, (_, index) => `${word} ${index}`);
  const before = [...noise("a"), "one", "two", "three", ...noise("b")].join("\n");
  const after = [...noise("c"), "three", "one", "two", ...noise("d")].join("\n");
  const parts = diffLines(before, after);
  assertLeads(before, after, parts);
  assert.deepEqual(parts.find(({ kind }) => kind === "same").lines, ["one", "two"]);
});

test("equal lines far from a change are counted, three around it are shown", () => {
  const same = (length) => ({ kind: "same", lines: Array.from({ length }, (_, index) => `${index}`) });
  const rows = rowsOf([same(20), { kind: "added", lines: ["new"] }, same(7), { kind: "removed", lines: ["old"] }]);
  const gap = (count) => ({ kind: "gap", count });
  assert.deepEqual(rows[0], gap(17));
  assert.deepEqual(
    rows.slice(1, 4).map(({ text }) => text),
    ["17", "18", "19"],
  );
  assert.equal(rows.filter(({ kind }) => kind === "gap").length, 1); // a gap of one line would save nothing
  assert.deepEqual(
    rows.slice(5, 12).map(({ text }) => text),
    ["0", "1", "2", "3", "4", "5", "6"],
  );
});
