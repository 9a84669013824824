// An action of the user: `busy` while it runs, and the `error` of its last run.
import { useRef, useState } from "preact/hooks";

// `run` is a handler of events such as submit. It does nothing while the action is running.
/** @param {() => any} act */
export function useAction(act) {
  const [state, setState] = useState({ busy: false, error: /** @type {import("../types").Problem} */ (null) });
  const isRunning = useRef(false);
  /** @param {Event} [event] */
  const run = async (event) => {
    event?.preventDefault();
    if (isRunning.current) return;
    isRunning.current = true;
    setState({ busy: true, error: null });
    let error = null;
    try {
      await act();
    } catch (problem) {
      error = problem;
    }
    isRunning.current = false;
    setState({ busy: false, error });
  };
  return { ...state, run };
}
