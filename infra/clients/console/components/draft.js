// Text that is typed and not sent yet: it is kept in the browser until it is sent or discarded.
import { useRef, useState } from "preact/hooks";
import { read, write } from "../storage.js";

// Return [text, setText, take]. `take(sent)` removes what was sent; what was typed after it stays.
export function useDraft(name, initial = "") {
  const [text, setText] = useState(() => read(name) ?? initial);
  const latest = useRef(text);
  const change = (next) => {
    latest.current = next;
    setText(next);
    write(name, next === initial ? undefined : next);
  };
  const take = (sent) => change(latest.current.startsWith(sent) ? latest.current.slice(sent.length) : latest.current);
  return [text, change, take];
}
