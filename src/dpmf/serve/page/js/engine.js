// The page's end of the worker: questions out, promises of answers back.

const SOURCE = new URL("worker.js", import.meta.url).href;

/**
 * Start the worker. It is started from a blob, because it then inherits the policy of this page: what the page may
 * not connect to, the worker may not either.
 */
export async function startEngine() {
  const blob = new Blob([`import ${JSON.stringify(SOURCE)};`], { type: "text/javascript" });
  const address = URL.createObjectURL(blob);
  const worker = new Worker(address, { type: "module" });
  const waiting = new Map();
  let last = 0;
  await new Promise((resolve, reject) => {
    worker.onmessage = resolve;
    worker.onerror = () => reject(new Error("the worker did not start"));
  });
  URL.revokeObjectURL(address);
  worker.onmessage = ({ data: { id, answer, failure } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (failure === undefined) resolve(answer);
    else reject(new Error(failure));
  };
  const ask = (question, content, transfer = []) =>
    new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      worker.postMessage({ id: last, question, content }, transfer);
    });
  return { ask, askLatest: latestOnly(ask) };
}

/**
 * Return a function that asks at most one question at a time and skips those that were overtaken meanwhile. What
 * receives an answer is told whether it is the latest.
 */
function latestOnly(ask) {
  let busy = false;
  let next = null;
  const run = async (question, content, receive) => {
    busy = true;
    try {
      const answer = await ask(question, content);
      receive(answer, next === null);
    } finally {
      busy = false;
      if (next) {
        const again = next;
        next = null;
        run(...again);
      }
    }
  };
  return (question, content, receive) => {
    if (busy) next = [question, content, receive];
    else run(question, content, receive);
  };
}
