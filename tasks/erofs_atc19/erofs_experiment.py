"""Makes two EROFS images of tree.tar by the deployed mkfs.erofs and boots the deployed kernel on them in QEMU.

What the guest says goes to console.txt, the sizes of the images to result.json. It needs Python 3 and its standard
library only. NONCE, as argument, ends up on the kernel's command line.
"""

import json
import subprocess
import sys
import tarfile
import time
from pathlib import Path

QEMU = "/usr/bin/qemu-system-x86_64"
BOOT = Path.home() / "boot"
IMAGES = {"plain": [], "packed": ["-zlz4hc"]}

nonce = sys.argv[1]
with tarfile.open("tree.tar") as archive:
    archive.extraction_filter = lambda member, _: member  # later Pythons would change modes
    archive.extractall("tree")  # noqa: S202 - drawn by the experimenter

sizes = {}
for name, options in IMAGES.items():
    image = Path(f"{name}.erofs")
    subprocess.run(["mkfs.erofs", *options, str(image), "tree"], check=True)
    sizes[name] = image.stat().st_size
Path("result.json").write_text(json.dumps(sizes))

# The kernel unpacks archives that follow each other, each from an address that is a multiple of four.
initramfs = (BOOT / "initramfs").read_bytes()
Path("initrd").write_bytes(initramfs + bytes(-len(initramfs) % 4) + Path("workload.cpio").read_bytes())

command = [
    *(QEMU, "-M", "microvm,acpi=off", "-accel", "tcg", "-m", "128"),
    *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "file:console.txt"),
    *("-kernel", str(BOOT / "bzImage"), "-initrd", "initrd"),
    *("-append", f"console=ttyS0 panic=-1 reboot=t rdinit=/challenge-init challenge={nonce}"),
]
for name in IMAGES:
    command += ["-drive", f"id={name},if=none,format=raw,readonly=on,file={name}.erofs"]
    command += ["-device", f"virtio-blk-device,drive={name}"]
print(" ".join(command), flush=True)
start = time.monotonic()
subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
print(f"the guest ran for {time.monotonic() - start:.1f} s")
