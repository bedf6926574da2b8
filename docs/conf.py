"""How Sphinx makes the site of what `python -m tools.site` puts together."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tensorlib._core.base.version import __version__  # noqa: E402  the checkout is not on the path

project = "tensorlib"
author = "the tensorlib developers"
copyright = author
version = release = __version__

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["files"]
myst_heading_anchors = 4                # as GitHub makes them: the same links hold there
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]     # some pages begin with a heading of the second level
python_maximum_signature_line_length = 90
toc_object_entries = False
add_module_names = True
language = "en"

html_theme = "furo"
html_title = f"tensorlib {version}"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_extra_path = []                    # set by `tools.site`: files that pages show as text
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False        # it would need a server: pages read other pages
pygments_style, pygments_dark_style = "friendly", "monokai"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7fb4f0", "color-brand-content": "#7fb4f0"},
}
