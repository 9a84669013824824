// Buttons that lead to headings further down, in windows that are not wide: the address cannot, it names pages.
import { html } from "../html.js";

// `headings` are pairs of an element's id and a name.
export function JumpLinks({ label, headings }) {
  return html`<nav class="jump-links" aria-label=${label}>${headings.map(
    ([id, name]) => html`
    <button type="button" key=${id} onClick=${() => jump(id)}>${name}</button>`,
  )}</nav>`;
}

function jump(id) {
  const heading = document.getElementById(id);
  heading.tabIndex = -1;
  heading.focus();
}
