// Addresses of the console's pages.
import assert from "node:assert/strict";
import { test } from "node:test";
import { decoded, go, link, route } from "../../../../infra/clients/console/router.js";

test("an address leads back to the segments and the query that it was made of", () => {
  const segments = ["a:b", "50% / half?", "tiếng Việt #1"];
  const query = { q: "what & why = ?", view: "history", empty: "", absent: undefined };
  go(link("documents", segments, query), { replace: true });
  assert.deepEqual(route.value, { page: "documents", segments, query: { q: query.q, view: "history" } });
});

test("an address keeps colons readable and has no question mark without a query", () => {
  assert.equal(link("documents", ["a:b"], { q: "" }), "#/documents/a:b");
});

test("an empty address is the start page", () => {
  for (const address of ["", "#", "#/", "#//"]) {
    go(address, { replace: true });
    assert.deepEqual(route.value, { page: "start", segments: [], query: {} }, address);
  }
});

test("malformed percent-encoding stays as it is", () => {
  assert.equal(decoded("100%"), "100%");
  assert.equal(decoded("a%20b"), "a b");
});
