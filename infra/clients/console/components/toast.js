// Short messages at the edge of the page, which screen readers announce.
import { signal } from "@preact/signals";
import { html } from "../html.js";
import { t } from "../i18n.js";

const SECONDS = 6;
const toasts = signal([]);
let last = 0;

// Show a message; `kind` is "good" or "wrong". A failure stays until it is closed.
export function toast(text, kind = "good") {
  const id = ++last;
  toasts.value = [...toasts.value.slice(-3), { id, text, kind }];
  if (kind === "good") setTimeout(() => close(id), SECONDS * 1000);
}

function close(id) {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map(
      (each) => html`<div key=${each.id} class="toast ${each.kind}">
      <span>${each.text}</span>
      <button class="quiet" aria-label=${t("app.close")} onClick=${() => close(each.id)}>×</button>
    </div>`,
    )}
  </div>`;
}
