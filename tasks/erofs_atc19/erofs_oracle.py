"""Draws trees and random reads, packs what the guest is to do with them, and reads what it printed.

The answers need no file system: the host drew every byte itself. No I/O but for the two programs in this folder.
"""

from __future__ import annotations

import hashlib
import io
import random
import re
import stat
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BLOCK = 4096


@dataclass(frozen=True)
class Entry:
    """One file, folder or symbolic link of a tree."""

    mode: int
    """Type and permissions, as `stat` gives them."""
    content: bytes = b""
    """Of a symbolic link, its target."""

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


Tree = Mapping[str, Entry]
"""By path relative to the root, which is not in it."""


@dataclass(frozen=True)
class Read:
    """`length` bytes from `offset` of a file."""

    path: str
    offset: int
    length: int


def driver() -> bytes:
    """The program that the verifier brings along."""
    return (HERE / "erofs_experiment.py").read_bytes()


def draw_tree(rng: random.Random) -> dict[str, Entry]:
    """About four megabytes: text, random bytes, long zeros, small and empty files, odd names, links."""
    words = [_letters(rng, rng.randint(2, 9)) for _ in range(2_000)]
    folders = ["", *(f"{_letters(rng, 6)}/" for _ in range(3))]
    folders.append(folders[1] + _letters(rng, 5) + "/" + _letters(rng, 120) + "/")
    contents = [
        _text(rng, words, 1_500_000 + rng.randrange(BLOCK)),
        rng.randbytes(400_000 + rng.randrange(BLOCK)),
        _islands(rng, 1_200_000 + rng.randrange(BLOCK)),
        # A file that is text in its first half and random bytes in its second changes its way of being stored midway.
        _text(rng, words, 150_000) + rng.randbytes(150_000 + rng.randrange(BLOCK)),
        b"",
        *(_text(rng, words, size) for size in (1, BLOCK - 1, BLOCK, BLOCK + 1)),
        *(_text(rng, words, rng.randint(2, 60_000)) for _ in range(16)),
        *(rng.randbytes(rng.randint(1, 9_000)) for _ in range(6)),
    ]
    names = [f"{_letters(rng, 8)}{ending}" for ending in (" with blanks", "-äöü", "." + "l" * 180, "")]
    tree = {
        folder.rstrip("/")[: cut or None]: Entry(stat.S_IFDIR | rng.choice((0o755, 0o700)))
        for folder in folders[1:]
        for cut in _cuts(folder)
    }
    for number, content in enumerate(contents):
        name = names[number] if number < len(names) else _letters(rng, rng.randint(1, 30))
        path = rng.choice(folders) + f"{name}{number}"
        tree[path] = Entry(stat.S_IFREG | rng.choice((0o444, 0o644, 0o755, 0o600)), content)
    for target in rng.sample(sorted(tree), 3):
        tree[rng.choice(folders) + _letters(rng, 12) + "-link"] = Entry(stat.S_IFLNK | 0o777, f"./{target}".encode())
    return tree


def draw_reads(rng: random.Random, tree: Tree, count: int) -> tuple[Read, ...]:
    """Reads in files of more than a block, most of them across the bounds of blocks."""
    large = sorted(path for path, entry in tree.items() if entry.is_file and len(entry.content) > 2 * BLOCK)
    reads = []
    for _ in range(count):
        path = rng.choice(large)
        offset = rng.randrange(len(tree[path].content))
        reads.append(Read(path, offset, rng.randint(1, 3 * BLOCK)))
    return tuple(reads)


def answer(tree: Tree, read: Read) -> str:
    """SHA-256 of what a read must give; a read beyond the end gives what there is."""
    return sha256(tree[read.path].content[read.offset : read.offset + read.length])


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def zlib_saves(tree: Tree) -> int:
    """Bytes that zlib at its fastest saves on the files of a tree, each for itself."""
    files = (entry.content for entry in tree.values() if entry.is_file)
    return sum(max(0, len(content) - len(zlib.compress(content, 1))) for content in files)


def as_tar(tree: Tree) -> bytes:
    """The tree as an archive."""
    kinds = {stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFREG: tarfile.REGTYPE, stat.S_IFLNK: tarfile.SYMTYPE}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, entry in tree.items():
            member = tarfile.TarInfo(path)
            member.mode, member.type = stat.S_IMODE(entry.mode), kinds[stat.S_IFMT(entry.mode)]
            if entry.is_file:
                member.size = len(entry.content)
            else:
                member.linkname = entry.content.decode()
            tar.addfile(member, io.BytesIO(entry.content))
    return archive.getvalue()


def as_cpio(files: Mapping[str, bytes], folders: tuple[str, ...]) -> bytes:
    """An initramfs archive (`newc`) of executable files and of folders."""
    members = [(name, stat.S_IFDIR | 0o755, b"") for name in folders]
    members += [(name, stat.S_IFREG | 0o755, content) for name, content in files.items()]
    archive = b"".join(_cpio_member(number, *member) for number, member in enumerate(members, start=1))
    return archive + _cpio_member(0, "TRAILER!!!", 0, b"")


def _cpio_member(number: int, name: str, mode: int, content: bytes) -> bytes:
    # inode, mode, uid, gid, links, mtime, size, device (two), device of a node (two), length of the name, check sum
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name.encode() + b"\0"
    return _padded(head) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)


def workload(nonce: str, reads: tuple[Read, ...]) -> bytes:
    """The initramfs archive that joins the agent's own: the guest's first program and the list of reads."""
    script = (HERE / "guest_init.sh").read_text().replace("@NONCE@", nonce)
    table = "".join(f"{read.offset} {read.length} {read.path}\n" for read in reads)
    return as_cpio({"challenge-init": script.encode(), "reads": table.encode()}, ("dev", "proc", "plain", "packed"))


def sections(console: bytes, nonce: str) -> dict[str, list[str]]:
    """What the guest printed, by section: `== NONCE NAME` begins one, and the next ends it. All before is "boot"."""
    found: dict[str, list[str]] = {"boot": []}
    name = "boot"
    for line in console.decode(errors="replace").replace("\r", "").split("\n"):
        if match := re.fullmatch(rf"== {nonce} ([a-z-]+)", line):
            name = match[1]
            found[name] = []
        elif line:
            found[name].append(line)
    return found


def _text(rng: random.Random, words: list[str], size: int) -> bytes:
    # Drawn in runs from a few words each, as prose has its themes.
    parts: list[str] = []
    length = 0
    while length < size:
        theme = rng.choices(words, k=60)
        run = " ".join(rng.choices(theme, k=200)) + "\n"
        parts.append(run)
        length += len(run)
    return "".join(parts).encode()[:size]


def _islands(rng: random.Random, size: int) -> bytes:
    content = bytearray(size)
    for _ in range(5):
        start = rng.randrange(size - 100)
        content[start : start + 50] = rng.randbytes(50)
    return bytes(content)


def _letters(rng: random.Random, length: int) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=length))


def _cuts(folder: str) -> list[int]:
    """Where the paths of a folder and of those above it end."""
    return [index for index, letter in enumerate(folder) if letter == "/"]
