// The dialog that opens where the server wants to know who calls.
import { useEffect, useState } from "preact/hooks";
import {
  authorizationServer,
  cancelSignIn,
  isOneMachine,
  otherOrigin,
  signInRequest,
  startSignIn,
  useKey,
} from "../auth.js";
import { html } from "../html.js";
import { t } from "../i18n.js";
import { useAction } from "./action.js";
import { Dialog } from "./dialog.js";
import { ErrorBox } from "./error_box.js";

export function SignIn() {
  const [server, setServer] = useState(undefined);
  const [key, setKey] = useState("");
  useEffect(() => {
    authorizationServer().then(setServer);
  }, []);
  const elsewhere = otherOrigin(server);
  const { busy, error, run: start } = useAction(() => startSignIn(server));
  return html`<${Dialog} title=${t("app.sign_in")} onClose=${cancelSignIn}>
    ${signInRequest.value?.refused && html`<p role="alert">${t("app.key_refused")}</p>`}
    <p>${t("app.sign_in_text")}</p>
    ${
      server &&
      !elsewhere &&
      html`<p><button class="primary" disabled=${busy} onClick=${start}>${t("app.sign_in")}
      </button></p>`
    }
    <${ErrorBox} error=${error} />
    ${elsewhere && html`<p>${t("app.sign_in_elsewhere")} <a href=${elsewhere}>${elsewhere}</a></p>`}
    ${server === null && !isOneMachine && html`<p>${t("app.no_sign_in")}</p>`}
    ${
      isOneMachine &&
      html`<form onSubmit=${(event) => {
        event.preventDefault();
        useKey(key);
      }}>
      <label>${t("app.key")}
        <input type="password" required autocomplete="off" spellcheck=${false} value=${key}
          onInput=${(event) => setKey(event.target.value)} />
      </label>
      <p class="faint">${t("app.key_help")}</p>
      <div class="actions"><button type="submit">${t("app.use_key")}</button></div>
    </form>`
    }
  <//>`;
}
