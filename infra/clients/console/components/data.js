// Data of a page that is loaded when inputs change, or again and again.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { poll } from "../api.js";

/**
 * @template T
 * @typedef {{ value: T | undefined; error: import("../types").Problem; loading: boolean }} Loaded
 */

// Load by `load(signal)` whenever one of `inputs` changes. Return {value, error, loading, reload, setValue}.
// With `every` (milliseconds) it is loaded again and again while the page is shown.
/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T> | T} load
 * @param {any[]} inputs
 */
export function useData(load, inputs = [], { every = 0 } = {}) {
  const [state, setState] = useState(/** @type {Loaded<T>} */ ({ value: undefined, error: null, loading: true }));
  const again = useRef(() => {});
  useEffect(() => {
    let stop = () => {};
    const run = async (signal) => {
      setState((old) => ({ ...old, loading: true }));
      try {
        const value = await load(signal);
        if (!signal.aborted) setState({ value, error: null, loading: false });
      } catch (error) {
        if (!signal.aborted && error.name !== "AbortError") setState((old) => ({ ...old, error, loading: false }));
        throw error;
      }
    };
    setState({ value: undefined, error: null, loading: true });
    // Each start ends the run before it, so that a late answer never takes the place of a newer one.
    again.current = () => {
      stop();
      if (every) {
        stop = poll(run, { every }).stop;
        return;
      }
      const controller = new AbortController();
      stop = () => controller.abort();
      run(controller.signal).catch(() => {});
    };
    again.current();
    return () => stop();
  }, inputs);
  const reload = useCallback(() => again.current(), []);
  const setValue = useCallback((/** @type {T} */ value) => setState({ value, error: null, loading: false }), []);
  return { ...state, reload, setValue };
}
