"""The documentation site: `python -m tools.site` builds it, `tools.site.browser` tries it.

The guides are the pages in docs/, the gallery is examples/README.md, and the reference is made from
the live package, a page for each function and class.
"""
