// Devices: their presence, and each device's tools as controls, its notifications, and what its owner may do.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { call, poll } from "../api.js";
import { isOneMachine } from "../auth.js";
import { useAction } from "../components/action.js";
import { useData } from "../components/data.js";
import { useDraft } from "../components/draft.js";
import { ActionDialog, ActionForm, ConfirmButton, ConfirmDialog } from "../components/dialog.js";
import { ErrorBox } from "../components/error_box.js";
import { PagedList, usePages } from "../components/paged_list.js";
import { initialValue, SchemaForm, simplified } from "../components/schema_form.js";
import { toast } from "../components/toast.js";
import { ToolResult } from "../components/tool_result.js";
import { safeSchema } from "../components/safe_schema.js";
import { asText, visible } from "../components/visible_text.js";
import { Administration } from "../devices/administration.js";
import { html } from "../html.js";
import { formatAge, formatTime, t } from "../i18n.js";
import { go, link } from "../router.js";

const PAGE = 100;
const MOST = 1000; // what one call lists
const LIST_POLL_MS = 5000;
const DEVICE_POLL_MS = 4000;
const NOTIFICATION_POLL_MS = 2000;
const NOTIFICATION_PAGE = 20;
const FEW_TOOLS = 8; // as many are shown unfolded
const CALL_MS = 15_000;
const UNANSWERED = [503, 504]; // the device is offline or silent
const RESTARTING = ["self.reboot", "self.upgrade_firmware"];

export default function Devices({ segments: [id] }) {
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) isFirst.current = false;
    else document.getElementById("main").focus(); // what had the focus has left the page
  }, [id]);
  return id ? html`<${Device} key=${id} id=${id} />` : html`<${DeviceList} />`;
}

function DeviceList() {
  const [claiming, setClaiming] = useState(false);
  const [administered, setAdministered] = useState(false);
  const pages = usePages(async (cursor, signal) => {
    const page = await call("device-server/devices/list", { limit: PAGE, cursor }, { signal });
    return { items: page.devices, next_cursor: page.next_cursor };
  });
  const { loading, more } = pages;
  const loaded = pages.items.length;
  useEffect(() => {
    if (loading) return undefined;
    const polling = poll(
      async (signal) => {
        const limit = Math.min(MOST, more ? loaded : loaded + PAGE);
        const { devices, next_cursor: cursor } = await call("device-server/devices/list", { limit }, { signal });
        pages.setItems((items) => (cursor ? unique([...devices, ...items]) : devices));
      },
      { every: LIST_POLL_MS },
    );
    return polling.stop;
  }, [loaded, loading, more]);
  return html`<h1>${t("devices.title")}</h1>
    <p>${t("devices.intro")}</p>
    <div class="toolbar"><button class="primary" onClick=${() => setClaiming(true)}>${t("devices.claim")}</button>
      <${SimulateButton} onDone=${pages.reload} /></div>
    <${PagedList} pages=${{ ...pages, items: unique(pages.items) }} label=${t("devices.title")}
      keyOf=${(each) => each.device_id}
      empty=${html`<p>${t(isOneMachine ? "devices.none_simulate" : "devices.none")}</p>`}>
      ${(each) => html`<${Card} device=${each} />`}
    <//>
    <details onToggle=${(event) => setAdministered(event.target.open)}><summary>${t("devices.administration")}</summary>
      ${administered && html`<${Administration} />`}</details>
    ${claiming && html`<${ClaimDialog} onClose=${() => setClaiming(false)} />`}`;
}

// Return each device once, as it comes first.
function unique(devices) {
  const known = new Set();
  return devices.filter(({ device_id: id }) => !known.has(id) && known.add(id));
}

function Card({ device }) {
  const { device_id: id, name, board, firmware, last_answered_at: answered } = device;
  return html`<article class="card device-card">
    <h2><a href=${link("devices", [id])}>${visible(name)}</a></h2>
    <${Presence} device=${device} />
    <p class="faint">${answered ? t("devices.answered", { age: formatAge(answered) }) : t("devices.never_answered")}</p>
    ${board && html`<p class="faint">${visible(board)} ${visible(firmware ?? "")}</p>`}
    ${name !== id && html`<p class="faint code">${visible(id)}</p>`}
  </article>`;
}

