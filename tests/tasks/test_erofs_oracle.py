"""The challenge and the checks of erofs_atc19: no machine, no QEMU; the guest's words are written by hand."""

from __future__ import annotations

import io
import json
import random
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_deploybench.layer2 import Experiment
from tasks.erofs_atc19 import erofs_oracle as oracle
from tasks.erofs_atc19 import test_erofs_atc19 as task

BANNER = "Linux version 6.1.176-erofs-atc19 (agent@vm) (gcc 12.2.0) #1 Mon Nov 30 10:00:00 UTC 2026"
MOUNTS = ["rootfs / rootfs rw 0 0", "/dev/vda /plain erofs ro,relatime 0 0", "/dev/vdb /packed erofs ro,relatime 0 0"]
REFUSED = "/challenge-init: line 42: can't create new-file: Read-only file system"
Guest = dict[str, list[str]]


@pytest.fixture(scope="module")
def challenge() -> task.ErofsChallenge:
    return task.draw(11)


class Run:
    """An experiment as it should come out, to be spoilt by a test."""

    def __init__(self, challenge: task.ErofsChallenge, outputs: Path) -> None:
        self.challenge, self.outputs = challenge, outputs
        files = [f"{oracle.sha256(entry.content)}  ./{path}" for path, entry in challenge.tree.items() if entry.is_file]
        self.guest: Guest = {
            "version": [BANNER],
            "cmdline": [f"console=ttyS0 challenge={challenge.nonce} virtio_mmio.device=512@0xfeb02e00:12"],
            "mounting-plain": [],
            "mounting-packed": [],
            "mounts": list(MOUNTS),
            "plain-files": list(files),
            "reads": [f"{oracle.answer(challenge.tree, read)}  -" for read in challenge.reads],
            "packed-files": list(files),
            "entries": [entry_line(path, entry) for path, entry in challenge.tree.items()],
            "links": [
                f"{entry.content.decode()} ./{path}"
                for path, entry in challenge.tree.items()
                if stat.S_ISLNK(entry.mode)
            ],
            "writing": [REFUSED],
            "removing": ["rm: can't remove './a': Read-only file system"],
            "log": ["erofs: (device vdb): mounted with root inode @ nid 36."],
            "end": [],
        }
        self.sizes = {"plain": 4_000_000, "packed": 2_000_000}

    @property
    def experiment(self) -> Experiment:
        lines = [f"[    0.000000] {BANNER}"]
        for name, said in self.guest.items():
            lines += ["", f"== {self.challenge.nonce} {name}", *said]
        (self.outputs / "console.txt").write_text("".join(f"{line}\r\n" for line in lines), newline="")
        (self.outputs / "result.json").write_text(json.dumps(self.sizes))
        return Experiment(0, 1.0, timed_out=False, log="", folder_on_machine="", outputs=self.outputs)

    def stop_before(self, section: str) -> None:
        names = list(self.guest)
        for name in names[names.index(section) :]:
            del self.guest[name]


def entry_line(path: str, entry: oracle.Entry) -> str:
    return f"{entry.mode:x} {len(entry.content)} ./{path}"


@pytest.fixture
def run(challenge: task.ErofsChallenge, tmp_path: Path) -> Run:
    return Run(challenge, tmp_path)


def test_a_seed_draws_one_challenge(challenge: task.ErofsChallenge) -> None:
    assert task.draw(11) == challenge
    assert task.draw(12).inputs != challenge.inputs


def test_the_archive_holds_the_tree(challenge: task.ErofsChallenge) -> None:
    with tarfile.open(fileobj=io.BytesIO(challenge.inputs["tree.tar"])) as archive:
        members = {member.name: member for member in archive.getmembers()}
        assert members.keys() == challenge.tree.keys()
        for path, entry in challenge.tree.items():
            assert members[path].mode == stat.S_IMODE(entry.mode)
            content = archive.extractfile(members[path]) if entry.is_file else None
            assert (content.read() if content else members[path].linkname.encode()) == entry.content


