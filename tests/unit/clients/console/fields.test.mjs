// The fields of a document in the editor.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldsOf, metadataOf, suggestedId } from "../../../../infra/clients/console/documents/fields.js";

test("an id is made of the title's letters and digits, with an end that is unlikely to be taken", () => {
  assert.equal(suggestedId("Đường đi: Cây ớt — 2!", ""), "duong-di-cay-ot-2");
  assert.equal(suggestedId("…", ""), "doc");
  assert.equal(suggestedId("x".repeat(200), "").length, 60);
  assert.match(suggestedId("Ferns"), /^ferns-[0-9a-f]{6}$/);
});

test("metadata of other programs stay, and empty fields are left out", () => {
  const metadata = { title: "Old", tags: ["a"], owner: { team: "x" } };
  assert.deepEqual(metadataOf(metadata, { title: "New", tags: " a, ,b " }), {
    title: "New",
    tags: ["a", "b"],
    owner: { team: "x" },
  });
  assert.deepEqual(metadataOf(metadata, { title: "", tags: "" }), { owner: { team: "x" } });
});

test("a new document has empty fields of Markdown", () => {
  assert.deepEqual(fieldsOf(undefined), { id: "", title: "", tags: "", body: "", mime_type: "text/markdown" });
});