function Presence({ device: { connected, disconnect_reason: reason, changed_at: at } }) {
  if (connected === undefined) return html`<p class="state note">${t("devices.unknown")}</p>`;
  if (connected) return html`<p class="state good">${t("devices.connected")}</p>`;
  return html`<p class="state wrong">${t("devices.offline")}${at && ` · ${formatAge(at)}`}</p>
    ${reason && html`<p class="faint">${t("devices.reason", { reason: visible(reason) })}</p>`}`;
}

// `kho serve` alone simulates devices; they end with it.
function SimulateButton({ onDone }) {
  const { busy, error, run } = useAction(async () => {
    await call("device-server/devices/simulate");
    toast(t("devices.simulated"));
    onDone();
  });
  if (!isOneMachine) return null;
  return html`<button onClick=${run} aria-disabled=${busy}>${t("devices.simulate")}</button>
    <${ErrorBox} error=${error} />`;
}

function ClaimDialog({ onClose }) {
  const [code, setCode] = useState("");
  const [name, setName] = useState("");
  const claim = async () => {
    const device = await call("device-server/devices/claim", { code, name });
    toast(t("devices.claimed", { name }));
    go(link("devices", [device.device_id]));
  };
  return html`<${ActionDialog} title=${t("devices.claim")} action=${t("devices.claim_action")} act=${claim}
    onClose=${onClose}>
    <p>${t("devices.claim_text")}</p>
    <label>${t("devices.code")}<input required inputmode="numeric" autocomplete="off" pattern="[0-9]{6}" maxlength="6"
      title=${t("devices.six_digits")}
      value=${code} onInput=${(event) => setCode(event.target.value)} /></label>
    <label>${t("devices.name")}<input required maxlength="128" autocomplete="off" value=${name}
      onInput=${(event) => setName(event.target.value)} /></label>
  <//>`;
}

function Device({ id }) {
  const found = useData((signal) => call("device-server/devices/get", { device_id: id }, { signal }), [id], {
    every: DEVICE_POLL_MS,
  });
  const device = found.value;
  const release = async () => {
    await call("device-server/devices/release", { device_id: id });
    toast(t("devices.released", { name: device.name }));
    go(link("devices"));
  };
  return html`<nav aria-label=${t("devices.trail")} class="trail"><a href=${link("devices")}>${t("devices.title")}</a>
    </nav>
    <h1>${device ? visible(device.name) : visible(id)}</h1>
    <${ErrorBox} error=${found.error} onRetry=${found.reload} />
    ${
      device &&
      html`<div class="device-state"><${Presence} device=${device} />
      <p class="faint">
        ${
          device.last_answered_at
            ? t("devices.answered", { age: formatAge(device.last_answered_at) })
            : t("devices.never_answered")
        }
        ${device.board && ` · ${visible(device.board)} ${visible(device.firmware ?? "")}`} · <span class="code">
          ${visible(id)}</span></p></div>
      ${
        device.connected === false &&
        device.board?.startsWith("simulated-") &&
        html`<div class="actions">
        <${SimulateButton} onDone=${found.reload} /></div>`
      }
      <${Tools} device=${device} />
      <div class="split talk"><${Alert} id=${id} /><${Notifications} id=${id} /></div>
      <p><${ConfirmButton} action=${t("devices.release")} text=${t("devices.release_text")} word=${device.name}
        onConfirm=${release} /></p>`
    }`;
}

// Return all pages of a device's tools. The list with its owner's tools is read from the device, the other one is
// stored.
async function listTools(id, withUserTools, signal) {
  const tools = [];
  let page = {};
  do {
    page = await call(
      "device-server/tools/list",
      { device_id: id, with_user_tools: withUserTools, limit: PAGE, cursor: page.next_cursor },
      { signal },
    );
    tools.push(...page.tools);
  } while (page.next_cursor);
  return { tools, problem: page.complete ? "" : page.problem, stored: !withUserTools };
}

