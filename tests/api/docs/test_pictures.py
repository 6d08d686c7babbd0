# SPDX-License-Identifier: Apache-2.0
"""The pictures of the pages are those of the programs, and each stands on a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tools import make_pictures, pages


@pytest.mark.parametrize("name", make_pictures.PICTURES)
def test_a_picture_is_what_its_program_draws_now(name: str) -> None:
    text = make_pictures.PICTURES[name]()
    assert (make_pictures.FOLDER / f"{name}.svg").read_text() == text, "python tools/make_pictures.py"
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_every_picture_is_shown_and_every_shown_picture_exists() -> None:
    texts = [path.read_text() for path in [*pages.pages(), pages.ROOT / "README.md"]]
    shown = {name for text in texts for name in re.findall(r"_static/pictures/(\w+)\.svg", text)}
    assert shown == set(make_pictures.PICTURES) == {path.stem for path in make_pictures.FOLDER.iterdir()}
