"""The documentation as a site: ``python -m tools.website`` (``make site``) builds it into build/site."""