function Tools({ device }) {
  const [filter, setFilter] = useState("");
  const { device_id: id, connected, firmware } = device;
  const listed = useData(
    async (signal) => {
      try {
        return await listTools(id, true, signal);
      } catch (error) {
        if (!UNANSWERED.includes(error.status)) throw error;
        return listTools(id, false, signal);
      }
    },
    [id],
  );
  useEffect(() => {
    if (connected && (listed.error || listed.value?.stored)) listed.reload(); // it is back
  }, [connected]);
  // The answers of calls stay while the tools of another firmware are read.
  const listedFirmware = useRef(firmware);
  useEffect(() => {
    if (firmware !== listedFirmware.current) listed.reload();
    listedFirmware.current = firmware;
  }, [firmware]);
  const { tools = [], problem, stored } = listed.value ?? {};
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = tools.filter(({ name, description }) =>
    words.every((word) => `${name} ${description}`.toLowerCase().includes(word)),
  );
  return html`<section aria-labelledby="tools" aria-busy=${listed.loading}>
    <h2 id="tools">${t("devices.tools")}</h2>
    <${ErrorBox} error=${listed.error} onRetry=${listed.reload} />
    ${listed.loading && html`<p role="status">${t("app.loading")}</p>`}
    ${stored && html`<p class="state note">${t("devices.stored_tools")}</p>`}
    ${problem && html`<p class="state note">${t("devices.incomplete", { reason: visible(problem) })}</p>`}
    ${
      tools.length > FEW_TOOLS &&
      html`<div class="toolbar"><input type="search" aria-label=${t("devices.filter")}
        placeholder=${t("devices.filter")}
      value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      <span role="status" class="faint">${t("devices.tool_count", { count: matching.length })}</span></div>`
    }
    <div class="tools">${matching.map(
      (tool) => html`<${Tool} key=${tool.name} device=${device} tool=${tool}
      open=${tools.length <= FEW_TOOLS} />`,
    )}</div>
    ${listed.value && tools.length === 0 && html`<p class="empty">${t("devices.no_tools")}</p>`}
  </section>`;
}

function Tool({ device, tool, open }) {
  const id = useId();
  return html`<details class="panel tool" open=${open}>
    <summary><h3 id=${id}>${shortName(tool)}</h3></summary>
    <p class="faint tool-text">${visible(tool.description)}</p>
    <${Control} device=${device} tool=${tool} labelledby=${id} />
  </details>`;
}

// Each tool of the firmware begins with "self.".
function shortName(tool) {
  return visible(tool.name).replace(/^self\./, "");
}

// A tool of one boolean argument is called when its switch is turned.
function isSwitch({ properties }) {
  const kinds = Object.values(properties);
  return kinds.length === 1 && simplified(kinds[0]).type === "boolean";
}

function Control({ device, tool, labelledby }) {
  const schema = safeSchema(tool.inputSchema);
  const [values, setValues] = useState(() => initialValue(schema, { sliders: true }));
  const [state, setState] = useState(/** @type {Record<string, any>} */ ({})); // of the last call
  const [confirming, setConfirming] = useState(false);
  const restarts = RESTARTING.includes(tool.name);
  const isInstant = isSwitch(schema) && !restarts;
  const turns = useRef({ isRunning: false, wanted: values, taken: values });
  // Return "taken", "refused" or "in doubt".
  const run = async (params) => {
    setState({ running: true });
    const started = performance.now();
    try {
      const result = await call("device-server/tools/call", {
        device_id: device.device_id,
        name: tool.name,
        arguments: params,
        timeout_ms: CALL_MS,
      });
      setState({ result, sent: params, milliseconds: Math.round(performance.now() - started) });
      return result.isError ? "refused" : "taken";
    } catch (error) {
      setState({ error });
      return error.details?.sent === true || error.code === "OFFLINE" ? "in doubt" : "refused";
    }
  };
  // Calls of a switch have an order: one at a time, and then the latest position if it differs.
  const turn = async (params) => {
    const state = turns.current;
    state.wanted = params;
    if (state.isRunning) return;
    state.isRunning = true;
    let sent;
    do {
      sent = state.wanted;
      const outcome = await run(sent);
      if (outcome === "taken") state.taken = sent;
      // The device has its last position, so that the switch goes back to it.
      if (outcome === "refused" && isSame(state.wanted, sent)) {
        sent = state.wanted = state.taken;
        setValues(state.taken);
      }
    } while (!isSame(state.wanted, sent));
    state.isRunning = false;
  };
  const change = (changed) => {
    setValues(changed);
    if (isInstant) turn(changed);
  };
  const problems = Array.isArray(state.error?.details)
    ? state.error.details.map((each) => ({ ...each, field: String(each.field ?? "").replace(/^arguments\./, "") }))
    : [];
  return html`<form aria-labelledby=${labelledby} onSubmit=${(event) => {
    event.preventDefault();
    if (restarts) setConfirming(true);
    else if (isInstant) turn(values);
    else if (!state.running) run(values);
  }}>
    ${
      Object.keys(schema.properties).length > 0 &&
      html`<${SchemaForm} schema=${schema} value=${values}
      onChange=${change} sliders problems=${problems} />`
    }
    ${isInstant && html`<p class="help">${t("devices.switch_hint")}</p>`}
    <div class="actions"><button type="submit" class=${restarts ? "danger" : "primary"} aria-disabled=${state.running}
      aria-label=${`${t("devices.run")} ${shortName(tool)}`}>
      ${state.running ? t("devices.running") : t("devices.run")}</button></div>
    <div role="status">${
      state.result &&
      html`<${ToolResult} result=${state.result} milliseconds=${state.milliseconds}
      sent=${state.sent} />`
    }</div>
    <${CallError} error=${state.error} />
    ${
      confirming &&
      html`<${ConfirmDialog} title=${visible(tool.name)} text=${t("devices.restart_text")} word=${device.name}
        action=${t("devices.run")} onConfirm=${async () => void run(values)} onClose=${() => setConfirming(false)} />`
    }
  </form>`;
}

