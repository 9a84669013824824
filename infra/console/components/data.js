// Data of a page that is loaded when inputs change, or again and again.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { poll } from "../api.js";

// Load by `load(signal)` whenever one of `inputs` changes. Return {value, error, loading, reload, setValue}.
// With `every` (milliseconds) it is loaded again and again while the page is shown.
export function useData(load, inputs = [], { every = 0 } = {}) {
  const [state, setState] = useState({ value: undefined, error: null, loading: true });
  const again = useRef(() => {});
  useEffect(() => {
    let stopped = false;
    const controller = new AbortController();
    const run = async (signal) => {
      setState((old) => ({ ...old, loading: true }));
      try {
        const value = await load(signal);
        if (!stopped) setState({ value, error: null, loading: false });
      } catch (error) {
        if (!stopped && error.name !== "AbortError") setState((old) => ({ ...old, error, loading: false }));
        throw error;
      }
    };
    setState({ value: undefined, error: null, loading: true });
    if (every) {
      const polling = poll(run, { every });
      again.current = polling.now;
      return () => {
        stopped = true;
        polling.stop();
      };
    }
    again.current = () => run(controller.signal).catch(() => {});
    again.current();
    return () => {
      stopped = true;
      controller.abort();
    };
  }, inputs);
  const reload = useCallback(() => again.current(), []);
  const setValue = useCallback((value) => setState({ value, error: null, loading: false }), []);
  return { ...state, reload, setValue };
}
