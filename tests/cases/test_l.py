"""Secrets: they reach where they must, and are nowhere at rest."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .servers import Server, answer
from .support import call, problems, save

VALUE = "S3cr3t-Val+/=ue"
TOP = "secrets: {TOKEN: {env: TRAMAI_CASE_TOKEN}}"

# L01


@pytest.mark.parametrize(
    "step",
    [
        "ai: {model: 'demo:echo', prompt: 'use ${{ secrets.TOKEN }}'}",
        "shell: {argv: [echo, '${{ secrets.TOKEN }}']}",
        "gate: {check: '${{ true }}', reason: '${{ secrets.TOKEN }}'}",
        "local: {call: 'tests.engine.functions:count', with: {name: '${{ secrets.TOKEN }}'}}",
    ],
)
def test_a_secret_may_not_stand_where_it_would_be_seen(step: str) -> None:
    save(f"- {{id: a, {step}}}", TOP)
    assert [problem["code"] for problem in problems("case.yaml")] == ["TRM302"]


def everywhere(tmp_path: Path) -> bytes:
    """All that is kept, and the names of what keeps it."""
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "case.yaml"]
    return b"".join(str(path).encode() + path.read_bytes() for path in files)


def test_a_secret_reaches_its_sinks_and_rests_nowhere(
    serve: Callable[..., Server],
    finished: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    server = serve(lambda method, path, headers, body: answer(200, (path + headers["authorization"]).encode() + body))
    save(
        f"""
        - id: ask
          http:
            post: "{server.url}/${{{{ secrets.TOKEN | urlencode(safe='') }}}}"
            query: {{key: "${{{{ secrets.TOKEN }}}}"}}
            headers: {{Authorization: "Bearer ${{{{ secrets.TOKEN }}}}"}}
            json: {{key: "${{{{ secrets.TOKEN }}}}"}}
            allow_private: true
        - id: tell
          shell:
            run: |
              printf %s "$TOKEN" | wc -c
              echo "$TOKEN"; echo "$TOKEN" >&2
            env: {{TOKEN: "${{{{ secrets.TOKEN }}}}"}}
        - id: read
          shell:
            run: |
              wc -c < "$KEY" | sed 's/$/ in a file/'
              cat "$KEY" "$BOTH"
            files: {{KEY: "${{{{ secrets.TOKEN }}}}", BOTH: {{key: "${{{{ secrets.TOKEN }}}}"}}}}
        - id: fail
          shell: {{run: 'echo "it is $TOKEN" >&2; exit 3', env: {{TOKEN: "${{{{ secrets.TOKEN }}}}"}}}}
        """,
        f"{TOP}\noutputs: {{ask: '${{{{ steps.ask.output }}}}'}}",
    )
    env = {"TRAMAI_CASE_TOKEN": VALUE}
    runs = [finished("run", "case.yaml", *more, env=env) for more in (["--json"], ["-v", "--debug"])]
    assert [run.returncode for run in runs] == [1, 1]
    looks = [("show", "@last", "-v"), ("show", "@last", "--json"), ("logs", "@last"), ("list", "--json")]
    seen = "".join(run.stdout + run.stderr for run in [*runs, *(finished(*look) for look in looks)])
    kept = everywhere(tmp_path)
    assert VALUE not in seen
    assert VALUE.encode() not in kept
    assert "***" in seen
    assert b"***" in kept
    _, path, headers, body = server.asked[0]
    assert headers["authorization"] == f"Bearer {VALUE}"
    assert path == "/S3cr3t-Val%2B%2F%3Due?key=S3cr3t-Val%2B%2F%3Due"
    assert body.decode().replace("\\/", "/") == f'{{"key":"{VALUE}"}}'
    assert "S3cr3t-Val%2B" not in seen
    assert b"S3cr3t-Val%2B" not in kept
    assert "15\\n" in seen, "the step itself received the whole value"
    assert "15 in a file" in seen


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
def test_what_is_kept_belongs_to_its_owner_only(umask: int, tmp_path: Path) -> None:
    save("- {id: a, shell: echo x}")
    before = os.umask(umask)
    try:
        assert call("run", "case.yaml").status == 0
    finally:
        os.umask(before)
    for path in Path(".tramai").rglob("*"):
        if path.name != ".gitignore":
            allowed = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) & ~allowed == 0, path
    assert stat.S_IMODE(Path(".tramai").stat().st_mode) == 0o700