function isSame(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

// A failure of which it is known that nothing happened looks unlike one that leaves it in doubt.
function CallError({ error }) {
  if (!error) return null;
  if (error.details?.sent === true) {
    return html`<div class="doubt" role="alert"><p><strong>${t("devices.doubt")}</strong></p>
      <p>${error.message}</p>${error.guidance && html`<p>${error.guidance}</p>`}</div>`;
  }
  return html`<${ErrorBox} error=${error} />`;
}

function Alert({ id }) {
  const [message, setMessage, takeMessage] = useDraft(`alert.${id}`);
  const [title, setTitle, takeTitle] = useDraft(`alert_title.${id}`);
  const send = async () => {
    await call("device-server/devices/alert", { device_id: id, message, ...(title && { status: title }) });
    toast(t("devices.alerted"));
    takeMessage(message);
    takeTitle(title);
  };
  return html`<section class="panel" aria-labelledby="alert"><h2 id="alert">${t("devices.alert")}</h2>
    <p class="faint">${t("devices.alert_text")}</p>
    <${ActionForm} action=${t("devices.alert_action")} act=${send}>
      <label>${t("devices.alert_title")}<input maxlength="64" autocomplete="off" value=${title}
        onInput=${(event) => setTitle(event.target.value)} /></label>
      <label>${t("devices.alert_message")}<input required maxlength="1024" autocomplete="off" value=${message}
        onInput=${(event) => setMessage(event.target.value)} /></label>
    <//></section>`;
}

function Notifications({ id }) {
  const load = async (cursor, signal) => {
    const page = await call(
      "device-server/notifications/list",
      { device_id: id, limit: NOTIFICATION_PAGE, cursor },
      { signal },
    );
    return { items: page.notifications, next_cursor: page.next_cursor };
  };
  const pages = usePages(load, [id]);
  const shown = useRef(pages);
  shown.current = pages;
  useEffect(() => {
    if (pages.loading) return undefined;
    const polling = poll(
      async (signal) => {
        const { items } = await load(undefined, signal);
        const known = new Set(shown.current.items.map(keyOfNotification));
        const added = items.filter((each) => !known.has(keyOfNotification(each)));
        if (added.length === items.length && known.size)
          shown.current.reload(); // more came than one page has
        else if (added.length) shown.current.setItems((old) => [...added, ...old]);
      },
      { every: NOTIFICATION_POLL_MS },
    );
    return polling.stop;
  }, [id, pages.loading]);
  return html`<section class="panel" aria-labelledby="notifications"><h2 id="notifications">
    ${t("devices.notifications")}</h2>
    <div role="log" aria-labelledby="notifications" tabindex="0" class="log">
      <${PagedList} pages=${pages} label=${t("devices.notifications")} keyOf=${keyOfNotification}
        empty=${html`<p class="faint">${t("devices.no_notifications")}</p>`}>
        ${(each) => html`<span class="faint">${formatTime(each.at)}</span> <strong>
          ${visible(each.method.replace(/^notifications\//, ""))}</strong>
          <pre class="plain-text">${asText(each.params)}</pre>`}
      <//></div></section>`;
}

function keyOfNotification({ at, method, params }) {
  return `${at} ${method} ${JSON.stringify(params)}`;
}
