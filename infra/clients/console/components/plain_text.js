// A text as it is. Of a large one the browser lays out what is in view.
import { html } from "../html.js";

const BLOCK = 20_000; // characters

export function PlainText({ text, label }) {
  return html`<pre class="plain-text document-text" tabindex="0" aria-label=${label}>
    ${blocks(text).map((each, index) => html`<span key=${index} class="block">${each}</span>`)}</pre>`;
}

// Cut a text after ends of lines into blocks; the newline at a cut is the block's own end.
function blocks(text) {
  const cut = [];
  let start = 0;
  while (text.length - start > BLOCK) {
    const end = text.indexOf("\n", start + BLOCK);
    if (end < 0) break;
    cut.push(text.slice(start, end));
    start = end + 1;
  }
  cut.push(text.slice(start));
  return cut;
}
