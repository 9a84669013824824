// Start: the servers, how much there is, the checks of the installation, and a sample to begin with.
import { useState } from "preact/hooks";
import { call, get } from "../api.js";
import { isOneMachine } from "../auth.js";
import { useAction } from "../components/action.js";
import { useData } from "../components/data.js";
import { ErrorBox } from "../components/error_box.js";
import { html } from "../html.js";
import { formatNumber, t } from "../i18n.js";
import { link } from "../router.js";
import { SAMPLE, STEPS } from "../sample.js";

const MOST = 1000; // a page of a list: what is counted, before "and more"

// What is counted: the page that shows it, the method that lists it, and the name of the list.
const COUNTS = [
  ["documents", "agent-data/list_children", { parent_id: "root", limit: MOST }, "children"],
  ["conversations", "memory-server/memory/list_conversations", { limit: MOST }, "conversations"],
  ["knowledge", "research-agent/manage_collections", { action: "list", limit: MOST }, "collections"],
  ["devices", "device-server/devices/list", { limit: MOST }, "devices"],
];

export default function Start() {
  const health = useData((signal) => get("/health", { signal }), [], { every: 15_000 });
  const counts = useData((signal) => Promise.all(COUNTS.map((each) => countOf(each, signal))));
  const isEmpty = counts.value?.every((each) => each.count === 0);
  return html`<h1>${t("start.title")}</h1>
    <p>${t("start.intro")}</p>
    <${Sample} isEmpty=${isEmpty} onLoaded=${counts.reload} />
    <section aria-labelledby="counts" aria-busy=${counts.loading}>
      <h2 id="counts">${t("start.counts")}</h2>
      <${ErrorBox} error=${counts.error} onRetry=${counts.reload} />
      ${counts.value && html`<ul class="cards small">${counts.value.map(({ page, count, more }) => html`<li key=${page}>
        <a class="card count" href=${link(page)}><strong>${formatNumber(count)}${more && "+"}</strong> ${t(`start.counted.${page}`, { count })}</a></li>`)}</ul>`}
    </section>
    <section aria-labelledby="health">
      <h2 id="health">${t("start.health")}</h2>
      <${ErrorBox} error=${health.error} onRetry=${health.reload} />
      ${health.value && html`<ul class="cards">${health.value.servers.map((name) => html`<li class="card" key=${name}>
        <h3>${name}</h3><p>${t(`start.servers.${name}`)}</p>
        <p class="state ${health.error ? "wrong" : "good"}">${t(health.error ? "start.silent" : "start.healthy")}</p></li>`)}</ul>`}
    </section>
    <${Checks} />`;
}

async function countOf([page, method, params, list], signal) {
  const result = await call(method, params, { signal });
  return { page, count: result[list]?.length ?? 0, more: Boolean(result.next_cursor) };
}

// Load the sample step by step, so that it is seen how far it is, and where it failed.
function Sample({ isEmpty, onLoaded }) {
  const [done, setDone] = useState([]);
  const [state, setState] = useState("idle");
  const [error, setError] = useState(null);
  const load = async () => {
    setDone([]);
    setError(null);
    setState("busy");
    try {
      for (const [name, run] of STEPS) {
        await run();
        setDone((old) => [...old, name]);
      }
      setState("done");
    } catch (problem) {
      setError(problem);
      setState("idle");
    }
    onLoaded();
  };
  return html`<section class="panel ${isEmpty ? "prominent" : ""}" aria-labelledby="sample">
    <h2 id="sample">${t("start.sample")}</h2>
    <p>${t("start.sample_text")}</p>
    <p><button class=${isEmpty ? "primary" : ""} onClick=${load} disabled=${state === "busy"}>${t(state === "busy" ? "start.sample_loading" : "start.sample_load")}</button></p>
    <div role="status"><ul class="plain">${done.map((name) => html`<li key=${name}><span class="state good">${t(`start.steps.${name}`)}</span></li>`)}</ul>
      ${state === "done" && html`<p>${t("start.sample_next")}</p>
        <ul>${Object.entries(sampleLinks()).map(([page, address]) => html`<li key=${page}><a href=${address}>${t(`start.sample_links.${page}`)}</a></li>`)}</ul>`}</div>
    <${ErrorBox} error=${error} />
  </section>`;
}

function sampleLinks() {
  return {
    documents: link("documents", [SAMPLE.document], { view: "history" }),
    ask: link("ask", [], { q: t("start.sample_links.ask") }),
    conversations: link("conversations", [SAMPLE.conversation]),
    knowledge: link("knowledge", [SAMPLE.collection]),
    ...(isOneMachine && { devices: link("devices") }),
  };
}

// The findings of `kho doctor` that a function can make; for admins alone.
function Checks() {
  const [findings, setFindings] = useState(null);
  const { busy, error, run } = useAction(async () => {
    setFindings(null);
    setFindings((await call("tool-server/system/check")).findings);
  });
  return html`<section aria-labelledby="checks">
    <h2 id="checks">${t("start.checks")}</h2>
    <p>${t("start.checks_text")}</p>
    <p><button onClick=${run} disabled=${busy}>${t(busy ? "start.checking" : "start.check")}</button></p>
    <${ErrorBox} error=${error} />
    <div role="status"><ul class="rows">${findings?.map((each) => html`<li key=${each.subject}>
      <span class="state ${each.state}"><span class="hidden">${t(`start.states.${each.state}`)}: </span>${each.subject}</span> ${each.message}
      ${each.advice && html`<div class="faint">${each.advice}</div>`}</li>`)}</ul></div>
  </section>`;
}
