// The differences between two texts, line by line.
import { diffArrays } from "diff/array";
import { useMemo, useState } from "preact/hooks";
import { visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

const CONTEXT = 3; // equal lines shown around a change
const MOST_EDITS = 2000; // up to which the fewest edits are searched for; the time grows with their square
const FIRST_LINES = 1000; // shown at first

// Return [{kind: "same" | "removed" | "added", lines}] that lead from one text to the other.
export function diffLines(before, after) {
  const parts = [];
  const push = (kind, lines) => {
    if (!lines.length) return;
    const last = parts.at(-1);
    if (last?.kind !== kind) parts.push({ kind, lines: [...lines] });
    else for (const line of lines) last.lines.push(line);
  };
  compare(before.split("\n"), after.split("\n"), push);
  return parts;
}

// Find the fewest edits. If there are too many, compare what lies between the lines that occur once on both sides.
function compare(a, b, push) {
  const changes = diffArrays(a, b, { maxEditLength: MOST_EDITS });
  if (!changes) {
    compareByAnchors(a, b, push);
    return;
  }
  for (const { added, removed, value } of changes) push(removed ? "removed" : added ? "added" : "same", value);
}

function compareByAnchors(a, b, push) {
  const anchors = longestIncreasing(uniquePairs(a, b));
  if (!anchors.length) {
    push("removed", a);
    push("added", b);
    return;
  }
  let [i, j] = [0, 0];
  for (const [left, right] of anchors) {
    compare(a.slice(i, left), b.slice(j, right), push);
    push("same", [a[left]]);
    [i, j] = [left + 1, right + 1];
  }
  compare(a.slice(i), b.slice(j), push);
}

function uniquePairs(a, b) {
  const counts = new Map();
  a.forEach((line, index) => {
    counts.set(line, counts.has(line) ? null : { left: index, right: -1 });
  });
  b.forEach((line, index) => {
    const entry = counts.get(line);
    if (entry) counts.set(line, entry.right < 0 ? { ...entry, right: index } : null);
  });
  return [...counts.values()].filter((each) => each && each.right >= 0).map(({ left, right }) => [left, right]);
}

// Return the longest run of pairs whose right sides increase; their left sides do already.
function longestIncreasing(pairs) {
  const ends = [];
  const before = new Array(pairs.length).fill(-1);
  pairs.forEach(([, right], index) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]][1] < right) low = middle + 1;
      else high = middle;
    }
    if (low) before[index] = ends[low - 1];
    ends[low] = index;
  });
  const run = [];
  for (let index = ends.at(-1) ?? -1; index >= 0; index = before[index]) run.push(pairs[index]);
  return run.reverse();
}

// Show the differences. Equal lines far from a change are counted instead of shown.
export function Diff({ before, after, label }) {
  const [all, setAll] = useState(false);
  const rows = useMemo(() => rowsOf(diffLines(before, after)), [before, after]);
  const shown = all ? rows : rows.slice(0, FIRST_LINES);
  if (before === after) return html`<p class="empty">${t("documents.no_differences")}</p>`;
  return html`<div class="diff" role="group" aria-label=${label} tabindex="0">
    ${shown.map(({ kind, text, count }, index) => {
      if (kind === "gap") return html`<p key=${index} class="gap">${t("documents.equal_lines", { count })}</p>`;
      const Mark = { same: "span", added: "ins", removed: "del" }[kind];
      return html`<${Mark} key=${index} class="line"><span class="sign" aria-hidden="true">
        ${{ same: " ", added: "+", removed: "−" }[kind]}</span>
        ${kind !== "same" && html`<span class="hidden">${t(`documents.${kind}`)} </span>`}<span>
          ${visible(text) || "\u00a0"}</span><//>`;
    })}
    ${
      rows.length > shown.length &&
      html`<p><button onClick=${() => setAll(true)}>
      ${t("documents.all_differences", { count: rows.length })}</button></p>`
    }
  </div>`;
}

// Return the rows that are shown: {kind, text} of a line, {kind: "gap", count} of equal lines far from a change.
export function rowsOf(parts) {
  const rows = [];
  const add = (kind, lines) => {
    for (const text of lines) rows.push({ kind, text });
  };
  for (const [index, { kind, lines }] of parts.entries()) {
    const [head, tail] = [index ? CONTEXT : 0, index < parts.length - 1 ? CONTEXT : 0];
    const isLong = kind === "same" && lines.length > head + tail + 1;
    add(kind, isLong ? lines.slice(0, head) : lines);
    if (!isLong) continue;
    rows.push({ kind: "gap", count: lines.length - head - tail });
    add(kind, tail ? lines.slice(-tail) : []);
  }
  return rows;
}
