// Start: the servers and whether they answer.
import { get } from "../api.js";
import { useData } from "../components/data.js";
import { ErrorBox } from "../components/error_box.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

export default function Start() {
  const health = useData((signal) => get("/health", { signal }), [], { every: 15_000 });
  return html`<h1>${t("start.title")}</h1>
    <p>${t("start.intro")}</p>
    <section aria-labelledby="health">
      <h2 id="health">${t("start.health")}</h2>
      <${ErrorBox} error=${health.error} onRetry=${health.reload} />
      ${health.value && html`<ul class="cards">${health.value.servers.map((name) => html`<li class="card" key=${name}>
        <h3>${name}</h3><p>${t(`start.servers.${name}`)}</p>
        <p class="state good">${t("start.healthy")}</p></li>`)}</ul>`}
    </section>`;
}
