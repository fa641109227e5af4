"""Adopts the user's own cloud image: cloud-init gives it, at its first boot, what our image has built in.

- The image is only read: checked by qemu-img, never converted, copied or written.
- The seed is a NoCloud disk: user-data, meta-data and network-config on a VFAT volume named `cidata`.
- After the first boot cloud-init is switched off: machines restored from there take their identity from us alone.

It asks for a Debian-like system with systemd, cloud-init, Python 3 and OpenSSH, which boots by BIOS from a virtio disk.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from pytest_deploybench.errors import InfraError, UsageError
from pytest_deploybench.providers.local.bootstrap import require, search_path
from pytest_deploybench.providers.qemu import gate

GUEST_MAC = "52:54:00:12:34:56"
"""The network card that every guest has; cloud-init finds it by this address, whatever the image calls it."""
FORMATS = ("qcow2", "raw")
BOOT_SIGNATURE = b"\x55\xaa"
"""End of the first sector of every disk that a BIOS can boot from."""
SEED_LABEL = "cidata"
"""The name by which cloud-init finds its seed."""
TOOLS = {"qemu-img": "qemu-utils"}
_CHECK_S = 300

NOT_ADOPTED = ("tiny-initramfs", "modprobe.d", "deploybench-network", "deploybench/network", "deploybench-grow")
"""Guest files that a cloud image does without: it has an initrd, and cloud-init sets up network and disk."""

NETWORK = {
    "version": 2,
    "ethernets": {
        "eth0": {
            "match": {"macaddress": GUEST_MAC},
            "addresses": [f"{gate.GUEST_ADDRESS}/{gate.PREFIX_LENGTH}"],
            "gateway4": gate.GATEWAY_ADDRESS,
            "nameservers": {"addresses": [gate.DNS_ADDRESS]},
        }
    },
}

ADOPTION = """\
set -u
units="apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer man-db.timer
    systemd-tmpfiles-clean.timer systemd-timesyncd.service unattended-upgrades.service"
systemctl --no-reload mask $units
systemctl --no-block stop $units ssh.service ssh.socket
rm -f /etc/ssh/ssh_host_*
ls /usr/local/share/ca-certificates/host-*.crt && update-ca-certificates
touch /etc/cloud/cloud-init.disabled
systemctl daemon-reload
systemctl --no-block start deploybench-identity.service
"""
"""Last act of the first boot. It waits for no other unit (this one is part of the boot that they wait for), and a unit
that the image lacks is no reason to stop. sshd stays enabled: without host keys it cannot start before the identity."""


def inspect(path: Path) -> str:
    """The format of a disk image that can be booted: `qcow2` or `raw`.

    Raises:
        UsageError: the file is missing, damaged, of another format, or needs a second file.
        MissingToolError: qemu-img is missing.
    """
    require(TOOLS, "reading your cloud image")
    if not path.is_file():
        raise UsageError(f"{path}: no such file. Name the cloud image (qcow2 or raw) that machines shall boot from")
    info = _info(path)
    found = str(info["format"])
    data = info.get("format-specific", {}).get("data", {})
    problems = {
        f"is in the format {found}; convert it: `qemu-img convert -O qcow2 {path} image.qcow2`": found not in FORMATS,
        f"builds on another file ({info.get('backing-filename')}); make it one: "
        f"`qemu-img convert -O qcow2 {path} image.qcow2`": "backing-filename" in info,
        f"keeps its data in another file ({data.get('data-file')}); make it one: "
        f"`qemu-img convert -O qcow2 {path} image.qcow2`": "data-file" in data,
        "is encrypted; decrypt it with `qemu-img convert`": bool(info.get("encrypted")),
    }
    for problem in (problem for problem, given in problems.items() if given):
        raise UsageError(f"{path} {problem}")
    if not _bootable(path, found):
        raise UsageError(
            f"{path} is no bootable disk: damaged, or no disk image at all. Download it again and compare its checksum"
        )
    return found


def seed_files(guest: dict[str, bytes], digest: str) -> dict[str, bytes]:
    """The three files of a NoCloud seed that turn a cloud image into our guest; JSON, which is YAML as well."""
    adopted = {name: content for name, content in guest.items() if not any(part in name for part in NOT_ADOPTED)}
    user_data = {
        "users": [
            {
                "name": "agent",
                "uid": 1000,
                "shell": "/bin/bash",
                "lock_passwd": True,
                "sudo": "ALL=(ALL:ALL) NOPASSWD: ALL",
            }
        ],
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],
        "disable_root": True,
        "write_files": [
            {
                "path": f"/{name}",
                "permissions": "0755" if content.startswith(b"#!") else "0644",
                "encoding": "b64",
                "content": base64.b64encode(content).decode(),
            }
            for name, content in adopted.items()
        ],
        "runcmd": [["sh", "-c", ADOPTION]],
    }
    return {
        "user-data": b"#cloud-config\n" + json.dumps(user_data, indent=1).encode(),
        "meta-data": json.dumps({"instance-id": digest[:16], "local-hostname": "deploybench"}).encode(),
        "network-config": json.dumps(NETWORK).encode(),
    }


def write_seed(files: dict[str, bytes], seed: Path) -> None:
    """Write the seed disk.

    Raises:
        MissingToolError: qemu-img is missing.
        InfraError: it failed.
    """
    require(TOOLS, "adopting your cloud image")
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        # cloud-init reads its seed from VFAT and ISO 9660 alone; qemu-img can make the former, and is needed anyway.
        volume = {"driver": "vvfat", "dir": folder, "label": SEED_LABEL, "floppy": True, "fat-type": 12}
        ended = _run(["qemu-img", "convert", "-O", "raw", f"json:{json.dumps(volume)}", str(seed)])
    if ended.returncode != 0:
        raise InfraError(f"the cloud-init seed {seed} could not be written: {ended.stderr.strip()}")


def _info(path: Path) -> dict[str, Any]:
    ended = _run(["qemu-img", "info", "--output=json", str(path)])
    if ended.returncode != 0:
        raise UsageError(f"{path} cannot be read as a disk image: {ended.stderr.strip()}")
    info: dict[str, Any] = json.loads(ended.stdout)
    return info


def _bootable(path: Path, image_format: str) -> bool:
    """Whether the disk is sound, as far as its format can tell, and its first sector that of a bootable one."""
    if image_format == "qcow2" and _run(["qemu-img", "check", "-q", str(path)]).returncode in {1, 2}:
        return False
    with tempfile.TemporaryDirectory() as folder:
        sector = Path(folder) / "sector"
        command = ["qemu-img", "dd", "-f", image_format, "-O", "raw", "bs=512", "count=1"]
        if _run([*command, f"if={path}", f"of={sector}"]).returncode != 0:
            return False
        return sector.read_bytes()[510:512] == BOOT_SIGNATURE


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": search_path()}
    return subprocess.run(command, capture_output=True, text=True, timeout=_CHECK_S, check=False, env=environment)
