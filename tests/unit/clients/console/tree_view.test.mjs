// The tree of documents.
import assert from "node:assert/strict";
import { test } from "node:test";
import { currentRow } from "../../../../infra/clients/console/documents/tree_view.js";

const rows = [{ kind: "more" }, { kind: "node", id: "a" }, { kind: "node", id: "b" }, { kind: "more" }];

test("the keyboard reaches the active document, else the selected one, else the first", () => {
  assert.equal(currentRow(rows, ["b", "a"]), "b");
  assert.equal(currentRow(rows, ["gone", "b"]), "b");
  assert.equal(currentRow(rows, ["gone", "gone too"]), "a");
});

test("the keyboard reaches the first document of a long tree of which none is selected", () => {
  assert.equal(currentRow(rows, [null, undefined]), "a");
});
