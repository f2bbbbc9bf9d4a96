"""The page of the command line: every command with its arguments and options, from the program itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from tilewright.cli.app import app


def text() -> str:
    """The page as Markdown."""
    root: Any = typer.main.get_command(app)
    intro = "`tilewright COMMAND --help` shows the same. `python -m tilewright` is `tilewright`."
    lines = ["# The command line", "", intro]
    lines += ["", "| command | |", "|---|---|"]
    lines += [f"| [`{name}`](#tilewright-{name}) | {_summary(command)} |" for name, command in root.commands.items()]
    for name, command in root.commands.items():
        lines += ["", f"## tilewright {name} {{ #tilewright-{name} }}", "", _markdown(command.help or ""), ""]
        rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
        lines += ["| | | default |", "|---|---|---|", *rows] if rows else []
    return "\n".join(lines) + "\n"


def _summary(command: Any) -> str:
    return _markdown(command.get_short_help_str(limit=200))


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    name = ", ".join(parameter.opts) if is_option else (parameter.metavar or parameter.name.upper())
    default = "" if parameter.default in (None, (), [], "", False) or callable(parameter.default) else parameter.default
    required = "required" if parameter.required else ""
    return f"| `{name.replace('|', '&#124;')}` | {_cell(parameter.help or '')} | {_cell(str(default)) or required} |"


def _cell(text: str) -> str:
    return _markdown(text).replace("\n", " ").replace("|", "\\|")


def _markdown(text: str) -> str:
    """Rich's marks and form feeds are left out."""
    return re.sub(r"\[/?(?:bold|dim|cyan|green|red|yellow)\]", "", text).replace("\b", "").replace("\f", "").strip()


def write(folder: Path) -> None:
    (folder / "command_line.md").write_text(text(), encoding="utf-8")
