"""A user's cloud image is adopted if it can boot, and refused with one clear sentence if it cannot."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

from pytest_deploybench.errors import UsageError
from pytest_deploybench.providers.local import debian
from pytest_deploybench.providers.qemu import cloud, image, network


def _img(*arguments: object) -> None:
    subprocess.run(["qemu-img", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A disk that looks bootable."""
    disk = tmp_path / "disk.raw"
    disk.write_bytes(b"\0" * 510 + cloud.BOOT_SIGNATURE + b"a system" * 200_000)
    return disk


@pytest.fixture
def qcow2(raw: Path) -> Path:
    _img("convert", "-O", "qcow2", raw, raw.with_suffix(".qcow2"))
    return raw.with_suffix(".qcow2")


def test_both_formats_are_known(raw: Path, qcow2: Path) -> None:
    assert (cloud.inspect(raw), cloud.inspect(qcow2)) == ("raw", "qcow2")


def _missing(disk: Path) -> Path:
    return disk.with_name("nowhere.qcow2")


def _folder(disk: Path) -> Path:
    return disk.parent


def _text(disk: Path) -> Path:
    (other := disk.with_name("page.qcow2")).write_text("<html>404 Not Found</html>" * 99)
    return other


def _truncated(disk: Path) -> Path:
    (other := disk.with_name("half.qcow2")).write_bytes(disk.read_bytes()[: disk.stat().st_size // 2])
    return other


def _vmdk(disk: Path) -> Path:
    _img("convert", "-O", "vmdk", disk, other := disk.with_name("other.vmdk"))
    return other


def _overlay(disk: Path) -> Path:
    _img("create", "-f", "qcow2", "-b", disk, "-F", "qcow2", other := disk.with_name("overlay.qcow2"))
    return other


def _split(disk: Path) -> Path:
    other = disk.with_name("split.qcow2")
    _img("create", "-f", "qcow2", "-o", f"data_file={disk.with_name('data')}", other, "1M")
    return other


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (_missing, "no such file"),
        (_folder, "no such file"),
        (_text, "no bootable disk"),
        (_truncated, "no bootable disk"),
        (_vmdk, "format vmdk.*qemu-img convert"),
        (_overlay, "builds on another file.*qemu-img convert"),
        (_split, "data in another file.*qemu-img convert"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_image_that_cannot_boot_is_refused(qcow2: Path, broken, complaint: str) -> None:  # type: ignore[no-untyped-def]  # one verb, seven ways
    with pytest.raises(UsageError, match=complaint):
        cloud.inspect(broken(qcow2))


def test_adoption_leaves_the_image_alone_and_repeats_itself(qcow2: Path, tmp_path: Path) -> None:
    before = qcow2.read_bytes()
    adopted = image.from_cloud_image(qcow2, tmp_path / "cache", lambda _line: None)
    assert (adopted.disk, adopted.disk_format, adopted.kernel) == (qcow2, "qcow2", None)
    assert image.from_cloud_image(qcow2, tmp_path / "cache", lambda _line: None) == adopted
    assert qcow2.read_bytes() == before


def test_the_seed_is_a_disk_that_cloud_init_looks_for(qcow2: Path, tmp_path: Path) -> None:
    seed = image.from_cloud_image(qcow2, tmp_path / "cache", lambda _line: None).seed
    assert seed is not None
    probed = subprocess.run(
        ["/sbin/blkid", "-p", "-o", "export", seed], check=True, capture_output=True, text=True
    ).stdout
    assert {"TYPE=vfat", "LABEL=cidata"} <= set(probed.splitlines())
    assert b"#cloud-config\n" in seed.read_bytes()


def test_the_seed_installs_what_our_own_image_has_built_in() -> None:
    guest = debian.guest_files((b"PEM",))
    files = cloud.seed_files(guest, "digest")
    user_data = json.loads(files["user-data"].removeprefix(b"#cloud-config\n"))
    written = {entry["path"]: entry for entry in user_data["write_files"]}
    service = written["/usr/lib/deploybench/identity"]
    assert base64.b64decode(service["content"]) == guest["usr/lib/deploybench/identity"]
    assert service["permissions"] == "0755"
    assert "/usr/local/share/ca-certificates/host-0.crt" in written
    assert not any("tiny-initramfs" in path or "deploybench-network" in path for path in written)
    assert user_data["users"][0]["uid"] == 1000


def test_the_network_of_the_seed_is_the_one_that_guests_have() -> None:
    card = cloud.NETWORK["ethernets"]["eth0"]["match"]["macaddress"]  # type: ignore[index]  # JSON in the making
    plan = network.plan()
    plan.close()
    assert any(f"mac={card}" in argument for argument in plan.qemu_args)
