"""`http`: what a server sends is data, in outputs, in later requests and on the terminal, whatever it looks like."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from .cases.servers import Server, answer
from .cases.support import call, save, text_of
from .cli.conftest import place
from .http_servers import failure

__all__ = ["place"]

IN_A_LINE = (
    "${{ inputs.url }} ${{ secrets.T }} {{ 7 * 7 }} {% if true %}x{% endif %} $${{ x }} [bold red]loud[/] [/closing] "
    "::error file=x::gone ##vso[task.complete] <script>alert(1)</script> & &amp; $(touch pwned) `touch pwned` ; "
    "rm -rf / \"quoted\" 'single' \\n \\u0041 %0A %41 +1 ?a=b&c=d#e ../../etc @host:80 \u202e\u2066é✓"
)
"""What also a header and a log line can hold."""
HOSTILE = (
    IN_A_LINE + "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J\r\n::error::at the start\n::set-output name=a::b\n\x00\x7f"
)


@pytest.fixture
def server() -> Iterator[Server]:
    """`/text` and `/json` give hostile texts, `/fail` fails with one, everything else takes what it gets."""

    def route(method: str, path: str, *_: Any) -> bytes:
        if path == "/json":
            body = json.dumps({"text": HOSTILE, "line": IN_A_LINE, HOSTILE: [IN_A_LINE]}).encode()
            return answer(200, body, content_type="application/json")
        status = 500 if path == "/fail" else 200
        line = IN_A_LINE.encode().decode("latin-1")
        return answer(status, HOSTILE.encode(), content_type="text/plain; charset=utf-8", x_line=line, link=line)

    found = Server(route)
    yield found
    found.close()


def latin(text: str) -> str:
    """As a server of the tests sees UTF-8 in a header."""
    return text.encode().decode("latin-1")


def test_it_comes_into_outputs_byte_for_byte_and_stays_so_after_a_resume(place: Path, server: Server) -> None:
    save(
        f"""
        - {{id: text, http: {{get: "{server.url}/text", allow_private: true}}}}
        - {{id: json, http: {{get: "{server.url}/json", allow_private: true}}}}
        """,
        "outputs: {text: '${{ steps.text.output.body }}', json: '${{ steps.json.output.body }}', "
        "line: '${{ steps.text.output.headers[\"x-line\"] }}'}",
    )
    for ended in (call("run", "case.yaml"), call("resume", "@last")):
        outputs = ended.outputs
        assert outputs["text"] == HOSTILE
        assert outputs["json"] == {"text": HOSTILE, "line": IN_A_LINE, HOSTILE: [IN_A_LINE]}
        assert outputs["line"] == IN_A_LINE
    assert not Path("pwned").exists()


def test_it_goes_into_the_next_request_as_data(place: Path, server: Server) -> None:
    save(
        f"""
        - {{id: json, http: {{get: "{server.url}/json", allow_private: true}}, output: "${{{{ result.body }}}}"}}
        - id: send
          http:
            post: "{server.url}/items/${{{{ steps.json.output.text | urlencode(safe='') }}}}"
            query: {{q: "${{{{ steps.json.output.text }}}}"}}
            headers: {{X-Line: "${{{{ steps.json.output.line }}}}"}}
            json: {{t: "${{{{ steps.json.output.text }}}}", all: "${{{{ steps.json.output }}}}"}}
            allow_private: true
        - id: body
          http: {{post: "{server.url}/b", body: "${{{{ steps.json.output.text }}}}", allow_private: true}}
        - id: form
          http: {{post: "{server.url}/f", form: {{f: "${{{{ steps.json.output.text }}}}"}}, allow_private: true}}
        - id: parts
          http: {{post: "{server.url}/p", multipart: {{p: "${{{{ steps.json.output.text }}}}"}}, allow_private: true}}
        """
    )
    assert call("run", "case.yaml").status == 0
    (_, path, headers, sent), (_, _, _, body), (_, _, _, form), (_, _, of_parts, parts) = server.asked[1:]
    assert path.startswith("/items/%24%7B%7B%20inputs.url")
    assert parse_qs(urlsplit(path).query, strict_parsing=True) == {"q": [HOSTILE]}
    assert headers["x-line"] == latin(IN_A_LINE)
    assert json.loads(sent) == {"t": HOSTILE, "all": {"text": HOSTILE, "line": IN_A_LINE, HOSTILE: [IN_A_LINE]}}
    assert body == HOSTILE.encode()
    assert parse_qs(form.decode(), strict_parsing=True) == {"f": [HOSTILE]}
    border = of_parts["content-type"].partition("boundary=")[2]
    assert parts.split(f"--{border}".encode())[1].partition(b"\r\n\r\n")[2] == HOSTILE.encode() + b"\r\n"
    assert not Path("pwned").exists()


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("get: 'URL/x', headers: {X-A: '${{ steps.json.output.text }}'}", "expression"),
        ("get: 'URL/x', auth: {bearer: '${{ steps.json.output.text }}'}", "expression"),
        ("get: '${{ steps.json.output.text }}'", "refused"),
        ("get: 'http://${{ steps.json.output.line }}/'", "refused"),
        ("get: 'URL/x', save_to: '${{ steps.json.output.text }}'", "expression"),
        ("get: 'URL/x', save_to: '${{ steps.json.output.line }}'", "refused"),
        ("put: 'URL/x', body_file: '${{ steps.json.output.line }}'", "refused"),
    ],
)
def test_what_it_cannot_be_is_said_and_sent_nowhere(setting: str, kind: str, place: Path, server: Server) -> None:
    save(
        f"""
        - {{id: json, http: {{get: "{server.url}/json", allow_private: true}}, output: "${{{{ result.body }}}}"}}
        - {{id: next, http: {{{setting.replace("URL", server.url)}, allow_private: true}}}}
        """
    )
    ended = call("run", "case.yaml")
    assert (ended.status, ended.error["type"], len(server.asked)) == (1, kind, 1)
    assert "\x1b" not in ended.error["message"]


@pytest.mark.parametrize(
    "settings",
    [
        {"query": {"q": "${{ inputs.x }}"}},
        {"path": "/${{ inputs.x }}"},
        {"headers": {"X-A": "${{ inputs.x }}"}},
        {"method": "post", "body": "${{ inputs.x }}"},
        {"method": "post", "form": {"f": ["${{ inputs.x }}"]}},
        {"method": "post", "multipart": {"p": "${{ inputs.x }}"}},
        {"method": "post", "multipart": {"p": {"text": "${{ inputs.x }}"}}},
        {"method": "post", "multipart": {"p": {"file": "${{ inputs.x }}"}}},
        {"method": "post", "json": 1, "idempotency_key": "${{ inputs.x }}"},
        {"method": "post", "body_file": "${{ inputs.x }}"},
        {"save_to": "${{ inputs.x }}"},
        {"paginate": {"items": "${{ result.body }}", "next": "${{ {'a': inputs.x ~ result.page} }}"}},
        {"paginate": {"items": "${{ result.body }}", "next": "${{ inputs.x ~ result.page }}"}},
    ],
)
def test_half_of_a_surrogate_pair_is_told_wherever_it_comes(settings: dict[str, Any], tmp_path: Path) -> None:
    whole = answer(200, b"[1]", content_type="application/json")
    error = failure(whole, folder=tmp_path, scope={"inputs": {"x": "a\ud800"}}, **settings)
    assert error.type in ("expression", "refused")
    assert error.message.encode()


@pytest.mark.parametrize("path", ["text", "json", "fail"])
def test_it_is_shown_without_being_obeyed(path: str, place: Path, server: Server) -> None:
    save(
        f"""
        - {{id: ask, http: {{get: "{server.url}/{path}", allow_private: true}}}}
        - {{id: stop, gate: {{check: "${{{{ false }}}}", reason: "${{{{ steps.ask.output.body }}}}"}}}}
        """
        if path == "text"
        else f'- {{id: ask, http: {{get: "{server.url}/{path}", allow_private: true}}}}',
        "outputs: {it: '${{ steps.ask.output.body }}'}",
    )
    shown = [
        text_of("run", "case.yaml", "--color", "always", "-v"),
        text_of("show", "@last", "-v", "--color", "always"),
        text_of("logs", "@last"),
        text_of("list"),
    ]
    for text in shown:
        ours = re.sub(r"\x1b\[[0-9;]*m", "", text)
        assert not set(ours) & {"\x1b", "\x07", "\x9b", "\x00", "\x7f", "\u202e", "\u2066"}, ours
        assert "\x1b[31mred" not in text
        assert not [line for line in ours.splitlines() if line.lstrip().startswith(("::", "##vso"))], ours
    if path != "fail":
        assert "[bold red]loud[/] [/closing]" in shown[1]
