"""Reports that other programs read, held against what these can read."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

COUNTS = {"name", "tests", "failures", "errors", "skipped", "time"}
TEXT = ({"type", "message"}, set[str]())
JUNIT = {
    "testsuites": (COUNTS - {"skipped"}, {"testsuite"}),
    "testsuite": (COUNTS, {"testcase"}),
    "testcase": ({"name", "classname", "time", "file", "line"}, {"failure", "error", "system-out"}),
    "failure": TEXT,
    "error": TEXT,
    "system-out": (set[str](), set[str]()),
}
"""What Jenkins and GitLab read alike: attributes and children by element. There is no standard."""


def junit(text: str) -> ElementTree.Element:
    """The root of a report, every element of it known to its readers."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    for element in root.iter():
        names, inside = JUNIT[element.tag]
        assert element.attrib.keys() <= names, element.attrib
        assert {part.tag for part in element} <= inside
    return root
