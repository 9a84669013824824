// The editor of a large text, one part at a time: browsers lay out all of a field before they show any of it.
import { useRef, useState } from "preact/hooks";
import { visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { formatNumber, t } from "../i18n.js";

const PART = 100_000; // characters
const HINT = 40; // characters of a part's beginning

// `onInput` gets the whole text.
export function LargeText({ value, label, readonly, onInput }) {
  const [part, setPart] = useState(0);
  const cuts = useRef([]);
  if (cuts.current.at(-1) !== value.length) cuts.current = cutsOf(value);
  const count = cuts.current.length - 1;
  const current = Math.min(part, count - 1);
  const [start, end] = cuts.current.slice(current, current + 2);
  const change = ({ target: { value: text } }) => {
    const growth = text.length - (end - start);
    cuts.current = cuts.current.map((cut, index) => (index > current ? cut + growth : cut));
    onInput(value.slice(0, start) + text + value.slice(end));
  };
  return html`<label class="part">${t("documents.part")}
      <select value=${current} onChange=${(event) => setPart(Number(event.target.value))}>
        ${cuts.current.slice(0, -1).map(
          (cut, index) => html`<option key=${index} value=${index}>
          ${`${formatNumber(index + 1)} / ${formatNumber(count)}: ${visible(value.slice(cut, cut + HINT)).trim()}`}
            </option>`,
        )}</select></label>
    <textarea key=${current} class="code" rows="20" aria-label=${label} spellcheck=${false} readonly=${readonly}
      value=${value.slice(start, end)} onInput=${change}></textarea>`;
}

// Return where the parts of a text begin, after ends of lines where there are some, and where the last one ends.
export function cutsOf(text) {
  const cuts = [0];
  while (text.length - cuts.at(-1) > PART) {
    const limit = cuts.at(-1) + PART;
    const line = text.lastIndexOf("\n", limit - 1) + 1;
    cuts.push(line > cuts.at(-1) ? line : limit);
  }
  return [...cuts, text.length];
}
