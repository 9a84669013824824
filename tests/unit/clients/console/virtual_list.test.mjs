// The arithmetic of lists of which only the rows in view are in the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { renderedRows, rowsInView, scrollFor } from "../../../../infra/clients/console/components/virtual_list.js";

test("ten rows around the view are rendered too, none before the first", () => {
  assert.deepEqual(rowsInView({ scrollTop: 0, clientHeight: 100 }, 20), { first: 0, last: 15 });
  assert.deepEqual(rowsInView({ scrollTop: 1010, clientHeight: 100 }, 20), { first: 40, last: 66 });
});

test("the active row is rendered once, also out of view, and none that is not there", () => {
  assert.deepEqual(renderedRows({ first: 2, last: 5 }, 100, 50), [2, 3, 4, 50]);
  assert.deepEqual(renderedRows({ first: 2, last: 5 }, 100, 3), [2, 3, 4]);
  assert.deepEqual(renderedRows({ first: 2, last: 50 }, 4, -1), [2, 3]);
  assert.deepEqual(renderedRows({ first: 0, last: 2 }, 4, 4), [0, 1]);
});

test("a list scrolls as little as shows the whole row", () => {
  const box = { scrollTop: 100, clientHeight: 60 };
  assert.equal(scrollFor(box, 4, 20), 80);
  assert.equal(scrollFor(box, 5, 20), 100);
  assert.equal(scrollFor(box, 7, 20), 100);
  assert.equal(scrollFor(box, 8, 20), 120);
});
