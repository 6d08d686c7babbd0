# SPDX-License-Identifier: Apache-2.0
"""Check the site that `make docs` built: every internal link, the names in the reference, and the search index.

python tools/check_site.py [FOLDER]     # default: build/docs
"""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pages
import public_api
from sphinx.search.en import SearchEnglish
from sphinx.util.inventory import InventoryFile

ROOT = Path(__file__).resolve().parents[1]


class _Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name == "id" and value:
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Links to files or anchors that the site does not have."""
    written = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    found = {path.resolve(): _Page(path) for path in written}
    broken = []
    for path, page in found.items():
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            has_anchor = not url.fragment or target not in found or unquote(url.fragment) in found[target].anchors
            if not target.exists() or not has_anchor:
                broken.append(f"{path.relative_to(site)}: broken link {link}")
    return broken


def missing_names(site: Path) -> list[str]:
    """Public names without an entry in the reference; NumPy's functions are in a table of their own."""
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    known = {name for kind, objects in inventory.data.items() if kind.startswith("py:") for name in objects}
    missing = [name for name in public_api.public_names() if name not in known]
    listed = (site / "numpy.html").read_text()
    missing += [f"np.{name}" for name in public_api.module_names("numpy") if f">np.{name}</" not in listed]
    return [f"reference: {name} is missing" for name in missing]


def unanswered_questions(site: Path) -> list[str]:
    """Questions that no heading has, or whose words the search index does not find on the page."""
    script = (site / "searchindex.js").read_text()
    index: dict[str, Any] = json.loads(script[script.index("{") : script.rindex("}") + 1])
    english = SearchEnglish({})
    problems = []
    for question, page in pages.QUESTIONS.items():
        number = index["docnames"].index(page)
        titles = [title for title, places in index["alltitles"].items() if any(place[0] == number for place in places)]
        if not any(question.lower().rstrip("?") in title.lower() for title in titles):
            problems.append(f"search: no heading of {page} has {question!r}")
        words = [english.stem(word.lower()) for word in english.split(question) if english.word_filter(word.lower())]
        for word in words:
            found = [index[kind].get(word, []) for kind in ("terms", "titleterms")]
            if len(word) > 1 and not any(number in (hit if isinstance(hit, list) else [hit]) for hit in found):
                problems.append(f"search: {word!r} of {question!r} is not found on {page}")
    return problems


def main(folder: str = "build/docs") -> int:
    """Print every problem; the exit code."""
    site = (ROOT / folder).resolve()
    problems = broken_links(site) + missing_names(site) + unanswered_questions(site)
    print("\n".join(problems) or f"{site}: links, names and search are complete")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
