"""Sphinx' settings for the site of `make docs`. The source is the checkout itself: pages stay where links name them."""  # noqa: INP001 Sphinx reads it as a script

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "Trainplane"
author = "the Trainplane authors"
copyright = author  # noqa: A001 Sphinx' name
extensions = ["myst_parser", "pages"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "examples/**.md", "tests/security/fuzz/README.md"]
exclude_patterns = ["README.md", "build", "dist", ".*", "src", "lab", "tests/unit"]
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # what a program prints need not be of any language

# -- Markdown, as a Git host reads it ---------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# -- looks ------------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = "Trainplane"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/versions.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5a8a", "color-brand-content": "#0b5a8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4f0", "color-brand-content": "#7cc4f0"},
}
