"""What a line at which a parser gave up was meant to be, told by its looks."""

from __future__ import annotations

import re


def yaml(text: str, offset: int) -> tuple[str, str, int] | None:
    """Message, advice and place for the line at an offset, or the one before it."""
    line, before, above = _around(text, offset)
    for one, key in ((line, before), (before, above)):
        indent = len(one) - len(one.lstrip())
        if re.search(r":\s*[|>][+-]?\d?\s*$", key) and indent <= len(key) - len(key.lstrip(" -")):
            return "the text of a block begins too far left", "indent it further than its key", offset
    if re.search(r'"[^"]*\$\{\{[^"]*"[^"]*', line):
        return "the quote ends inside the expression", "put '…' around the value, or quote with '…' inside it", offset
    if re.search(r":\s+\$\{\{.*(: |\{).*\}\}\s*$", line):
        return "a `:` inside an expression that is not quoted", "put '…' around the whole value", offset
    for one in (line, before):
        start = text.rfind(one, 0, offset + len(one)) if one else 0
        if found := re.match(r"\s*(-)[A-Za-z_]\w*:", one):
            return "a `-` without a blank behind it", "write `- `", start + found.start(1)
        if found := re.match(r"\s*(?:- )?([a-z_]\w*):[A-Za-z0-9\"'\[{]", one):
            what = f"`{found[1]}:` without a blank behind it"
            return what, f"write `{found[1]}: `", start + found.start(1)
    if found := re.fullmatch(r"\s*(?:- )?([a-z_]\w*)\s*", before):
        start = text.rfind(before, 0, offset) + found.start(1)
        return f"a `:` is missing after `{found[1]}`", f"write `{found[1]}: …`", start
    return None


def toml(text: str, offset: int) -> str | None:
    """Advice for the line at an offset."""
    line, _, _ = _around(text, offset)
    if re.match(r"tramai\s*:\s*\d", line):
        return "this is YAML: give the file a name that ends in .yaml"
    if re.match(r"\s*[\w-]+\s*:(\s|$)", line) or re.match(r"\s*[\w-]+\s+[\"'\[{\d]", line):
        return "TOML writes key = value"
    if re.search("[\u201c\u201d\u2018\u2019\u00ab\u00bb]", line):
        return "write straight quotes: \" or '"
    if re.search(r";\s*(#.*)?$", line):
        return "a line ends without a `;`"
    if re.search(r",\s*\}", line):
        return "no `,` stands before the }"
    if re.search(r"[=\[,]\s*[+-]?0\d", line):
        return "a number has no 0 before it; text needs quotes"
    if text[offset : offset + 1] == "\\" or re.search(r'"[^"]*\\[^btnfreuUx"\\]', line):
        return r"write \\ for a \, or put the text between '…'"
    if re.match(r"\s*//", line):
        return "a comment begins with #"
    if re.search(r"=\s*\{\s*$", line):
        return "a table in { } stands on one line; give it a header of its own, such as [steps.shell]"
    word = re.split(r"[,}\]\s]", text[offset : offset + 40])[0]
    value = line.partition("=")[2].strip()
    if word in ("True", "False", "TRUE", "FALSE", "yes", "no", "on", "off"):
        return f"write {'true' if word.lower() in ('true', 'yes', 'on') else 'false'}"
    if word.lower() in ("null", "none", "nil", "~"):
        return "TOML has no null: leave the key out"
    if value.startswith("${{"):
        return f'quote the expression: "{value}"'
    if value.startswith("'") and value.count("'") > 2:
        return "between '…' no ' can stand: use \"…\""
    if re.search(r"\[[^\]]*[\"'\d]\s+[\"'\d]", value):
        return "a `,` stands between two items"
    return None


def _around(text: str, offset: int) -> tuple[str, str, str]:
    """The line at an offset, and the two before it, blank ones left out."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    rows = [row for row in text[max(0, start - 4000) : start].split("\n") if row.strip()]
    before, above = ["", "", *rows][:-3:-1]
    return text[start : end if end >= 0 else len(text)][:4000], before, above
