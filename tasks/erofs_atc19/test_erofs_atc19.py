"""A Linux kernel, built from the given source, reads compressed EROFS images of fresh trees when it is booted in QEMU.

The verifier starts QEMU, and its own first program runs in the guest. The host drew each byte of the tree itself.
"""

from __future__ import annotations

import random
import stat
from dataclasses import dataclass

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.erofs_atc19 import erofs_oracle as oracle

RELEASE = "6.1.176-erofs-atc19"
"""The given source with the suffix that the instruction asks for: no distribution has such a kernel."""
KERNEL, VMLINUX = "/home/agent/boot/bzImage", "/home/agent/boot/vmlinux"
QEMU = "/usr/bin/qemu-system-x86_64"
KERNEL_SYMBOLS = {"start_kernel", "erofs_fc_fill_super", "erofs_iget"}
MKFS_SYMBOLS = {"erofs_mkfs_build_tree_from_path", "erofs_load_compress_hints", "z_erofs_compress_init"}
"""Functions of mkfs.erofs 1.5, in the symbol table of a fresh build and not in a distribution's stripped program."""
SAVED = 0.5
"""Share of what zlib at its fastest saves. LZ4 without entropy coding in blocks of 4096 bytes was seen to save
0.81 to 0.82 of it in ten draws; an image without compression saves nothing."""


@dataclass(frozen=True)
class ErofsChallenge(Challenge):
    """The tree and what is read in it."""

    nonce: str
    tree: oracle.Tree
    reads: tuple[oracle.Read, ...]


def draw(seed: int) -> ErofsChallenge:
    rng = random.Random(seed)
    nonce, tree = rng.randbytes(8).hex(), oracle.draw_tree(rng)
    reads = oracle.draw_reads(rng, tree, count=40)
    return ErofsChallenge(
        command=f"python3 erofs_experiment.py {nonce}",
        inputs={
            "erofs_experiment.py": oracle.driver(),
            "tree.tar": oracle.as_tar(tree),
            "workload.cpio": oracle.workload(nonce, reads),
        },
        outputs=("console.txt", "result.json"),
        nonce=nonce,
        tree=tree,
        reads=reads,
    )


def test_mkfs_was_built_from_the_given_source(server: Host, agent_run: AgentRun) -> None:
    """The `mkfs.erofs` on PATH is of no package, newer than the hand-over, and has its symbols."""
    path = evidence.program(server, "mkfs.erofs")
    assert path, "expected a command `mkfs.erofs` on PATH after env.sh, there is none"
    owner = evidence.package_owner(server, path)
    assert owner is None, f"mkfs.erofs should be built here, but {path} is of the package {owner}"
    assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
    missing = MKFS_SYMBOLS - evidence.symbols(server, path)
    assert not missing, f"expected {path} to be mkfs.erofs, unstripped, it lacks the functions {sorted(missing)}"


def test_the_kernel_was_built_from_the_given_source(server: Host, agent_run: AgentRun) -> None:
    """bzImage and vmlinux are of no package and newer than the hand-over; vmlinux has its symbols, EROFS among them."""
    for path in (KERNEL, VMLINUX):
        assert evidence.resolve(server, path), f"expected a file {path}, there is none"
        owner = evidence.package_owner(server, path)
        assert owner is None, f"the kernel should be built here, but {path} is of the package {owner}"
        assert evidence.changed_after_handover(server, path, agent_run), f"{path} is older than the hand-over"
    missing = KERNEL_SYMBOLS - evidence.symbols(server, VMLINUX)
    assert not missing, f"expected {VMLINUX} to be an unstripped kernel with EROFS, it lacks {sorted(missing)}"


def test_the_machine_is_emulated_by_the_distributions_qemu(server: Host) -> None:
    """The QEMU that the experiment starts is Debian's, not a stand-in for it."""
    owner = evidence.package_owner(server, QEMU)
    assert owner == "qemu-system-x86", f"expected {QEMU} of the package qemu-system-x86, its package is {owner}"


def test_this_kernel_booted_and_ran_the_experiment(
    server: Host, experiment: Experiment, challenge: ErofsChallenge
) -> None:
    """The guest's kernel has the release asked for, the banner in vmlinux, and this experiment's command line."""
    guest = _guest(experiment, challenge)
    version, cmdline = _lines(guest, "version"), _lines(guest, "cmdline")
    banner = version[0] if version else ""
    assert banner.startswith(f"Linux version {RELEASE} "), (
        f"expected the guest to be Linux {RELEASE}, it says {banner!r}"
    )
    assert evidence.contains(server, VMLINUX, banner.encode()), f"expected {VMLINUX} to be this kernel: {banner!r}"
    assert any(f"challenge={challenge.nonce}" in line for line in cmdline), (
        f"expected challenge={challenge.nonce} on the kernel's command line, got {cmdline}; see console.txt"
    )
    assert "end" in guest, f"the guest stopped after section {list(guest)[-1]!r}; see console.txt"


def test_the_kernel_mounts_an_image_without_compression(experiment: Experiment, challenge: ErofsChallenge) -> None:
    """The first disk is mounted as EROFS, read-only, and all its files read back."""
    guest = _guest(experiment, challenge)
    _assert_mounted(guest, "plain", "/dev/vda")
    _assert_files(guest, "plain", challenge)


def test_the_kernel_mounts_a_compressed_image(experiment: Experiment, challenge: ErofsChallenge) -> None:
    """The second disk, made with `-zlz4hc`, is mounted as EROFS, read-only."""
    _assert_mounted(_guest(experiment, challenge), "packed", "/dev/vdb")


