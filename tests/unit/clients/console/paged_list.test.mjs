// Lists that are loaded page by page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pager } from "../../../../infra/clients/console/components/paged_list.js";

// A pager whose pages the test answers one by one.
function opened() {
  const [calls, states] = [[], []];
  const load = (cursor, signal) => new Promise((resolve, reject) => calls.push({ cursor, signal, resolve, reject }));
  const pages = pager(load, (state) => states.push(state));
  return { calls, states, pages, shown: () => states.at(-1) };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("pages follow one another until a page has no cursor", async () => {
  const { calls, pages, shown } = opened();
  pages.start();
  assert.deepEqual(shown(), { items: [], cursor: undefined, error: null, loading: true, more: false });
  calls[0].resolve({ items: [1, 2], next_cursor: "c" });
  await settled();
  assert.deepEqual(shown(), { items: [1, 2], cursor: "c", error: null, loading: false, more: true });
  pages.start("c", [1, 2]);
  assert.equal(calls[1].cursor, "c");
  calls[1].resolve({ items: [3], next_cursor: null });
  await settled();
  assert.deepEqual(shown(), { items: [1, 2, 3], cursor: undefined, error: null, loading: false, more: false });
});

test("a failure keeps the items and the cursor, so that the same page can be loaded again", async () => {
  const { calls, pages, shown } = opened();
  pages.start("c", [1]);
  const error = new Error("lost");
  calls[0].reject(error);
  await settled();
  assert.deepEqual(shown(), { items: [1], cursor: "c", error, loading: false, more: false });
});

test("a late answer of an earlier start changes nothing", async () => {
  const { calls, pages, shown, states } = opened();
  pages.start();
  pages.start();
  assert.equal(calls[0].signal.aborted, true);
  calls[1].resolve({ items: ["new"] });
  await settled();
  const count = states.length;
  calls[0].resolve({ items: ["old"] });
  await settled();
  assert.equal(states.length, count);
  assert.deepEqual(shown().items, ["new"]);
});

test("nothing is shown any more after a stop", async () => {
  const { calls, pages, states } = opened();
  pages.start();
  pages.stop();
  assert.equal(calls[0].signal.aborted, true);
  calls[0].reject(new Error("aborted"));
  await settled();
  assert.equal(states.length, 1);
});
