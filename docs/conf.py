# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of the site: `make docs` builds it into build/docs."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

# Kernels warn that they use TCP; the build must not print warnings that mean nothing.
profile = ROOT / "build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = str(profile.parent)

project = "Shardwise"
author = copyright = "the Shardwise authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "public_api"]
# Tutorials are rendered from their notebooks, which the build executes.
exclude_patterns = ["tutorials/*.md"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_mime_priority_overrides = [("html", "text/html", 0)]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
maximum_signature_line_length = 88  # a longer signature has one parameter per line
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False
default_role = "code"

html_theme = "sphinx_book_theme"
html_title = "Shardwise"
html_static_path = ["_static"]
html_css_files = ["shardwise.css"]
# One search field, in the sidebar: without this, the theme adds another one in a bar above the page.
html_theme_options = {"show_toc_level": 2, "home_page_in_toc": True, "navbar_persistent": []}
html_show_copyright = False
# Outputs are not copied.
copybutton_selector = ", ".join(f"div.highlight-{name} pre" for name in ("python", "ipython3", "console", "sh"))
copybutton_prompt_text = "$ "
