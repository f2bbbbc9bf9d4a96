// Python in a worker: the page stays responsive, and a program in the kernel tab reaches no document.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const ready = (async () => {
  const [python, archive] = await Promise.all([
    loadPyodide({ indexURL: new URL("./pyodide/", self.location).href }),
    fetch("./tilewright.zip").then((found) => {
      if (!found.ok) throw new Error(`tilewright.zip: ${found.status}`);
      return found.arrayBuffer();
    }),
  ]);
  python.unpackArchive(archive, "zip", { extractDir: "/tilewright" });
  python.runPython(`
import sys
sys.path.insert(0, "/tilewright")
from tilewright.explorer import stand_in
stand_in.install()
from tilewright.explorer.tabs import respond
`);
  return python.globals.get("respond");
})();

ready.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ failed: String(error.message ?? error) }),
);

onmessage = async ({ data: { id, request } }) => {
  const respond = await ready;
  let answer;
  try {
    answer = JSON.parse(respond(JSON.stringify(request)));
  } catch (error) {
    const last = String(error.message).trim().split("\n").pop();
    answer = { error: { message: `The explorer failed: ${last}`, field: "", position: -1 } };
  }
  postMessage({ id, answer });
};
