// Sign-in: the console is the client `kho-console` of Kho's own OAuth server. Tokens live in memory alone.
import { signal } from "@preact/signals";

const CLIENT = "kho-console";
const METADATA = "/.well-known/oauth-authorization-server";
const PENDING = "kho.sign-in"; // in sessionStorage: state and verifier of a visit to the sign-in page, no token
const EARLY_MS = 60_000;

export const isOneMachine = document.documentElement.dataset.machine === "one";
// The session: kind is "none", "key" or "oauth"; role is known of OAuth alone.
export const session = signal({ kind: "none", role: null });
// A sign-in that is waited for: null, or {refused} where a key or token was refused.
export const signInRequest = signal(null);

let token = "";
let refreshToken = "";
let expiresAt = Infinity;
let waiting = null;
let refreshing = null;
let cancelledAt = -1;

export class SignInCancelled extends Error {
  constructor() {
    super("The sign-in was cancelled.");
    this.name = "SignInCancelled";
  }
}

// Complete a sign-in that the address brings back. Return its error's text, or an empty string.
export async function completeSignIn() {
  const query = new URLSearchParams(location.search);
  if (!query.has("state")) return "";
  const pending = takePending();
  history.replaceState(null, "", location.pathname + (pending?.hash ?? ""));
  dispatchEvent(new HashChangeEvent("hashchange")); // replaceState sends no event
  if (!pending || pending.state !== query.get("state")) return "";
  const server = await authorizationServer();
  if (!server || query.get("iss") !== server.issuer) return "";
  if (!query.has("code")) return query.get("error_description") ?? query.get("error") ?? "";
  return exchange(server, {
    grant_type: "authorization_code",
    code: query.get("code"),
    code_verifier: pending.verifier,
    redirect_uri: redirectUri(server),
    resource: server.issuer,
  });
}

// Return the Authorization header's value, or an empty string.
export async function authorization() {
  if (token && refreshToken && Date.now() > expiresAt - EARLY_MS) await refresh();
  return token ? `Bearer ${token}` : "";
}

// Wait until there is another token than the one that was refused. Throw SignInCancelled if the person gives up, or
// has done so since the request was sent, at `sentAt` of the page's clock: a person is asked for a thing once.
// A token endpoint that fails for now asks for no sign-in: the refresh token is tried again by the next call.
export async function replaceToken(refused, sentAt) {
  if (refused !== (token ? `Bearer ${token}` : "")) return;
  if (refreshToken && (await refresh())) return;
  if (refreshToken) throw failure("SIGN_IN_NOT_RENEWED", "The sign-in could not be renewed. Try again in a moment.");
  if (sentAt <= cancelledAt) throw new SignInCancelled();
  if (!waiting) {
    waiting = {};
    waiting.promise = new Promise((resolve, reject) => Object.assign(waiting, { resolve, reject }));
  }
  signInRequest.value = { refused: Boolean(refused) };
  await waiting.promise;
}

export function useKey(key) {
  setToken(key.trim(), "", Infinity, { kind: "key", role: null });
}

export function cancelSignIn() {
  signInRequest.value = null;
  cancelledAt = performance.now();
  waiting?.reject(new SignInCancelled());
  waiting = null;
}

// Return the authorization server's metadata, or null if this server issues no tokens.
export async function authorizationServer() {
  try {
    const response = await fetch(METADATA);
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

// Return where the sign-in happens, if that is another origin than this page's.
export function otherOrigin(server) {
  return server && server.issuer !== location.origin ? `${server.issuer}/console/${location.hash}` : "";
}

// Leave for the sign-in page.
export async function startSignIn(server) {
  // Browsers hide it from pages of plain HTTP, but for those of the own machine.
  if (!crypto.subtle) throw failure("INSECURE", "Signing in needs HTTPS.");
  const [state, verifier] = [randomText(), randomText()];
  sessionStorage.setItem(PENDING, JSON.stringify({ state, verifier, hash: location.hash }));
  const challenge = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  const query = new URLSearchParams({
    response_type: "code",
    client_id: CLIENT,
    redirect_uri: redirectUri(server),
    code_challenge: challenge,
    code_challenge_method: "S256",
    scope: "admin",
    resource: server.issuer,
    state,
  });
  location.assign(`${server.authorization_endpoint}?${query}`);
}

export async function signOut() {
  const revoked = refreshToken || (session.value.kind === "oauth" ? token : "");
  setToken("", "", Infinity, { kind: "none", role: null });
  if (revoked) {
    const body = new URLSearchParams({ token: revoked, client_id: CLIENT });
    await fetch("/oauth/revoke", { method: "POST", body }).catch(() => {}); // it ends by itself otherwise
  }
  location.reload();
}

async function refresh() {
  refreshing ??= authorizationServer()
    .then((server) => server && exchange(server, { grant_type: "refresh_token", refresh_token: refreshToken }))
    .then((problem) => problem === "")
    .finally(() => {
      refreshing = null;
    });
  return refreshing;
}

async function exchange(server, form) {
  let response, answer;
  try {
    const body = new URLSearchParams({ client_id: CLIENT, ...form });
    response = await fetch(server.token_endpoint, { method: "POST", body });
    answer = await response.json();
  } catch {
    return "offline";
  }
  if (!answer.access_token) {
    if ([400, 401].includes(response.status)) refreshToken = ""; // refused, such as by invalid_grant
    return answer.error_description ?? answer.error ?? "refused";
  }
  const expiry = Date.now() + (answer.expires_in ?? 3600) * 1000;
  setToken(answer.access_token, answer.refresh_token ?? "", expiry, { kind: "oauth", role: answer.scope ?? null });
  return "";
}

function setToken(value, refreshValue, expiry, newSession) {
  [token, refreshToken, expiresAt] = [value, refreshValue, expiry];
  session.value = newSession;
  if (!value) return;
  signInRequest.value = null;
  waiting?.resolve();
  waiting = null;
}

function failure(code, message) {
  return Object.assign(new Error(message), { code });
}

function takePending() {
  try {
    return JSON.parse(sessionStorage.getItem(PENDING));
  } catch {
    return null;
  } finally {
    sessionStorage.removeItem(PENDING);
  }
}

function redirectUri(server) {
  return `${server.issuer}/console/`;
}

function randomText() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes) {
  const text = String.fromCharCode(...new Uint8Array(bytes));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
