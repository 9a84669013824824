// The data that the browser keeps: preferences and unsaved edits in localStorage, never tokens or keys.
const PREFIX = "kho.";

// Return a stored value, or undefined.
export function read(name) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name) ?? "null") ?? undefined;
  } catch {
    return undefined; // storage is switched off, or was written by something else
  }
}

// Store a value; undefined removes it. Return false if the browser refuses, because it is full, for example.
export function write(name, value) {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

// Return the names of the stored values that begin with a prefix.
export function namesBeginning(prefix) {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(PREFIX + prefix))
      .map((key) => key.slice(PREFIX.length));
  } catch {
    return []; // storage is switched off
  }
}
