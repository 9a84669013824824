// Texts of strangers, in which nothing is invisible.
import assert from "node:assert/strict";
import { test } from "node:test";
import { asText, visible } from "../../../../infra/clients/console/components/visible_text.js";

test("each character that is invisible or turns the direction becomes one mark", () => {
  for (const code of [0, 7, 0x1b, 0x7f, 0x9f, 0x61c, 0x200b, 0x200e, 0x2028, 0x202e, 0x2066, 0x2069, 0xfeff]) {
    assert.equal(visible(`a${String.fromCharCode(code)}b`), "a\ufffdb", code.toString(16));
  }
});

test("lines, tabs, joiners, accents and pictures stay", () => {
  const text = "một\n\thai 👩‍🚀 e\u0301";
  assert.equal(visible(text), text);
  assert.equal(visible("a\r\nb\rc"), "a\nb\nc");
});

test("any value but a text is shown as JSON, and nothing as an empty text", () => {
  assert.equal(asText({ a: "\u202e" }), '{\n  "a": "\ufffd"\n}');
  assert.equal(asText("plain"), "plain");
  assert.equal(visible(undefined), "");
});