def test_folders_come_before_what_they_hold(challenge: task.ErofsChallenge) -> None:
    seen = {"."}
    for path in challenge.tree:
        assert str(Path(path).parent) in seen
        seen.add(path)


def test_a_tree_has_the_hard_cases(challenge: task.ErofsChallenge) -> None:
    sizes = {len(entry.content) for entry in challenge.tree.values() if entry.is_file}
    assert {0, 1, 4095, 4096, 4097} < sizes
    assert max(sizes) > 1_000_000
    names = [Path(path).name for path in challenge.tree]
    assert any(" " in name for name in names)
    assert any(not name.isascii() for name in names)
    assert any(len(name) > 150 for name in names)


def test_the_archive_for_the_guest_is_a_cpio_of_two_files() -> None:
    read = oracle.Read("a b", 5, 7)
    archive = oracle.workload("1234", (read,))
    assert archive.startswith(b"070701")
    assert len(archive) % 4 == 0
    assert b"challenge-init\0" in archive
    assert b"\n5 7 a b\n".lstrip() in archive
    assert b"== 1234 $1" in archive
    assert b"@NONCE@" not in archive


def test_a_member_of_a_cpio_is_as_the_format_says() -> None:
    # Counted by hand: a head of 110 bytes, the name with its end padded to 4, the content padded to 4.
    member, rest = oracle.as_cpio({"ab": b"xyz"}, ())[:120], oracle.as_cpio({"ab": b"xyz"}, ())[120:]
    assert member[6:14] == b"00000001"
    assert member[14:22] == f"{stat.S_IFREG | 0o755:08x}".encode()
    assert member[54:62] == b"00000003"
    assert member[94:102] == b"00000003"
    assert member[110:] == b"ab\0\0\0\0xyz\0"[: len(member[110:])]
    assert b"TRAILER!!!" in rest


def test_a_read_beyond_the_end_gives_what_there_is() -> None:
    tree = {"a": oracle.Entry(stat.S_IFREG | 0o644, b"0123456789")}
    assert oracle.answer(tree, oracle.Read("a", 8, 100)) == oracle.sha256(b"89")


def test_sections_end_where_the_next_begins() -> None:
    console = b"[0.1] Linux\r\n\r\n== 77 one\r\nx\r\ny\r\n\r\n== 77 two\r\n== 78 three\r\n"
    assert oracle.sections(console, "77") == {"boot": ["[0.1] Linux"], "one": ["x", "y"], "two": ["== 78 three"]}


def test_zlib_saves_on_zeros_and_not_on_random_bytes() -> None:
    mode, rng = stat.S_IFREG | 0o644, random.Random(1)
    assert 9_900 < oracle.zlib_saves({"zeros": oracle.Entry(mode, bytes(10_000))}) < 10_000
    assert oracle.zlib_saves({"noise": oracle.Entry(mode, rng.randbytes(10_000))}) == 0


def plain_mounted(run: Run) -> None:
    task.test_the_kernel_mounts_an_image_without_compression(run.experiment, run.challenge)


def packed_mounted(run: Run) -> None:
    task.test_the_kernel_mounts_a_compressed_image(run.experiment, run.challenge)


def packed_files(run: Run) -> None:
    task.test_every_compressed_file_reads_back_exactly(run.experiment, run.challenge)


def reads(run: Run) -> None:
    task.test_random_reads_of_compressed_files_are_right(run.experiment, run.challenge)


def entries(run: Run) -> None:
    task.test_names_modes_sizes_and_links_are_kept(run.experiment, run.challenge)


def smaller(run: Run) -> None:
    task.test_the_compressed_image_is_smaller(run.experiment, run.challenge)


def read_only(run: Run) -> None:
    task.test_the_compressed_image_cannot_be_written(run.experiment, run.challenge)


CLAIMS = (plain_mounted, packed_mounted, packed_files, reads, entries, smaller, read_only)


