"""Files and folders as a store needs them: made by nobody else, replaced whole, flushed, and locked.

Everything is reached through the handle of its folder and no symbolic link is followed, so that nothing outside a
store's folder is ever read, written or removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import StoreUnavailable

PATIENCE = 30.0
"""Seconds to wait for another process before a call fails as busy."""

_NETWORK = {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "afs", "ceph", "glusterfs", "lustre"}
_NETWORK |= {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.davfs", "davfs"}
_NETWORK |= {
    "beegfs",
    "gpfs",
    "orangefs",
    "pvfs2",
    "fuse.juicefs",
    "fuse.mount-s3",
    "fuse.mountpoint-s3",
    "fuse.goofys",
}
_NETWORK |= {
    "fuse.blobfuse",
    "fuse.blobfuse2",
    "fuse.ceph",
    "fuse.ceph-fuse",
    "fuse.mfs",
    "fuse.mfsmount",
    "fuse.curlftpfs",
}

_FULL = "make room and resume; what was saved is intact"
_RIGHTS = "check the permissions of its files and folders"
_FAILURES: dict[int, tuple[str, str | None]] = {
    errno.ENOSPC: ("no space is left", _FULL),
    errno.EDQUOT: ("no space is left", _FULL),
    errno.EFBIG: ("a file of it may not grow any further", _FULL),
    errno.EACCES: ("it is not accessible", _RIGHTS),
    errno.EPERM: ("it is not accessible", _RIGHTS),
    errno.EROFS: ("it is not writable", _RIGHTS),
    errno.EIO: ("the disk failed to read or write", None),
    errno.EMFILE: ("too many files are open", "raise the limit (`ulimit -n`) and resume"),
    errno.ENFILE: ("too many files are open", None),
    errno.ENAMETOOLONG: ("its path is too long", None),
    errno.ELOOP: ("a symbolic link stands where a file of it should", "it is not followed; remove it"),
    errno.ENOTDIR: ("something else stands where a folder of it should", "symbolic links are not followed"),
}


Stamp = tuple[int, int, int]
"""What tells one version of a file from the next: every write makes a new file."""


class FlushFailed(OSError):
    """The disk did not take what was written: nobody knows what it holds now."""


class Strange(OSError):
    """Something that is no regular file stands where one should."""


def public(error: OSError) -> StoreUnavailable:
    """The error a person may read: never the system's own text, which names paths."""
    if isinstance(error, Strange):
        return StoreUnavailable(what="something that is no file stands where a file of it should")
    if isinstance(error, FlushFailed):
        return StoreUnavailable(what="the disk failed to write", hint="resume when the disk is sound")
    known = errno.errorcode.get(error.errno or 0, "unknown")
    what, hint = _FAILURES.get(error.errno or 0, (f"the file system failed ({known})", None))
    return StoreUnavailable(what=what, hint=hint)


class Folder:
    """An open folder. `name` is always one segment of a path."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @staticmethod
    def at(path: str) -> Folder:
        """Open the folder at a path of the user's: links on the way to it are theirs to set."""
        return Folder(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def child(self, name: str) -> Folder:
        """Open a folder in this one."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        return Folder(os.open(name, flags, dir_fd=self._handle))

    def make(self, name: str) -> Folder:
        """Make a folder in this one, and open it; this one still wants a `flush`. FileExistsError."""
        os.mkdir(name, 0o700, dir_fd=self._handle)
        return self.child(name)

    def names(self) -> list[str]:
        """What stands in it, in no order."""
        return os.listdir(self._handle)

    def stat(self, name: str) -> os.stat_result | None:
        """What is known of an entry, of a link itself; None where there is none."""
        try:
            return os.stat(name, dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, name: str, flags: int) -> int:
        """Open a regular file in it; the caller closes the handle."""
        # Without NONBLOCK the opening of a pipe that somebody put there would wait for ever.
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        handle = os.open(name, flags, 0o600, dir_fd=self._handle)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise Strange(errno.EINVAL, "not a regular file")
        return handle

    def create(self, name: str, data: bytes) -> os.stat_result:
        """A new file with this content, flushed; the folder itself still wants a `flush`. FileExistsError."""
        handle = self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write(handle, data, 0)
            flush(handle)
            return os.fstat(handle)
        finally:
            os.close(handle)

    def replace(self, name: str, data: bytes) -> os.stat_result:
        """Put a whole new file under a name: after a crash the old or the new one stands there, entirely."""
        part = f".{os.urandom(8).hex()}.part"
        try:
            made = self.create(part, data)
            os.rename(part, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(part)
            raise
        self.flush()
        return made

    def read(self, name: str, limit: int = -1) -> bytes:
        """The content of a file, or the beginning of it."""
        return self.load(name, limit)[0]

    def load(self, name: str, limit: int = -1) -> tuple[bytes, os.stat_result]:
        """The content of a file, and what is known of the very file that was read."""
        handle = self.open(name, os.O_RDONLY)
        try:
            return read(handle, 0, limit), os.fstat(handle)
        finally:
            os.close(handle)

    def move(self, name: str, into: Folder, new_name: str) -> None:
        """Move an entry to another folder, which then wants a `flush`."""
        os.rename(name, new_name, src_dir_fd=self._handle, dst_dir_fd=into._handle)

    def touch(self, name: str) -> None:
        """Give a file the time of this moment."""
        os.utime(name, dir_fd=self._handle, follow_symlinks=False)

    def remove(self, name: str) -> int:
        """Remove a file; the bytes it had."""
        found = self.stat(name)
        os.unlink(name, dir_fd=self._handle)
        return 0 if found is None else found.st_size

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all that is in it."""
        import shutil  # seldom needed, and dear to import

        shutil.rmtree(name, dir_fd=self._handle)

    def lock(self, name: str) -> Lock:
        """The lock on a file in it, made if need be."""
        return Lock(self.open(name, os.O_RDWR | os.O_CREAT))

    def flush(self) -> None:
        """Make the entries durable: a new file is lost with the name it was not yet given."""
        flush(self._handle)

    def close(self) -> None:
        """Give the handle back."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


class Lock:
    """An OS lock on a file. The file is never removed or replaced: two files of one name are two locks.

    flock directly, and not the filelock library, whose import costs more than a whole short run.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @staticmethod
    def at(path: str) -> Lock:
        """The lock on the file at a path, made if need be."""
        return Lock(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))

    def take(self) -> None:
        """Wait for the lock, with a deadline; StoreUnavailable when it passes."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait()

    def removed(self) -> bool:
        """Whether somebody has removed the file, so that others may take another lock by its name."""
        return os.fstat(self._handle).st_nlink == 0

    def taken(self) -> bool:
        """Whether somebody else has it at this moment."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        self.give()
        return False

    def give(self) -> None:
        """Let the next one in; closing has done that already."""
        if self._handle >= 0:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give the descriptor back, and with it the lock."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def _wait(self) -> None:
        for _ in patiently():
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            return

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


