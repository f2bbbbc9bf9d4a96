"""Build the site: gather the pages in build/docs, let Zensical make build/site of them, check the links.

Zensical reads ``zensical.toml``. What is not written by hand is made by the other modules: the reference of the API,
the gallery, the notebooks with their outputs, the reference of the command line. Every warning is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tilewright.errors import ArgumentError
from tilewright.explorer import site as explorer
from tools.website import api, card, commands, gallery, links, measurements, notebooks, path, pictures, tutorials

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
OWN = Path(__file__).parent / "assets"

# Pages of the repository that are outside docs/, and their places in the site.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "bench/results": "measurements/index.md",
    **{
        f"bench/notes/{page.name}": f"measurements/{page.name.replace('README', 'index')}"
        for page in (ROOT / "bench" / "notes").glob("*.md")
    },
}
LINK = re.compile(r"(\]\()([^)\s#]+)")


def in_site(file: Path) -> Path | None:
    """Where a file of the repository is among the pages: programs and the like as they are, in ``files``."""
    if file.is_relative_to(DOCS):
        return PAGES / file.relative_to(DOCS)
    name = file.relative_to(ROOT).as_posix()
    if name in OUTSIDE:
        return PAGES / OUTSIDE[name]
    if not file.is_file():
        return None
    (PAGES / "files" / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, PAGES / "files" / name)
    return PAGES / "files" / name


def relinked(text: str, source: Path, target: Path) -> str:
    """The page's text with its links leading to where the files are in the site."""

    def link(match: re.Match[str]) -> str:
        if "://" in match[2]:
            return match[0]
        there = in_site((source.parent / match[2]).resolve())
        if there is None:
            return match[0]
        there = there.with_suffix(".md") if there.suffix == ".ipynb" else there  # the page that is made of it
        return match[1] + os.path.relpath(there, target.parent)

    return LINK.sub(link, text)


def gather() -> None:
    """Copy the pages that are written by hand."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(DOCS, PAGES, ignore=shutil.ignore_patterns("*.md", "*.ipynb"))
    shutil.copytree(OWN, PAGES / "assets", ignore=shutil.ignore_patterns("404.html"))
    card.draw(DOCS / "pictures", PAGES / card.PICTURE)
    written = {page: PAGES / page.relative_to(DOCS) for page in DOCS.rglob("*.md")}
    kept = (name for name in OUTSIDE if name.endswith(".md") and name != "README.md")
    written |= {ROOT / name: PAGES / OUTSIDE[name] for name in kept}
    for source, target in written.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(relinked(source.read_text(encoding="utf-8"), source, target), encoding="utf-8")


def render() -> None:
    """Run Zensical; exits with what it says when it, or what reads the docstrings, finds anything to warn of."""
    shutil.rmtree(SITE, ignore_errors=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8")
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    if done.returncode or "griffe: " in said or "mkdocstrings: " in said:
        sys.exit(said.split("Traceback")[0])


ANCHOR = re.compile(r'<a id="([^"]*__codelineno-[\w-]+)" name="\1" href="#\1"></a>')  # before each line of code
TITLE = re.compile(r"<title>Tilewright - Tilewright</title>")
HOME = "<title>Tilewright: CuTe in open Python</title>"


def finish() -> None:
    """Make the pages load nothing from elsewhere, and work at any address; put pictures and the social card in.

    For the search on pages that were opened as files Zensical loads a script from a server; ours is beside the pages.
    The page for wrong addresses is shown at any depth, so no relative address can be right on it: it is a page of its
    own, which looks for the start page. Lines of code are named by what is no link: a link has to have a text.
    """
    for page in SITE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        base = os.path.relpath(SITE, page.parent)
        text = text.replace("https://unpkg.com/iframe-worker/shim", f"{base}/assets/iframe_worker.js")
        text = TITLE.sub(HOME, ANCHOR.sub(r'<span id="\1"></span>', text))
        text = card.add(pictures.inline(text, page), page.relative_to(SITE), base)
        page.write_text(text, encoding="utf-8")
    shutil.copy(OWN / "404.html", SITE / "404.html")


def explore() -> None:
    """Add the explorer, with its runtime where npm has installed that (``make site`` does)."""
    try:
        runtime = explorer.find_runtime(None)
    except ArgumentError as error:
        runtime = None
        print(f"the explorer of the site will not run: {error}")
    explorer.write(SITE / "explorer", runtime)


def check() -> None:
    """Exit with the list of broken links, if there are any."""
    if found := links.broken(SITE):
        sys.exit("\n".join(found))


STEPS: tuple[tuple[str, Callable[[], None]], ...] = (
    ("pages", gather),
    ("API", lambda: api.write(PAGES / "api")),
    ("command line", lambda: commands.write(PAGES)),
    ("pictures", lambda: gallery.write(PAGES)),
    ("path", lambda: path.write(PAGES / "path")),
    ("measurements", lambda: measurements.write(PAGES / "measurements")),
    ("tutorials", lambda: tutorials.write(PAGES / "tutorials")),
    ("notebooks", lambda: notebooks.write(PAGES / "notebooks")),
    ("site", render),
    ("offline", finish),
    ("explorer", explore),
    ("links", check),
)


def main() -> None:
    for name, act in STEPS:
        start = time.perf_counter()
        act()
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    print(f"the site is {SITE.relative_to(ROOT)}/index.html")
