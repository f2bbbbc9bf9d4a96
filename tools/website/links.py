"""Links of the built pages: every target and anchor exists, and no page loads anything from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
    """The links of a page, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif given.get(LOADED.get(tag, ""), "") and given.get("rel") != "canonical":
            self.loaded.append(given[LOADED[tag]])


def broken(site: Path) -> list[str]:
    """What is wrong with the links below ``site``, a line each; empty if all is well."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found = []
    for path, page in sorted(pages.items()):
        name = path.relative_to(site.resolve())
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    found.append(f"{name}: loads {link} from elsewhere")
                continue
            if parts.path.startswith("/"):
                found.append(f"{name}: {link} is absolute, and wrong where the site is not at the root of its server")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name}: {link}: there is no such file")
            # What follows a question mark in an anchor is the explorer's: the state of a tab.
            elif target in pages and unquote(parts.fragment).split("?")[0] not in pages[target].anchors:
                found.append(f"{name}: {link}: the page has no such anchor")
    return found
