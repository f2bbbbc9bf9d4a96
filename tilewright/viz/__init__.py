"""Pictures: SVG, PNG, PDF, LaTeX and coloured text of layouts, tensors, thread-value maps, atoms, banks, rasters, time.

``*_figure`` functions give a :class:`Figure`, which shows itself in notebooks and writes itself with ``save``.
``render_*_svg`` functions write a file at once; ``display_*`` are the same pictures for a notebook.

Pictures are data first: ``figure.py`` has panels of cells (with colours of ``colouring.py``), ``timeline_figure.py``
bars and arrows. ``figure_drawing.py`` and ``timeline_drawing.py`` draw them on a canvas (``canvas.py``), of which
``svg.py``, ``png.py``, ``pdf.py`` and ``tikz.py`` are the kinds; ``terminal.py`` prints text. A module for each kind
of picture makes the data: ``layouts.py``, ``tensors.py``, ``thread_values.py``, ``banks.py``, ``raster.py``,
``gantt_chart.py``, ``swizzle_bits.py``, ``cluster.py``, ``streamk_plan.py``, ``tma_box.py``.
"""

from tilewright._names import attach

attach(__name__)
