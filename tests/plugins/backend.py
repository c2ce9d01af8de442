"""A build backend of one file: what packages for tests need, without a download."""

from __future__ import annotations

import base64
import hashlib
import tomllib
import zipfile
from pathlib import Path
from typing import Any


def build_wheel(folder: str, settings: Any = None, metadata: Any = None) -> str:
    """The wheel of the package in the current folder, with all its modules and entry points."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    files = {str(path): path.read_bytes() for path in sorted(Path().glob("tramai_*/*.py"))}
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    points = "\n".join(
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in found.items())])
        for group, found in project["entry-points"].items()
    )
    info = f"{stem}.dist-info"
    files[f"{info}/METADATA"] = head.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: backend 1\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = points.encode()
    rows = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]).encode()
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder) / name, "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    return name


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
