// Connect: the settings of each MCP client for this server, to copy or to install by a link.
import { useState } from "preact/hooks";
import { call } from "../api.js";
import { authorizationServer, session } from "../auth.js";
import { clientSettings, isLoopback, TOOLSETS } from "../clients.js";
import { Snippet } from "../components/copy_button.js";
import { useData } from "../components/data.js";
import { JumpLinks } from "../components/jump_links.js";
import { html } from "../html.js";
import { t } from "../i18n.js";

const FOLDERS = new Set(["url", "terminal"]);

export default function Connect() {
  const [toolset, setToolset] = useState("");
  const [chosen, setChosen] = useState("");
  const server = useData(() => authorizationServer());
  const caller = useData(
    (signal) => call("tool-server/system/caller", {}, { signal, quiet: true }),
    [session.value.kind],
  );
  // Without OAuth, a server that requires credentials takes keys alone.
  const ways = [
    ...(server.value ? ["sign_in"] : []),
    ...(server.value || session.value.kind !== "none" || caller.error?.status === 401 ? ["key"] : []),
  ];
  const withKey = (ways.includes(chosen) ? chosen : ways[0]) === "key";
  const origin = server.value?.issuer ?? location.origin;
  const clients = clientSettings(origin, { toolset, withKey });
  return html`<h1>${t("connect.title")}</h1>
    <p>${t("connect.intro")}</p>
    <div class="toolbar">
      <label>${t("connect.toolset")}
        <select value=${toolset} onChange=${(event) => setToolset(event.target.value)}>
          ${TOOLSETS.map((name) => html`<option value=${name}>${t(`connect.toolsets.${name || "all"}`)}</option>`)}
        </select></label>
      ${
        ways.length > 0 &&
        html`<label>${t("connect.credentials")}
        <select value=${withKey ? "key" : "sign_in"} onChange=${(event) => setChosen(event.target.value)}>
          ${ways.map((each) => html`<option value=${each}>${t(`connect.by_${each}`)}</option>`)}
        </select></label>`
      }
    </div>
    ${withKey && html`<p class="faint">${t("connect.key_help")}</p>`}
    <${JumpLinks} label=${t("connect.jump_links")}
      headings=${clients.map(({ client }) => [`client-${client}`, t(`connect.clients.${client}`)])} />
    <div class="clients">${clients.map(
      (each) => html`<${Client} key=${each.client}
      ...${each} name=${t(`connect.clients.${each.client}`)} unreachable=${each.cloud && isLoopback(origin)} />`,
    )}</div>`;
}

function Client({ client, name, link, snippets, unreachable }) {
  return html`<section class="panel" aria-labelledby=${`client-${client}`}>
    <h2 id=${`client-${client}`}>${name}</h2>
    ${unreachable && html`<p class="state note">${t("connect.unreachable")}</p>`}
    <p>${t(`connect.steps.${client}`)}</p>
    ${
      link &&
      html`<p><a class="button primary" href=${link} target="_blank" rel="noopener noreferrer">
      ${t("connect.install", { name })}</a></p>`
    }
    ${snippets.map(
      ({ place, text }) => html`<div key=${place}>
      <h3 class="place">${FOLDERS.has(place) ? t(`connect.places.${place}`) : html`<code>${place}</code>`}</h3>
      <${Snippet} text=${text} name=${`${name}: ${FOLDERS.has(place) ? t(`connect.places.${place}`) : place}`} />
    </div>`,
    )}
  </section>`;
}
