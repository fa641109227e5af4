"""What makes a restored guest a machine of its own: one script, made here, run once as root.

Every guest restored from a saved state wakes up as the same machine at the same moment. The script gives it the right
time, a host key, a login key, a machine-id, a name and randomness of its own. The SSH server waits since before the
state was saved, with a host key that nobody trusts and no login key.

The script holds secrets: it travels over an anonymous socket, and the guest keeps it in memory only. It is Python for
the guest's `identity` program, which is part of the saved state: it starts no process of its own, because under
emulation each costs a noticeable part of a machine's start.
"""

from __future__ import annotations

import time

from pytest_deploybench.providers.local.identity import USER, Identity

_SSHD_WITHIN_S = 60.0

_SCRIPT = """\
me = {facts!r}
import fcntl, os, pwd, signal, socket, struct, time  # all there already: `identity` has imported them
time.clock_settime(time.CLOCK_REALTIME, me["now"] + time.monotonic() - received_at)
with open("/dev/urandom", "wb") as device:
    seed = me["seed"]
    fcntl.ioctl(device, 0x40085203, struct.pack("ii", 8 * len(seed), len(seed)) + seed)  # RNDADDENTROPY
    fcntl.ioctl(device, 0x5207)  # RNDRESEEDCRNG: the next byte already differs from every sibling's

def write(path, text, mode, owner=(0, 0)):
    if os.path.lexists(path):
        os.unlink(path)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(handle, text.encode())
    os.fchown(handle, *owner)
    os.fchmod(handle, mode)
    os.close(handle)

for name in os.listdir("/etc/ssh"):
    if name.startswith("ssh_host_"):
        os.unlink("/etc/ssh/" + name)
if os.path.exists("/var/lib/systemd/random-seed"):
    os.unlink("/var/lib/systemd/random-seed")
socket.sethostname(me["hostname"])
write("/etc/hostname", me["hostname"] + "\\n", 0o644)
write("/etc/hosts", "127.0.0.1 localhost\\n127.0.1.1 " + me["hostname"] + "\\n", 0o644)
write("/etc/machine-id", me["machine_id"] + "\\n", 0o444)
write("/etc/ssh/ssh_host_ed25519_key", me["host_private"], 0o600)
write("/etc/ssh/ssh_host_ed25519_key.pub", me["host_public"] + "\\n", 0o644)
user = pwd.getpwnam(me["user"])
owner = user.pw_uid, user.pw_gid
folder = user.pw_dir + "/.ssh"
if not os.path.isdir(folder):
    os.mkdir(folder, 0o700)
os.chown(folder, *owner)
write(folder + "/authorized_keys", me["login_public"] + "\\n", 0o600, owner)
wanted = "/etc/systemd/system/multi-user.target.wants/ssh.service"  # `systemctl enable` takes seconds under emulation
if not os.path.lexists(wanted):
    os.symlink("/lib/systemd/system/ssh.service", wanted)
if not sshd_reads_keys_anew:
    with open("/run/sshd.pid") as file:
        sshd = int(file.read())
    os.unlink("/run/sshd.pid")
    os.kill(sshd, signal.SIGHUP)  # it begins anew, and writes its number down once it listens
    deadline = time.monotonic() + {sshd_within_s}
    while not os.path.exists("/run/sshd.pid"):
        if time.monotonic() > deadline:
            raise TimeoutError("the SSH server did not begin anew")
        time.sleep(0.005)
"""


def script(identity: Identity) -> str:
    """The script that makes the guest this machine; to be sent at once, because it carries the time.

    Where it runs, `received_at` is the guest's monotonic clock at its arrival, and `sshd_reads_keys_anew` says whether
    a host key that is there counts from the next connection on.
    """
    facts = {
        "now": time.time(),
        "seed": identity.seed,
        "hostname": identity.hostname,
        "machine_id": identity.machine_id,
        "host_private": identity.host_key.private,
        "host_public": identity.host_key.public,
        "login_public": identity.login_key.public,
        "user": USER,
    }
    return _SCRIPT.format(facts=facts, sshd_within_s=_SSHD_WITHIN_S)
