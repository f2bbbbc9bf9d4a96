"""``tilewright explore``: the explorer's page from a local server."""

from __future__ import annotations

import functools
import tempfile
import webbrowser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.explorer.site import find_runtime, write

HERE = "127.0.0.1"  # not reachable from other machines


class Handler(SimpleHTTPRequestHandler):
    """Files of one folder, quietly; browsers load modules and WebAssembly by these types only."""

    extensions_map = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: Any) -> None:
        pass


def run(port: int, runtime: Path | None, browser: bool, write_to: Path | None) -> None:
    """Serve the page until interrupted; or write its files into a folder, for a server of files."""
    pyodide = find_runtime(runtime)
    if write_to is not None:
        write(write_to, pyodide)
        print(f"wrote {write_to}/index.html; it needs a server: python -m http.server -d {write_to}")
        return
    with tempfile.TemporaryDirectory(prefix="tilewright_") as folder:
        write(Path(folder), pyodide)
        with serving(Path(folder), port) as server:
            address = f"http://{HERE}:{server.server_port}/"
            print(f"the explorer is at {address} (Ctrl-C ends it)", flush=True)
            if browser:
                webbrowser.open(address)
            server.serve_forever()


def serving(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the files in ``folder``; port 0 is any that is free."""
    try:
        return ThreadingHTTPServer((HERE, port), functools.partial(Handler, directory=str(folder)))
    except OSError as error:
        raise ArgumentError(f"port {port} cannot be used: {error.strerror}; --port 0 takes a free one") from error
