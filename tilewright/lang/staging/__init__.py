"""Staging: Python's control flow on run-time values becomes structured regions of the IR.

A function marked ``@cute.jit`` or ``@cute.kernel`` is rewritten once (:mod:`rewrite`): its ``if``, ``for``, ``while``,
``and``, ``or``, ``not``, conditional expressions and ``assert`` become calls into :mod:`runtime`, which decide early:
what is a Python value stays Python, what is a run-time value builds a region. The statements themselves stay where they
are, in one frame, on their own lines, so tracebacks and IR locations point at the user's file. ``docs/staging.md`` says
which module does what.
"""
