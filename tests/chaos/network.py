"""A link that can be cut: a network namespace whose only way to the server is a pair of virtual interfaces."""

from __future__ import annotations

import os
import shutil
import subprocess


def why_not() -> str | None:
    """Why there can be no such link here; None when there can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if shutil.which("ip") is None:
        return "there is no `ip`: apt-get install iproute2"
    made = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    return None if made.returncode == 0 else "this system allows no network namespaces"


class Link:
    """A namespace, and this side's address of the link to it."""

    def __init__(self) -> None:
        number = os.getpid() % 16384
        self._name, self._here, there = f"chaos{number}", f"cha{number}", f"chb{number}"
        net = f"10.{200 + number // 8192}.{number // 64 % 128}.{number % 64 * 4}"
        first, last = net.rsplit(".", 1)
        self.address, other = f"{first}.{int(last) + 1}", f"{first}.{int(last) + 2}"
        self.others = f"{net}/30"
        self.front = ("ip", "netns", "exec", self._name)
        _ip("netns", "add", self._name)
        _ip("link", "add", self._here, "type", "veth", "peer", "name", there, "netns", self._name)
        _ip("addr", "add", f"{self.address}/30", "dev", self._here)
        _ip("link", "set", self._here, "up")
        for words in (("addr", "add", f"{other}/30", "dev", there), ("link", "set", there, "up")):
            _ip("-n", self._name, *words)
        _ip("-n", self._name, "link", "set", "lo", "up")

    def cut(self) -> None:
        """Nothing comes through any more, and nobody is told."""
        _ip("link", "set", self._here, "down")

    def mend(self) -> None:
        """It works again."""
        _ip("link", "set", self._here, "up")

    def remove(self) -> None:
        """Take it away."""
        _ip("link", "del", self._here)
        _ip("netns", "del", self._name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)
