// An error as the server tells it: message, guidance, and the fields that it names.
import { html } from "../html.js";
import { hasText, t } from "../i18n.js";

export function ErrorBox({ error, onRetry }) {
  if (!error || error.name === "AbortError" || error.name === "SignInCancelled") return null;
  const known = `app.errors.${error.code}`;
  const fields = Array.isArray(error.details) ? error.details.filter((each) => each?.message) : [];
  return html`<div class="error-box" role="alert">
    <p><strong>${error.code && hasText(known) ? t(known, { status: error.status ?? 0 }) : error.message}</strong></p>
    ${
      fields.length > 0 &&
      html`<ul>${fields.map((each) => html`<li><code>${each.field}</code> ${each.message}</li>`)}
      </ul>`
    }
    ${error.guidance && html`<p>${error.guidance}</p>`}
    ${
      error.correlationId &&
      html`<p class="faint">${error.code} · <span class="code">${error.correlationId}</span>
      </p>`
    }
    ${onRetry && html`<p><button onClick=${onRetry}>${t("app.retry")}</button></p>`}
  </div>`;
}
