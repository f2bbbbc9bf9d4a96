// Python in a worker: the page stays responsive, and a program in the kernel tab reaches no document.
import { loadPyodide, version } from "./pyodide/pyodide.mjs";

const KEPT = "tilewright-explorer"; // the browser's store of the memory of a Python that has imported the tabs
const IDLE = 400; // milliseconds after an answer before something is done in advance
const BEGIN = `
import sys
sys.path.insert(0, "/tilewright")
from tilewright.explorer import stand_in
stand_in.install()
from tilewright.explorer.tabs import MODULES, respond, warm
`;

const place = { indexURL: new URL("./pyodide/", self.location).href };
let ahead = []; // the tabs that are not imported yet
let keep = null; // keeps the memory for the next visit, where a browser can
let kept = false; // whether it was kept at the last one

const ready = (async () => {
  const found = await fetch("./tilewright.zip");
  if (!found.ok) throw new Error(`tilewright.zip: ${found.status}`);
  const archive = await found.arrayBuffer();
  const store = await storeOf(archive);
  const python = (await store?.load()) ?? (await loadPyodide({ ...place, _makeSnapshot: Boolean(store) }));
  python.unpackArchive(archive, "zip", { extractDir: "/tilewright" });
  kept = Boolean(store?.loaded);
  if (!kept) {
    python.runPython(BEGIN);
    keep = store && keeper(python, store);
  }
  ahead = python.runPython("','.join(MODULES)").split(",");
  // The first tab answers once before the page says that Python is ready: the first edit takes no longer than others.
  if (!kept && ahead.length) python.runPython(`warm("${ahead.shift()}")`);
  return python;
})();

/** The memory kept for this Pyodide and this package; none where pages have no store, as those of plain http. */
async function storeOf(archive) {
  if (!self.caches || !self.crypto?.subtle) return null;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", archive));
  const name = `./kept-${version}-${digest.slice(0, 8).join("-")}`;
  const cache = await caches.open(KEPT);
  return {
    loaded: false,
    async load() {
      const found = await cache.match(name);
      if (!found) return null;
      try {
        const python = await loadPyodide({ ...place, _loadSnapshot: new Uint8Array(await found.arrayBuffer()) });
        this.loaded = true;
        return python;
      } catch {
        await cache.delete(name); // damaged: as if nothing had been kept
        return null;
      }
    },
    async save(memory) {
      for (const old of await cache.keys()) await cache.delete(old);
      await cache.put(name, new Response(memory));
    },
  };
}

/** Keeps the last memory that Pyodide can load: one as large as it was at the start. */
function keeper(python, store) {
  const size = () => python._module.HEAP8.length;
  const begin = size();
  let memory = null;
  return {
    look() { if (size() === begin) memory = python.makeMemorySnapshot(); },
    async save() { if (memory) await store.save(memory).catch(() => {}); }, // a full disk: nothing is kept
  };
}

let timer = 0;

/** In a quiet moment: what the next tab needs; when all have it, the memory is kept. */
async function prepare() {
  const python = await ready;
  if (ahead.length) {
    python.runPython(`warm("${ahead.shift()}")`);
    keep?.look();
    timer = setTimeout(prepare, IDLE);
  } else {
    keep?.save();
    keep = null;
  }
}

ready.then(
  () => { postMessage({ ready: true, kept }); timer = setTimeout(prepare, IDLE); },
  (error) => postMessage({ failed: String(error.message ?? error) }),
);

onmessage = async ({ data: { id, request } }) => {
  const python = await ready;
  clearTimeout(timer);
  if (request.tab === "kernel") keep = null; // what a user's program did is not for the next visit
  let answer;
  try {
    // No handle of a Python function is held: memory with handles cannot be kept.
    python.globals.set("request", JSON.stringify(request));
    answer = JSON.parse(python.runPython("respond(request)"));
  } catch (error) {
    const last = String(error.message).trim().split("\n").pop();
    answer = { error: { message: `The explorer failed: ${last}`, field: "", position: -1 } };
  }
  postMessage({ id, answer });
  timer = setTimeout(prepare, IDLE);
};