def test_every_compressed_file_reads_back_exactly(experiment: Experiment, challenge: ErofsChallenge) -> None:
    """Text, random bytes, zeros, small and empty files: each has the SHA-256 of what was drawn."""
    _assert_files(_guest(experiment, challenge), "packed", challenge)


def test_random_reads_of_compressed_files_are_right(experiment: Experiment, challenge: ErofsChallenge) -> None:
    """Reads at random offsets, before anything else was read, give the bytes that were drawn."""
    got = [line.split()[0] for line in _lines(_guest(experiment, challenge), "reads")]
    expected = [oracle.answer(challenge.tree, read) for read in challenge.reads]
    assert len(got) == len(expected), f"expected {len(expected)} reads, got {got[:3]}; see console.txt"
    wrong = [read for read, e, g in zip(challenge.reads, expected, got, strict=True) if e != g]
    assert not wrong, f"expected all reads to be right, {len(wrong)} are wrong, the first is {wrong[0]}"


def test_names_modes_sizes_and_links_are_kept(experiment: Experiment, challenge: ErofsChallenge) -> None:
    """The compressed image holds just the entries of the tree, with their types and permissions."""
    guest = _guest(experiment, challenge)
    got = {path: (int(mode, 16), size) for mode, size, path in _split(_lines(guest, "entries"), 3)}
    # The size of a folder is the file system's own affair.
    sizeless = {path: (mode, size if oracle.Entry(mode).is_file else "") for path, (mode, size) in got.items()}
    expected = {
        f"./{path}": (entry.mode, str(len(entry.content)) if entry.is_file else "")
        for path, entry in challenge.tree.items()
    }
    odd = sorted(path for path in expected.keys() | sizeless.keys() if expected.get(path) != sizeless.get(path))
    assert not odd, (
        f"expected the entries that were drawn, {len(odd)} differ, the first is {odd[0]!r}: "
        f"expected (mode, size) {expected.get(odd[0])}, got {sizeless.get(odd[0])}; see console.txt"
    )
    links = {f"{entry.content.decode()} ./{path}" for path, entry in challenge.tree.items() if stat.S_ISLNK(entry.mode)}
    got_links = set(_lines(guest, "links"))
    assert got_links == links, f"expected the links {sorted(links)}, got {sorted(got_links)}; see console.txt"


def test_the_compressed_image_is_smaller(experiment: Experiment, challenge: ErofsChallenge) -> None:
    """The paper's claim: compression saves space, here against the image that the same mkfs.erofs makes without it."""
    plain, packed = (_size(experiment, image) for image in ("plain", "packed"))
    least = SAVED * oracle.zlib_saves(challenge.tree)
    assert plain - packed >= least, (
        f"expected compression to save at least {least:.0f} bytes of {plain}, the image has {packed}; see result.json"
    )


def test_the_compressed_image_cannot_be_written(experiment: Experiment, challenge: ErofsChallenge) -> None:
    """Making a file and removing one end in `Read-only file system`, EROFS by its error's name."""
    guest = _guest(experiment, challenge)
    for attempt in ("writing", "removing"):
        said = _lines(guest, attempt)
        assert any("Read-only file system" in line for line in said), (
            f"expected {attempt} to be refused with 'Read-only file system', the guest said {said[:2]}; see console.txt"
        )


def _guest(experiment: Experiment, challenge: ErofsChallenge) -> dict[str, list[str]]:
    return oracle.sections(experiment.bytes("console.txt"), challenge.nonce)


def _lines(guest: dict[str, list[str]], section: str) -> list[str]:
    assert section in guest, (
        f"expected the guest to come to {section!r}, it ended in {list(guest)[-1]!r} with "
        f"{(guest[list(guest)[-1]] or [''])[-1]!r}; see console.txt"
    )
    return guest[section]


def _size(experiment: Experiment, image: str) -> int:
    result = experiment.json("result.json")
    size = result.get(image) if isinstance(result, dict) else None
    assert isinstance(size, int), f"expected the size of the image {image!r} in result.json, got {size!r}"
    return size


def _split(lines: list[str], parts: int) -> list[list[str]]:
    return [fields for line in lines if len(fields := line.split(" ", parts - 1)) == parts]


def _assert_mounted(guest: dict[str, list[str]], name: str, device: str) -> None:
    mounts = [line.split() for line in _lines(guest, "mounts")]
    found = [fields[2:4] for fields in mounts if fields[:2] == [device, f"/{name}"]]
    assert found, f"expected {device} to be mounted, mount said {_lines(guest, f'mounting-{name}')}; see console.txt"
    kind, options = found[0]
    assert kind == "erofs", f"expected {device} to be mounted as erofs, it is {kind}"
    assert "ro" in options.split(","), f"expected {device} to be mounted read-only, its options are {options}"


def _assert_files(guest: dict[str, list[str]], name: str, challenge: ErofsChallenge) -> None:
    got = {path.removeprefix(" "): digest for digest, path in _split(_lines(guest, f"{name}-files"), 2)}
    files = {f"./{path}": entry for path, entry in challenge.tree.items() if entry.is_file}
    missing, extra = sorted(files.keys() - got.keys()), sorted(got.keys() - files.keys())
    assert not missing, f"expected {len(files)} files in {name}, {len(missing)} are not there, as {missing[0]!r}"
    assert not extra, f"expected only the files that were drawn in {name}, there is {extra[0]!r}"
    wrong = sorted(path for path, entry in files.items() if got[path] != oracle.sha256(entry.content))
    assert not wrong, f"expected all files of {name} to read back, {len(wrong)} are wrong, as {wrong[0]!r}"
