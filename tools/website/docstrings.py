"""Docstrings as Markdown: what mkdocstrings reads of each object before it renders it (an extension of Griffe)."""

from __future__ import annotations

import re
from typing import Any

import griffe

from tools.website.parameters import with_table

ROLE = re.compile(r":\w+:`~?([^`]+)`")
SEVERAL = re.compile(r"^( +)(\w+(?:, \w+)+): (.*(?:\n\1 +.*)*)", re.MULTILINE)  # parameters that share a description


def markdown(text: str) -> str:
    """Cross-references as code, doctests and literal blocks as fenced code.

    >>> print(markdown("See :class:`~a.b.C`.\\n\\n>>> 1 + 1\\n2\\n\\nMore."))
    See `C`.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    More.
    """
    text = SEVERAL.sub(lambda m: "\n".join(f"{m[1]}{name}: {m[3]}" for name in m[2].split(", ")), text)
    text = ROLE.sub(lambda role: f"`{role[1].rsplit('.', 1)[-1]}`" if "~" in role[0] else f"`{role[1]}`", text)
    out: list[str] = []
    open_fence = ""  # the indentation of the doctest that is being copied, and a mark that there is one
    for line in text.split("\n"):
        stripped = line.strip()
        if not open_fence and stripped.startswith(">>> "):
            open_fence = line[: len(line) - len(line.lstrip())] + "|"
            out.append(f"{open_fence[:-1]}```pycon")
        elif open_fence and not stripped:
            out.append(f"{open_fence[:-1]}```")
            open_fence = ""
        elif not open_fence and stripped.endswith("::"):
            line = line.rstrip()[:-1]
        out.append(line)
    if open_fence:
        out.append(f"{open_fence[:-1]}```")
    return "\n".join(out)


class MarkdownDocstrings(griffe.Extension):
    """Every docstring goes through :func:`markdown`."""

    def on_object(self, *, obj: griffe.Object, loader: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            if isinstance(obj, griffe.Function):
                obj.docstring.value = with_table(obj.docstring.value, [p.name for p in obj.parameters])
            obj.docstring.value = markdown(obj.docstring.value)
