"""All tabs, and what the page asks of them: JSON in, JSON out."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from tilewright.explorer.answer import Tab, answer, tex
from tilewright.explorer.kernel_tab import KERNEL
from tilewright.explorer.layouts_tab import LAYOUTS, SWIZZLES
from tilewright.explorer.streamk_tab import STREAM_K
from tilewright.explorer.threads_tab import THREADS, TMA

TABS = {tab.name: tab for tab in (LAYOUTS, SWIZZLES, THREADS, TMA, STREAM_K, KERNEL)}


def described() -> list[dict[str, Any]]:
    """The tabs and their fields, from which the page builds its forms.

    >>> [tab["name"] for tab in described()]
    ['layouts', 'swizzle', 'threads', 'tma', 'streamk', 'kernel']
    """
    return [_described(tab) for tab in TABS.values()]


def _described(tab: Tab) -> dict[str, Any]:
    fields = [asdict(entry) for entry in tab.fields]
    samples = [{"name": name, "texts": texts} for name, texts in tab.samples]
    told = {"name": tab.name, "title": tab.title, "about": tab.about, "live": tab.live}
    return {**told, "fields": fields, "samples": samples}


def respond(request: str) -> str:
    """What the page's worker calls: ``{"tab", "texts"}`` gives the tab's answer; with ``"tex"``, the number of a
    picture, that picture as LaTeX.

    >>> respond('{"tab": "layouts", "texts": {"expression": "(4,8"}}')
    '{"error": {"message": "expected ), found the end", "field": "expression", "position": 4}}'
    """
    asked = json.loads(request)
    tab = TABS[asked["tab"]]
    if "tex" in asked:
        return json.dumps({"tex": tex(tab, asked["texts"], asked["tex"])})
    return json.dumps(answer(tab, asked["texts"]))
