"""The explorer: layouts, swizzles, threads and values, TMA, Stream-K and kernels on one page in the browser.

``tilewright explore`` serves the page (``page/``), which runs this package itself by Pyodide, in a worker. Each tab is
a ``Tab`` of ``answer.py``: its fields, and one Python function from what they hold to an ``Answer`` of pictures and
text; the page knows no tab by name. ``expression.py`` and ``instructions.py`` read expressions and names for the
command line, too. Start with ``tabs.py``; ``site.py`` writes the page's files.
"""
