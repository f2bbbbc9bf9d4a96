"""The explorer's page in headless Chromium; skipped where Playwright, Chromium or Pyodide's npm package is missing."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright.cli.explore import serving
from tilewright.errors import ArgumentError
from tilewright.explorer.answer import answer
from tilewright.explorer.site import RUNTIME, bundle, find_runtime, write
from tilewright.explorer.tabs import MODULES, described, tab_of

ROOT = Path(__file__).parents[2]
SECONDS = 120_000  # milliseconds that Python may take to load


def test_the_files_of_the_page(tmp_path: Path) -> None:
    write(tmp_path, None)
    assert json.loads((tmp_path / "tabs.json").read_text(encoding="utf-8")) == json.loads(json.dumps(described()))
    assert {"index.html", "explorer.css", "explorer.js", "worker.js"} <= {path.name for path in tmp_path.iterdir()}
    assert bundle() == (tmp_path / "tilewright.zip").read_bytes(), "equal sources give equal files"
    for tab in MODULES:
        first = tmp_path / "first" / f"{tab}.json"
        assert first.exists() == tab_of(tab).live
        assert not tab_of(tab).live or json.loads(first.read_text(encoding="utf-8")) == answer(tab_of(tab), {})
    page = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("[ew]*.js")) + (
        tmp_path / "index.html"
    ).read_text(encoding="utf-8")
    assert "http://" not in page and "https://" not in page, "nothing is loaded from elsewhere"


def test_without_the_runtime_a_sentence_says_how_to_get_it(command: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert "npm install pyodide@" in command("explore", "--no-browser").complaint
    assert "not the folder of Pyodide" in command("explore", "--runtime", tmp_path).complaint
    for name in RUNTIME:
        (tmp_path / name).write_bytes(b"")
    assert find_runtime(tmp_path) == tmp_path
    done = command("explore", "--runtime", tmp_path, "--write", tmp_path / "page")
    assert done.code == 0 and (tmp_path / "page" / "pyodide" / "pyodide.mjs").exists()


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with serving(tmp_path) as server, pytest.raises(ArgumentError, match="--port 0 takes a free one"):
        serving(tmp_path, server.server_port)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        runtime = find_runtime(None, [ROOT / "build/explorer/node_modules/pyodide"])
    except ArgumentError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("explorer")
    write(folder, runtime)
    with serving(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Iterator[Any]:
    """One page with Python in it, for tests that each begin with a tab of their own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = context.new_page()
    made.failures = []
    made.on("pageerror", lambda error: made.failures.append(str(error)))
    made.goto(address)
    python_is_there(made)
    yield made
    context.close()


def python_is_there(page: Any) -> None:
    page.wait_for_function("!document.querySelector('#status').textContent.startsWith('Loading')", timeout=SECONDS)


def answered(page: Any) -> None:
    page.wait_for_function("document.querySelector('#status').textContent.startsWith('answered')", timeout=SECONDS)


def go(page: Any, address: str, fragment: str) -> None:
    page.goto(address + fragment)
    answered(page)


@pytest.mark.parametrize("tab", [*MODULES])
def test_each_tab_at_two_widths(page: Any, tab: str) -> None:
    page.click(f"nav button[value={tab}]")
    if not tab_of(tab).live:
        page.click("#run")
    answered(page)
    assert page.locator("#answer svg, #answer .code").count() >= 1
    assert page.locator("#error").is_hidden() and not page.failures
    assert page.locator("nav button[aria-selected=true]").inner_text() == tab_of(tab).title
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.set_viewport_size({"width": 1280, "height": 900})