def test_every_claim_holds_for_a_true_run(run: Run) -> None:
    for claim in CLAIMS:
        claim(run)


def never_booted(run: Run) -> None:
    run.guest.clear()


def panicked(run: Run) -> None:
    run.stop_before("mounts")


def packed_refused(run: Run) -> None:
    run.guest["mounting-packed"] = ["mount: mounting /dev/vdb on /packed failed: Invalid argument"]
    run.guest["mounts"].pop()


def packed_by_another_driver(run: Run) -> None:
    run.guest["mounts"][2] = "/dev/vdb /packed fuse.erofsfuse ro 0 0"


def writable(run: Run) -> None:
    run.guest["mounts"][2] = "/dev/vdb /packed erofs rw,relatime 0 0"


def plain_refused(run: Run) -> None:
    run.guest["mounts"].pop(1)


def plain_file_spoilt(run: Run) -> None:
    run.guest["plain-files"][3] = "0" * 64 + run.guest["plain-files"][3][64:]


def one_byte_wrong(run: Run) -> None:
    run.guest["packed-files"][0] = "0" * 64 + run.guest["packed-files"][0][64:]


def file_missing(run: Run) -> None:
    run.guest["packed-files"].pop()


def file_added(run: Run) -> None:
    run.guest["packed-files"].append("0" * 64 + "  ./more")


def read_wrong(run: Run) -> None:
    run.guest["reads"][-1] = "0" * 64 + "  -"


def reads_missing(run: Run) -> None:
    run.guest["reads"] = []


def mode_lost(run: Run) -> None:
    run.guest["entries"] = [line.replace("8180 ", "81a4 ") for line in run.guest["entries"]]


def link_followed(run: Run) -> None:
    run.guest["links"][0] = "elsewhere " + run.guest["links"][0].partition(" ")[2]


def entry_missing(run: Run) -> None:
    run.guest["entries"].pop(0)


def entry_added(run: Run) -> None:
    run.guest["entries"].append("81a4 1 ./more")


def hardly_smaller(run: Run) -> None:
    run.sizes["packed"] = 3_000_000


def written(run: Run) -> None:
    run.guest["writing"] = []


def removed(run: Run) -> None:
    run.guest["removing"] = ["rm: can't remove './a': Permission denied"]


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        *((never_booted, claim) for claim in CLAIMS if claim is not smaller),
        *((panicked, claim) for claim in CLAIMS if claim is not smaller),
        (packed_refused, packed_mounted),
        (packed_by_another_driver, packed_mounted),
        (writable, packed_mounted),
        (plain_refused, plain_mounted),
        (plain_file_spoilt, plain_mounted),
        (one_byte_wrong, packed_files),
        (file_missing, packed_files),
        (file_added, packed_files),
        (read_wrong, reads),
        (reads_missing, reads),
        (mode_lost, entries),
        (link_followed, entries),
        (entry_missing, entries),
        (entry_added, entries),
        (hardly_smaller, smaller),
        (written, read_only),
        (removed, read_only),
    ],
)
def test_a_wrong_outcome_fails_its_claim(run: Run, spoil: Callable[[Run], None], claim: Callable[[Run], None]) -> None:
    spoil(run)
    with pytest.raises(AssertionError, match="expected"):
        claim(run)


def test_an_image_that_is_refused_is_told_in_the_guests_words(run: Run) -> None:
    packed_refused(run)
    with pytest.raises(AssertionError, match="mounting /dev/vdb on /packed failed: Invalid argument"):
        packed_mounted(run)


def test_without_compression_nothing_is_mounted_or_read(run: Run) -> None:
    """Then the guest reads an empty folder: each claim on the compressed image fails, not that on the other one."""
    packed_refused(run)
    for section in ("packed-files", "entries", "links", "removing"):
        run.guest[section] = []
    plain_mounted(run)
    for claim in (packed_mounted, packed_files, entries):
        with pytest.raises(AssertionError, match="expected"):
            claim(run)