@contextmanager
def locked(lock: Lock) -> Iterator[None]:
    """Hold a lock meanwhile."""
    lock.take()
    try:
        yield
    finally:
        lock.give()


def patiently() -> Iterator[None]:
    """Turn by turn with growing, jittered pauses between; StoreUnavailable when the patience is used up."""
    yield
    end = time.monotonic() + PATIENCE
    pause = 0.0005
    while time.monotonic() < end:
        time.sleep(pause * (0.5 + os.urandom(1)[0] / 255))
        pause = min(pause * 1.5, 0.02)
        yield
    raise StoreUnavailable(what="busy", hint=f"another process has kept it for {PATIENCE:g}s; try again")


def write(handle: int, data: bytes, offset: int) -> None:
    """Write all of it at a place of a file."""
    view = memoryview(data)
    while view:
        count = os.pwrite(handle, view, offset)
        view, offset = view[count:], offset + count


def read(handle: int, offset: int, limit: int = -1) -> bytes:
    """Read to the end of a file, or up to a number of bytes."""
    parts: list[bytes] = []
    wanted = limit if limit >= 0 else max(os.fstat(handle).st_size - offset, 0) + 1
    while wanted:
        part = os.pread(handle, min(wanted, 1 << 24), offset)
        if not part:
            break
        parts.append(part)
        offset, wanted = offset + len(part), wanted - len(part)
        if not wanted and limit < 0:
            wanted = 1 << 16  # it has grown meanwhile
    return parts[0] if len(parts) == 1 else b"".join(parts)


def flush(handle: int, *, data_only: bool = False) -> None:
    """Wait until the disk has it. FlushFailed: from then on the file must be read again before it is written."""
    try:
        (os.fdatasync if data_only else os.fsync)(handle)
    except OSError as error:
        raise FlushFailed(error.errno, "flush failed") from None


def stamp(found: os.stat_result) -> Stamp:
    """The stamp of a file."""
    return found.st_ino, found.st_mtime_ns, found.st_size


def make_folders(path: str) -> None:
    """Make a folder and those above it, each flushed into the one above. FileExistsError when a file stands there."""
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        above = os.path.dirname(path)
        if above == path:
            break
        path = above
    for name in reversed(missing):
        _make_one(name)


def network_kind(folder: str, mounts: str = "/proc/self/mountinfo") -> str | None:
    """The type of the file system when it is known to be a network's; None for others, and where it cannot be told."""
    try:
        device = os.stat(folder).st_dev
        if os.major(device):
            return None  # a real disk; network file systems have no major number
        wanted = f"{os.major(device)}:{os.minor(device)}"
        with open(mounts, encoding="utf-8", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return None
    for fields in lines:
        if fields[2] == wanted:
            kind = fields[fields.index("-") + 1]
            return kind if kind in _NETWORK else None
    return None


def _make_one(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return  # somebody else made it first
    if os.path.basename(path) == ".tramai":
        with (
            contextlib.suppress(FileExistsError),
            open(os.path.join(path, ".gitignore"), "x", encoding="ascii") as file,
        ):
            file.write("*\n")
    with Folder.at(os.path.dirname(path) or ".") as above:
        above.flush()