def test_the_first_picture_is_there_before_python(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.route("**/pyodide.mjs", lambda route: None)  # Python is still on its way
    page.goto(address)
    page.wait_for_selector("#answer svg")
    assert page.inner_text("#status").startswith("Loading")
    page.click("nav button[value=streamk]")
    page.wait_for_selector("#answer figcaption:text('why this plan')")
    page.goto(address + "#layouts?expression=(2%2C2)%3A(2%2C1)")
    page.wait_for_timeout(200)
    assert page.locator("#answer > *").count() == 0, "another state waits for Python"
    page.close()


def test_the_next_visit_begins_with_the_memory_of_this_one(browser: Any, address: str) -> None:
    context = browser.new_context()
    kept = "caches.open('tilewright-explorer').then((one) => one.keys()).then((names) => names.length)"
    first = context.new_page()
    first.goto(address)
    for _ in range(SECONDS // 200):
        if first.evaluate(kept):
            break
        first.wait_for_timeout(200)
    first.close()
    visit = context.new_page()
    visit.goto(address)
    visit.wait_for_function("document.querySelector('#status').textContent.includes('kept from the last visit')")
    visit.goto(address + "#streamk?m=512")
    answered(visit)
    assert "Stream-K" in visit.inner_text("#answer") and visit.locator("#error").is_hidden()
    visit.click("nav button[value=kernel]")
    visit.click("#run")
    answered(visit)
    assert visit.locator("#answer .code").count() == 3, "files that the memory does not hold are there too"
    visit.evaluate("""async () => {
        const cache = await caches.open('tilewright-explorer'), [name] = await cache.keys();
        await cache.put(name, new Response('damaged'));
    }""")
    visit.close()
    last = context.new_page()
    last.goto(address + "#layouts?expression=(2%2C2)%3A(2%2C1)")
    answered(last)
    context.close()


def test_the_address_is_the_state(page: Any, address: str) -> None:
    go(page, address, "#layouts?expression=complement(4%3A2%2C+24)")
    assert "complement(4:2, 24) = (2,3):(1,8)" in page.inner_text("#answer")
    page.fill("[name=expression]", "(2,2):(2,1)")
    page.wait_for_function("!document.querySelector('#answer').textContent.includes('complement')")
    assert page.url.endswith("#layouts?expression=%282%2C2%29%3A%282%2C1%29")


def test_pictures_that_an_edit_does_not_change_stay(page: Any, address: str) -> None:
    go(page, address, "#swizzle")
    page.evaluate("for (const one of document.querySelectorAll('#answer figure')) one.stays = true")
    page.fill("[name=offset]", "9")
    page.wait_for_function("document.querySelectorAll('#answer figure')[1].stays === undefined")
    stays = "[...document.querySelectorAll('#answer figure')].map((one) => one.stays ?? false)"
    assert page.evaluate(stays) == [True, False, True]
    assert page.locator("#answer figcaption").all_inner_texts()[1].startswith("the bits of an offset")


def test_a_mistake_has_its_caret_and_the_last_picture_stays(page: Any, address: str) -> None:
    go(page, address, "#layouts?expression=(4%2C8)%3A(8%2C1)")
    before = page.inner_html("#answer")
    page.fill("[name=expression]", "coalesc(4)")
    page.wait_for_selector("#error", state="visible")
    text, caret, message = page.inner_text("#error").split("\n")
    assert (text, caret) == ("coalesc(4)", "^") and "did you mean coalesce" in message
    assert page.inner_html("#answer") == before
    assert page.get_attribute("[name=expression]", "aria-invalid") == "true"
    page.fill("[name=expression]", "coalesce(4:1)")
    page.wait_for_selector("#error", state="hidden")


def test_a_link_to_a_kernel_runs_nothing(page: Any, address: str) -> None:
    page.goto(address + "#kernel?program=print(1)")
    page.wait_for_timeout(300)
    assert page.locator("#answer > *").count() == 0 and page.input_value("[name=program]") == "print(1)"
    page.click("#run")
    page.wait_for_selector("#error", state="visible")
    assert "compiles no kernel" in page.inner_text("#error")


@pytest.mark.parametrize("sample", [name for name, _ in tab_of("kernel").samples])
def test_the_programs_that_come_with_it_are_staged(page: Any, address: str, sample: str) -> None:
    page.goto(address + "#kernel")
    page.get_by_role("button", name=sample).click()
    page.wait_for_function("document.querySelector('#answer h2, #error:not([hidden])')")
    answered(page)
    assert page.locator("#answer .code").count() == 3 and page.locator("#error").is_hidden()


def test_linked_source_lines_are_highlighted(page: Any, address: str) -> None:
    page.goto(address + "#kernel")
    page.click("#run")
    answered(page)
    page.hover(".code span:text('c[i] = t + t_1')")
    lit = page.locator(".code span.linked").all_inner_texts()
    assert any("a[i] + b[i]" in text for text in lit) and any("store" in text for text in lit)


def test_a_click_follows_a_thread(page: Any, address: str) -> None:
    go(page, address, "#threads")
    page.locator("g.c[data-key=T5]").first.click()
    page.wait_for_function("!document.querySelector('g.c[data-key=T6]')")
    assert page.input_value("[name=thread]") == "5" and page.url.endswith("#threads?thread=5")


def test_pictures_are_saved(page: Any, address: str) -> None:
    go(page, address, "#layouts?expression=(2%2C2)%3A(2%2C1)")
    for name, begin in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("TikZ", b"")):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"as {name}").first.click()
        content = Path(download.value.path()).read_bytes()
        assert content.startswith(begin) and len(content) > 300


def test_a_runtime_that_does_not_load(browser: Any, tmp_path: Path) -> None:
    write(tmp_path, None)
    with serving(tmp_path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.wait_for_function("document.querySelector('#status').textContent.includes('did not load')")
        assert "tilewright layout" in page.inner_text("#status")
        page.close()
        server.shutdown()
