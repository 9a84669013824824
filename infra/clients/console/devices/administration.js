// Settings of operators for all devices: firmware for boards of a kind, and the webhook.
import { useState } from "preact/hooks";
import { call } from "../api.js";
import { CopyButton } from "../components/copy_button.js";
import { useData } from "../components/data.js";
import { ActionForm, ConfirmButton } from "../components/dialog.js";
import { ErrorBox } from "../components/error_box.js";
import { PagedList, usePages } from "../components/paged_list.js";
import { toast } from "../components/toast.js";
import { visible } from "../components/visible_text.js";
import { html } from "../html.js";
import { formatTime, t } from "../i18n.js";

/** @type {import("methods").Methods["device-server/webhooks/set"]["params"]["events"]} */
const EVENTS = ["notification", "presence", "firmware"];
const NO_FIRMWARE = { board: "", version: "", url: "" };

export function Administration() {
  return html`<div class="split talk"><${Firmware} /><${Webhook} /></div>`;
}

function Firmware() {
  const [fields, setFields] = useState(NO_FIRMWARE);
  const pages = usePages(async (cursor, signal) => {
    const page = await call("device-server/firmware/list", { cursor }, { signal });
    return { items: page.firmware, next_cursor: page.next_cursor };
  });
  const field = (
    name,
    attributes,
  ) => html`<label>${t(`devices.firmware_fields.${name}`)}<input required autocomplete="off" spellcheck=${false}
    value=${fields[name]} onInput=${(event) => setFields({ ...fields, [name]: event.target.value })} ...${attributes} />
      </label>`;
  const set = async () => {
    await call("device-server/firmware/set", fields);
    toast(t("devices.firmware_is_set", fields));
    setFields(NO_FIRMWARE);
    pages.reload();
  };
  const remove = async (board) => {
    await call("device-server/firmware/delete", { board });
    toast(t("devices.firmware_deleted", { board }));
    pages.reload();
  };
  return html`<section class="panel" aria-labelledby="firmware"><h2 id="firmware">${t("devices.firmware")}</h2>
    <p class="faint">${t("devices.firmware_text")}</p>
    <${PagedList} pages=${pages} label=${t("devices.firmware")} keyOf=${(each) => each.board}
      empty=${html`<p class="faint">${t("devices.no_firmware")}</p>`}>
      ${(
        each,
      ) => html`<div class="entry bin-entry"><div><strong>${visible(each.board)} ${visible(each.version)}</strong>
          <p class="faint"><span class="code">${visible(each.url)}</span> · ${formatTime(each.set_at)}</p>
          ${
            each.failed_devices.length > 0 &&
            html`<p class="state note">
            ${t("devices.firmware_failed", { devices: each.failed_devices.map(visible).join(", ") })}</p>`
          }</div>
        <${ConfirmButton} action=${t("devices.stop_firmware")} label=${`${t("devices.stop_firmware")} ${each.board}`}
          text=${t("devices.stop_firmware_text", { board: each.board })} onConfirm=${() => remove(each.board)} />
          </div>`}
    <//>
    <${ActionForm} action=${t("devices.set_firmware")} act=${set}>
      ${field("board", { maxlength: 64, placeholder: "bread-compact-wifi" })}
      ${field("version", {
        maxlength: 32,
        placeholder: "2.4.3",
        pattern: "[0-9]+([.][0-9]+)*",
        title: t("devices.version_rule"),
      })}
      ${field("url", { maxlength: 1024, placeholder: "https://files.example.com/xiaozhi-2.4.3.bin" })}
    <//>
  </section>`;
}

function Webhook() {
  const stored = useData((signal) => call("device-server/webhooks/get", {}, { signal }));
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState(EVENTS);
  const [created, setCreated] = useState(null);
  const { value } = stored;
  const set = async () => {
    setCreated(await call("device-server/webhooks/set", { url, events }));
    setUrl("");
    stored.reload();
  };
  const remove = async () => {
    await call("device-server/webhooks/delete");
    setCreated(null);
    toast(t("devices.webhook_deleted"));
    stored.reload();
  };
  const choice = (event) => html`<label><input type="checkbox" checked=${events.includes(event)}
    onChange=${({ target }) =>
      setEvents(
        EVENTS.filter((each) => (each === event ? target.checked : events.includes(each))),
      )} /> ${t(`devices.event_kinds.${event}`)}</label> `;
  return html`<section class="panel" aria-labelledby="webhook"><h2 id="webhook">${t("devices.webhook")}</h2>
    <p class="faint">${t("devices.webhook_text")}</p>
    <${ErrorBox} error=${stored.error} onRetry=${stored.reload} />
    ${value && !value.url && html`<p class="faint">${t("devices.no_webhook")}</p>`}
    ${
      value?.url &&
      html`<div class="entry bin-entry"><div><span class="code">${visible(value.url)}</span>
        <p class="faint">
          ${value.events.map((each) => t(`devices.event_kinds.${each}`)).join(", ")} · ${formatTime(value.created_at)}
          </p>
        <p class="faint">${t("devices.webhook_waiting", { count: value.waiting_devices })}
          ${value.dropped > 0 && ` ${t("devices.webhook_dropped", { count: value.dropped })}`}</p>
        ${value.problem && html`<p class="state note">${visible(value.problem)}</p>`}</div>
      <${ConfirmButton} action=${t("devices.delete_webhook")} text=${t("devices.delete_webhook_text")}
        onConfirm=${remove} /></div>`
    }
    ${
      created &&
      html`<div class="notice" role="status"><p>${visible(created.test)}</p><p>${t("devices.webhook_secret")}</p>
      <p><span class="code">${created.secret}</span> <${CopyButton} text=${created.secret} /></p></div>`
    }
    <${ActionForm} action=${t(value?.url ? "devices.replace_webhook" : "devices.set_webhook")} act=${set}>
      <label>${t("devices.webhook_url")}<input type="url" required maxlength="2048" autocomplete="off"
        spellcheck=${false} placeholder="https://hooks.example.com/kho"
        value=${url} onInput=${(event) => setUrl(event.target.value)} /></label>
      <fieldset><legend>${t("devices.webhook_events")}</legend>${EVENTS.map(choice)}</fieldset>
    <//>
  </section>`;
}
