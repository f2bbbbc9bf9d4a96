"""All tabs, and what the page asks of them: JSON in, JSON out."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from typing import Any

from tilewright.explorer.answer import Tab, answer, tex

# Imported when they are asked for: the browser shows the first tab before it has read what the others need.
MODULES = {
    "layouts": "layouts_tab",
    "swizzle": "layouts_tab",
    "threads": "threads_tab",
    "tma": "threads_tab",
    "streamk": "streamk_tab",
    "kernel": "kernel_tab",
}


def tab_of(name: str) -> Tab:
    """The tab called ``name``.

    >>> tab_of("tma").title
    'TMA box'
    """
    tab: Tab = getattr(import_module(f"tilewright.explorer.{MODULES[name]}"), name.upper())
    return tab


def described() -> list[dict[str, Any]]:
    """The tabs and their fields, from which the page builds its forms.

    >>> [tab["name"] for tab in described()]
    ['layouts', 'swizzle', 'threads', 'tma', 'streamk', 'kernel']
    """
    return [_described(tab_of(name)) for name in MODULES]


def _described(tab: Tab) -> dict[str, Any]:
    fields = [asdict(entry) for entry in tab.fields]
    samples = [{"name": name, "texts": texts} for name, texts in tab.samples]
    described = {"name": tab.name, "title": tab.title, "about": tab.about, "live": tab.live}
    return {**described, "fields": fields, "samples": samples}


def warm(name: str) -> None:
    """Import what a tab needs, in advance: a tab that answers at once has answered once, a program is not run.

    >>> warm("tma")
    """
    tab = tab_of(name)
    if tab.live:
        answer(tab, {})


def respond(request: str) -> str:
    """What the page's worker calls: ``{"tab", "texts"}`` gives the tab's answer; with ``"tex"``, the number of a
    picture, that picture as LaTeX.

    >>> respond('{"tab": "layouts", "texts": {"expression": "(4,8"}}')
    '{"error": {"message": "expected ), found the end", "field": "expression", "position": 4}}'
    """
    question = json.loads(request)
    tab = tab_of(question["tab"])
    if "tex" in question:
        return json.dumps({"tex": tex(tab, question["texts"], question["tex"])})
    return json.dumps(answer(tab, question["texts"]))
