"""`http`: secrets reach where they must, and rest nowhere, whoever says them again."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from .cases.servers import Server, answer
from .cases.support import save
from .cli.conftest import finished, place, start, tramai
from .http_proxy import proxying

__all__ = ["finished", "place", "start", "tramai"]

SECRET = "C4nary-Val+/=ue-8"
SHELL = {"CANARY": SECRET}
TOP = "secrets: {S: {env: CANARY}}"
S = "${{ secrets.S }}"


def echo(method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
    """Says everything again: in the body, in headers, and as where to go."""
    said = f"{method} {path} {headers.get('authorization')} {headers.get('x-key')} ".encode() + body
    again = {"x_again": path, "link": f"<{path}>; rel=next", "location": path}
    return answer(500 if "fail" in path else 200, said, content_type="text/plain", **again)


def nowhere(folder: Path, *shown: str) -> None:
    """The secret, and what authentication makes of it, is in no file and in nothing that was shown."""
    basic = base64.b64encode(f"me:{SECRET}".encode()).decode()
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "case.yaml")
    for spelling in (SECRET, "C4nary-Val%2B", basic[4:20], SECRET[:12]):
        assert spelling.encode() not in kept, spelling
        assert all(spelling not in text for text in shown), spelling


@pytest.mark.parametrize(
    "settings",
    [
        f"post: URL/a, auth: {{basic: [me, '{S}']}}, body: '{S}'",
        f"post: URL/a, auth: {{bearer: '{S}'}}, json: {{k: '{S}'}}",
        f"post: URL/a, headers: {{X-Key: 'key {S}'}}, multipart: {{k: '{S}', j: {{text: '{S}', type: text/x}}}}",
        f"get: 'URL/{S}/fail', query: {{k: '{S}'}}",
        f"get: 'URL/{S}', query: {{k: '{S}'}}, max_response: 10",
        f"post: URL/fail, auth: {{basic: [me, '{S}']}}, form: {{k: '{S}'}}",
        f"get: 'URL/x?k={S}', paginate: {{next: '${{{{ result.links.next }}}}', items: '${{{{ [result.body] }}}}'}}",
        f"get: 'URL/{S}', save_to: saved.txt, max_download: 5",
        f"get: 'http://127.0.0.1:1/{S}'",
    ],
)
def test_a_secret_that_is_sent_rests_nowhere(
    settings: str,
    place: Path,
    finished: Callable[..., subprocess.CompletedProcess[str]],
    tramai: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(echo)
    try:
        save(
            f"- {{id: ask, http: {{{settings.replace('URL', server.url)}, allow_private: true}}}}",
            f"{TOP}\noutputs: {{it: '${{{{ steps.ask.output }}}}'}}",
        )
        ran = [finished("run", "case.yaml", *more, env=SHELL) for more in (["--json"], ["-v", "--debug"])]
    finally:
        server.close()
    monkeypatch.setenv("CANARY", SECRET)
    looked = [tramai(*look) for look in (("show", "@last", "-v"), ("show", "@last", "--json"))]
    assert [one.exit_code for one in looked] == [0, 0]
    nowhere(place, *(text for one in (*ran, *looked) for text in (one.stdout, one.stderr)))
    if "127.0.0.1:1/" not in settings:
        sent = "".join(f"{path} {headers} {body!r}" for _, path, headers, body in server.asked)
        assert "C4nary" in sent or base64.b64encode(f"me:{SECRET}".encode()).decode() in sent


def test_the_password_of_a_proxy_rests_nowhere(place: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    (place / "tramai.toml").write_text("", encoding="utf-8")

    async def go() -> tuple[str, list[str]]:
        async with proxying("another") as proxy:
            (place / "tramai.toml").write_text(
                f'[http]\nproxy = "http://127.0.0.1:{proxy.port}"\nproxy_auth = ["user", "{S}"]\n', encoding="utf-8"
            )
            save("- {id: ask, http: {get: 'https://some.test/'}}", TOP)
            process = start("run", "case.yaml", "-v", "--debug", env=SHELL)
            out, err = await asyncio.to_thread(process.communicate)
            assert process.returncode == 1
            return out + err, [headers["proxy-authorization"] for _, headers in proxy.asked]

    shown, sent = asyncio.run(go())
    assert sent == ["Basic " + base64.b64encode(f"user:{SECRET}".encode()).decode()]
    assert "407" in shown
    nowhere(place, shown)
