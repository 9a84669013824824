// The shell: navigation, language and theme, sign-in, messages, and the page of the address.
import { Component, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { effect, signal, untracked } from "@preact/signals";
import { offline } from "./api.js";
import { completeSignIn, session, signInRequest, signOut } from "./auth.js";
import { ErrorBox } from "./components/error_box.js";
import { SignIn } from "./components/sign_in.js";
import { toast, Toasts } from "./components/toast.js";
import { html } from "./html.js";
import { LANGUAGES, language, loadStrings, setLanguage, t } from "./i18n.js";
import { PAGES } from "./pages.js";
import { link, route } from "./router.js";
import { read, write } from "./storage.js";

const THEMES = ["system", "light", "dark"];
const theme = signal(THEMES.includes(read("theme")) ? read("theme") : "system");
const shown = signal({ name: "", Page: null, error: null });
const menuOpen = signal(false);
let signInError = "";

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

// Load the page of the address when it changes.
async function showPage(name) {
  const known = PAGES.includes(name) ? name : "";
  try {
    const [module] = known ? await Promise.all([import(`./pages/${known}.js`), loadStrings(known)]) : [];
    if (route.value.page === name) shown.value = { name, Page: module?.default ?? null, error: null };
  } catch (error) {
    if (route.value.page === name) shown.value = { name, Page: null, error };
  }
}

function Shell() {
  const { name, Page, error } = shown.value;
  const { page, segments, query } = route.value;
  const main = useRef(null);
  const isFirst = useRef(true);
  const title = PAGES.includes(page) ? t(`app.pages.${page}`) : t("app.unknown_page");
  useEffect(() => {
    document.title = `${title} · Kho`;
  }, [title]);
  useEffect(() => {
    menuOpen.value = false;
    if (isFirst.current) isFirst.current = false;
    else main.current?.focus();
  }, [page]);
  const address = useRef(route.value);
  useEffect(() => {
    // The view that had the focus has left the page.
    if (address.current !== route.value && document.activeElement === document.body) main.current?.focus();
    address.current = route.value;
  }, [route.value]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      main.current.focus();
    }}>${t("app.skip")}</a>
    <${Header} current=${page} />
    ${offline.value && html`<p class="banner" role="status">${t("app.offline")}</p>`}
    ${signInError && html`<p class="banner" role="alert">${t("app.sign_in_failed", { reason: signInError })}</p>`}
    <main id="main" tabindex="-1" ref=${main}>
      ${error && html`<${LoadFailure} error=${error} />`}
      ${
        !error &&
        name === page &&
        Page &&
        html`<${Boundary} key=${page} address=${route.value}>
        <${Page} segments=${segments} query=${query} /><//>`
      }
      ${
        !error &&
        name === page &&
        !Page &&
        html`<h1>${title}</h1><p><a href=${link("start")}>${t("app.to_start")}</a>
        </p>`
      }
    </main>
    ${signInRequest.value && html`<${SignIn} />`}
    <${Toasts} />`;
}

// A page that cannot be loaded: the server is away, or has a newer console than this tab.
function LoadFailure({ error }) {
  return html`<${Failure} title=${t("app.load_failed")} advice=${t("app.load_advice")} error=${error} />`;
}

function Failure({ title, advice, error }) {
  return html`<h1>${title}</h1>
    <p>${advice}</p>
    <${ErrorBox} error=${error} />
    <p><button onClick=${() => location.reload()}>${t("app.reload")}</button></p>`;
}

// An error boundary: a page that fails to render shows the failure, until the address changes.
class Boundary extends Component {
  state = { error: null };

  static getDerivedStateFromError(error) {
    return { error };
  }

  componentDidUpdate({ address }) {
    if (this.state.error && address !== this.props.address) this.setState({ error: null });
  }

  render({ children }, { error }) {
    if (!error) return children;
    return html`<${Failure} title=${t("app.page_failed")} advice=${t("app.page_advice")} error=${error} />`;
  }
}

function Header({ current }) {
  return html`<header class="top">
    <a class="brand" href=${link("start")}><span class="mark" aria-hidden="true"></span>Kho</a>
    <button class="menu-button quiet" aria-expanded=${menuOpen.value} aria-controls="menu"
      onClick=${() => (menuOpen.value = !menuOpen.value)}>${t("app.menu")}</button>
    <nav id="menu" class=${menuOpen.value ? "open" : ""} aria-label=${t("app.navigation")}>
      <ul>${PAGES.map(
        (name) => html`<li key=${name}>
        <a href=${link(name)} aria-current=${name === current ? "page" : undefined}
          onClick=${() => (menuOpen.value = false)}>${t(`app.pages.${name}`)}</a></li>`,
      )}
      </ul>
      <${Preferences} />
    </nav>
  </header>`;
}

function Preferences() {
  const [busy, setBusy] = useState(false);
  const change = async (code) => {
    setBusy(true);
    try {
      await setLanguage(code);
    } catch {
      toast(t("app.language_failed"), "wrong");
    }
    setBusy(false);
  };
  return html`<div class="preferences">
    <label><span class="hidden">${t("app.language")}</span>
      <select value=${language.value} disabled=${busy} onChange=${(event) => change(event.target.value)}>
        ${Object.entries(LANGUAGES).map(([code, label]) => html`<option value=${code} lang=${code}>${label}</option>`)}
      </select></label>
    <label><span class="hidden">${t("app.theme")}</span>
      <select value=${theme.value} onChange=${(event) => {
        theme.value = event.target.value;
        write("theme", theme.value);
      }}>
        ${THEMES.map((each) => html`<option value=${each}>${t(`app.themes.${each}`)}</option>`)}
      </select></label>
    ${session.value.kind !== "none" && html`<button class="quiet" onClick=${signOut}>${t("app.sign_out")}</button>`}
  </div>`;
}

await loadStrings("app");
signInError = await completeSignIn();
effect(() => {
  const { page } = route.value;
  untracked(() => showPage(page)); // not again when its strings are there
});
render(html`<${Shell} />`, document.getElementById("app"));
