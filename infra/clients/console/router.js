// Addresses of pages: #/documents/<id>?revision=3. Segments and query are decoded.
import { signal } from "@preact/signals";

export const route = signal(parse(location.hash));

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

// Return the address of a page.
export function link(page, segments = [], query = {}) {
  const path = [page, ...segments.map((each) => encodeURIComponent(each).replaceAll("%3A", ":"))].join("/");
  const parameters = new URLSearchParams(
    Object.entries(query).filter(([, value]) => value !== undefined && value !== ""),
  );
  return `#/${path}${parameters.size ? `?${parameters}` : ""}`;
}

// Go to a page, or to the one shown once more. `replace` leaves no entry in the browser's history.
export function go(address, { replace = false } = {}) {
  if (!replace && address !== location.hash) {
    location.hash = address;
    return;
  }
  history.replaceState(null, "", address);
  route.value = parse(address);
}

function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page, ...segments] = path.split("/").map(decoded);
  return {
    page: page || "start",
    segments: segments.filter(Boolean),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

// Return a text without percent-encoding; one whose encoding is malformed stays as it is.
export function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
