// Links inside documents.
import assert from "node:assert/strict";
import { test } from "node:test";
import "./setup.mjs";

const { linkTarget, slug } = await import("../../../../infra/clients/console/components/document_link.js");

test("a relative path leads to a document of the collection", () => {
  for (const [base, href, path, heading] of [
    ["docs/a.md", "b.md", "docs/b.md", ""],
    ["docs/a.md", "./b.md#Two%20words", "docs/b.md", "two-words"],
    ["docs/a.md", "../c/d.md?x#y", "c/d.md", "y"],
    ["docs/a.md", "/e.md", "e.md", ""],
    ["docs/a.md", "#C%E1%BB%ADa--s%E1%BB%95", "docs/a.md", "cửa-sổ"],
    ["a.md", "b%20c.md", "b c.md", ""],
  ])
    assert.deepEqual(linkTarget(base, href), { path, heading });
});

test("a path out of the collection leads nowhere", () => {
  for (const href of ["../../b.md", "../..", "/", "../"]) assert.equal(linkTarget("docs/a.md", href), null);
});

test("a heading is named without punctuation", () => assert.equal(slug("Which files? **All**"), "which-files-all"));
