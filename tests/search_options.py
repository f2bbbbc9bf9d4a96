"""What the searches that run as programs ask on their command lines."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A count of cases or of processes."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def add_options(parser: argparse.ArgumentParser) -> None:
    """How many cases, from which on, and in how many processes."""
    parser.add_argument("--cases", type=positive, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--jobs", type=positive, default=1, help="processes")
