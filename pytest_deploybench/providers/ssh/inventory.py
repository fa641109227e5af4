"""Reads an inventory file: the user's own hosts, each with the key that it must show.

- Whatever a person may get wrong becomes an `InventoryError` that names the file, the host, the key and the remedy.
- A host without a pinned key is refused; none is ever learnt by connecting.
- No value of the file and nothing of a private key is repeated in an error.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import os
import shlex
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import MachineSize

ANY_GPU = "gpu"
"""Label of a host whose GPU suits whatever GPU a task asks for."""
KEY_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
DEFAULT_RESET_LIMIT_S = 1800.0


class InventoryError(UsageError):
    """An inventory file is not what the schema asks for."""

    def __init__(self, file: object, host: str, key: str, problem: str, remedy: str) -> None:
        where = f"host {host}: {key}" if host else key
        super().__init__(f"{file}: {where}: {problem}. {remedy}")
        self.file, self.host, self.key, self.problem, self.remedy = str(file), host, key, problem, remedy


@dataclass(frozen=True)
class Reset:
    """How a host is made fresh again: a command on this side, not on the host."""

    command: tuple[str, ...]
    limit_s: float


@dataclass(frozen=True)
class Host:
    """One machine of the user's own."""

    name: str
    host: str
    port: int
    user: str
    key_file: Path
    host_key: str
    """Public host key as `ssh-ed25519 AAAA...`: the only one it may show."""
    labels: tuple[str, ...]
    cpus: int
    memory_gb: float
    disk_gb: int
    speed_factor: float
    reset: Reset | None
    """None: the host is used once."""
    inventory: Path

    @property
    def address(self) -> str:
        """What tells one host from another, whatever an inventory calls it."""
        return f"{self.host.lower()}:{self.port}"

    @property
    def how_to_pin(self) -> str:
        """What to run to learn its host key, and where to write the result."""
        return how_to_pin(self.inventory, self.name, self.host, self.port)

    def shortfall(self, size: MachineSize) -> str | None:
        """What this host lacks for such a machine, in words; None if nothing."""
        rows = (
            ("CPUs", size.cpus, self.cpus),
            ("GB of memory", size.memory_gb, self.memory_gb),
            ("GB of disk", size.disk_gb, self.disk_gb),
        )
        lacks = [f"has {there:g} of {wanted:g} {what}" for what, wanted, there in rows if wanted > there]
        if size.accelerator and not {size.accelerator, ANY_GPU} & set(self.labels):
            lacks.append(f"has neither the label {size.accelerator} nor {ANY_GPU}")
        return ", ".join(lacks) or None


@dataclass(frozen=True)
class Inventory:
    """The hosts of one file, in its order."""

    file: Path
    hosts: tuple[Host, ...]

    def fitting(self, size: MachineSize) -> list[Host]:
        """Hosts that could be such a machine: those with the fewest labels first, then the smallest."""
        fit = [host for host in self.hosts if host.shortfall(size) is None]
        return sorted(fit, key=lambda host: (len(host.labels), host.cpus, host.memory_gb))


# --- the schema ------------------------------------------------------------------------------------------------------


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it holds a control character")
    return text


def _one_word(text: str) -> str:
    if text.startswith("-") or any(letter.isspace() for letter in text):
        raise ValueError("it must be one word and not begin with a dash")
    return text


def _as_argv(command: Any) -> Any:
    return ["/bin/sh", "-c", command] if isinstance(command, str) and command.strip() else command


def _argument(text: str) -> str:
    if "\0" in text:
        raise ValueError("it holds a zero byte")
    return text


def _public_key(text: str) -> str:
    words = text.split()
    if len(words) > 2 and words[0] not in KEY_TYPES and words[1] in KEY_TYPES:
        raise ValueError("it begins with the host's name, as in a known_hosts file; leave that out")
    if len(words) < 2 or words[0] not in KEY_TYPES:
        raise ValueError("it is no public host key; a type and its base64 text are expected")
    try:
        blob = base64.b64decode(words[1], validate=True)
    except binascii.Error:
        raise ValueError("its base64 text is damaged") from None
    kind = words[0].encode()
    if blob[: 4 + len(kind)] != len(kind).to_bytes(4, "big") + kind or len(blob) < 4 + len(kind) + 32:
        raise ValueError("its base64 text is cut short or of another type than it says")
    return " ".join(words[:2])


_Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255), AfterValidator(_printable)
]
_Word = Annotated[_Text, AfterValidator(_one_word)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _ResetForm(_Form):
    command: Annotated[
        tuple[Annotated[str, AfterValidator(_argument)], ...], BeforeValidator(_as_argv), Field(min_length=1)
    ]
    limit_s: Annotated[float, Field(gt=0)] = DEFAULT_RESET_LIMIT_S


class _HostForm(_Form):
    name: _Text
    host: _Word
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    user: _Word = "agent"
    key_file: _Text
    host_key: Annotated[str, AfterValidator(_public_key)]
    labels: tuple[_Word, ...] = ()
    cpus: Annotated[int, Field(ge=1)]
    memory_gb: Annotated[float, Field(gt=0)]
    disk_gb: Annotated[int, Field(ge=1)]
    speed_factor: Annotated[float, Field(ge=1)] = 1.0
    reset: _ResetForm | None = None


class _InventoryForm(_Form):
    hosts: Annotated[tuple[_HostForm, ...], Field(min_length=1)]


_REMEDIES = {
    "hosts": "Give a list of hosts, each with name, host, key_file, host_key, cpus, memory_gb and disk_gb.",
    "name": "Give a name by which you know the host.",
    "host": "Give its DNS name or address.",
    "port": "Give the port of its SSH server, or leave the key out for 22.",
    "user": "Give the login user, who may use sudo without a password, or leave the key out for agent.",
    "key_file": "Give the path of the private key that opens the host, relative to this file or absolute.",
    "labels": "Give a list such as [gpu], or [nvidia-tesla-t4] to name the GPU; leave the key out where there is none.",
    "cpus": "Give a whole number of cores, for example 16.",
    "memory_gb": "Give the memory in gigabytes, for example 64.",
    "disk_gb": "Give the free disk in whole gigabytes, for example 200.",
    "speed_factor": "Give how many times slower than native it is, at least 1, or leave the key out.",
    "reset": "Give command and limit_s, or leave the key out: then the host is used once.",
    "reset.command": "Give a shell command, or a list of program and arguments; it runs beside pytest, not there.",
    "reset.limit_s": "Give the seconds within which the command must end, or leave the key out for "
    f"{DEFAULT_RESET_LIMIT_S:g}.",
}
"""How to mend a key of a host; `host_key` has its own words, which name the host."""


def how_to_pin(file: Path, name: str, host: str, port: int) -> str:
    """What to run to learn a host's key, and where to write the result."""
    scan = f"ssh-keyscan -t ed25519 -p {port} {shlex.quote(host)} 2>/dev/null | cut -d' ' -f2-"
    return (
        f"To pin it, run `{scan}`, compare the result with /etc/ssh/ssh_host_ed25519_key.pub as the host's own console "
        f"shows it, and write it as host_key of host {name} in {file}."
    )


# --- reading ---------------------------------------------------------------------------------------------------------


def load(file: Path) -> Inventory:
    """The hosts of an inventory file.

    Raises:
        InventoryError: the file, or a key file that it names, cannot be used as it is.
    """
    file = file.expanduser().absolute()
    content = _parsed(file)
    try:
        form = _InventoryForm.model_validate(content)
    except ValidationError as error:
        # Unknown keys come first: a misspelt key is the cause of the missing one that is reported beside it.
        first = min(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
        raise _explained(file, content, first) from None
    hosts = tuple(_host(file, host) for host in form.hosts)
    _check_unique(file, hosts)
    for host in hosts:
        _check_key_file(host)
    return Inventory(file, hosts)


def _host(file: Path, form: _HostForm) -> Host:
    values = form.model_dump() | {
        "key_file": file.parent / Path(form.key_file).expanduser(),
        "reset": form.reset and Reset(form.reset.command, form.reset.limit_s),
    }
    return Host(**values, inventory=file)


def _parsed(file: Path) -> dict[str, Any]:
    def wrong(problem: str, remedy: str, key: str = "inventory") -> InventoryError:
        return InventoryError(file, "", key, problem, remedy)

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise wrong("there is no such file", "Write it, or name another with --deploybench-inventory.") from None
    except UnicodeDecodeError as error:
        raise wrong(f"not UTF-8 text ({error.reason})", "Save the file as UTF-8.") from None
    except OSError as error:
        raise wrong(f"it cannot be read ({error.strerror})", "Name a file that you may read.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "inventory"
        problem = getattr(error, "problem", None) or type(error).__name__
        raise wrong(f"not YAML: {problem}", "Mend the YAML there; a value with a colon needs quotes.", where) from None
    if not isinstance(content, dict):
        found = "nothing" if content is None else type(content).__name__
        raise wrong(f"keys and values are expected, not {found}", "Begin with `hosts:` and a list of hosts.")
    return content


def _explained(file: Path, content: dict[str, Any], detail: ErrorDetails) -> InventoryError:
    loc = detail["loc"]
    raw = content["hosts"][loc[1]] if len(loc) > 1 and isinstance(loc[1], int) else {}
    given = raw if isinstance(raw, dict) else {}
    name = str(given.get("name") or f"number {loc[1] + 1}") if len(loc) > 1 and isinstance(loc[1], int) else ""
    parts = [str(part) for part in loc[2:]] or [str(loc[0])]
    key = ".".join(parts)
    if detail["type"] == "extra_forbidden":
        known = _keys(len(loc) > 1, parts[0] == "reset")
        near = difflib.get_close_matches(parts[-1], known, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        return InventoryError(file, name, key, "unknown key", f"{hint}Known here: {', '.join(known)}.")
    problem = detail["msg"].removeprefix("Value error, ")
    remedy = _REMEDIES.get(".".join(parts[:2])) or _REMEDIES.get(parts[0], _REMEDIES["hosts"])
    if parts[0] == "host_key":
        port = given.get("port", 22)
        remedy = how_to_pin(file, name, str(given.get("host", "HOST")), port if isinstance(port, int) else 22)
        problem = "no host key is pinned, and none is ever learnt by connecting" if "host_key" not in given else problem
    return InventoryError(file, name, key, problem[0].lower() + problem[1:], remedy)


@cache
def _keys(of_host: bool, of_reset: bool) -> tuple[str, ...]:
    form: type[BaseModel] = _ResetForm if of_reset else _HostForm if of_host else _InventoryForm
    return tuple(form.model_fields)


def _check_unique(file: Path, hosts: tuple[Host, ...]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for host in hosts:
        for key, value in (("name", host.name), ("host", host.address)):
            if (key, value) in seen:
                other = seen[key, value]
                remedy = "Name each host once, and give each a name of its own."
                raise InventoryError(file, host.name, key, f"{value} stands there twice, also as host {other}", remedy)
            seen[key, value] = host.name


def _check_key_file(host: Host) -> None:
    import paramiko

    def wrong(problem: str, remedy: str) -> InventoryError:
        return InventoryError(host.inventory, host.name, "key_file", problem, remedy)

    path, shown = host.key_file, shlex.quote(str(host.key_file))
    if not path.is_file() or not os.access(path, os.R_OK):
        what = "there is no such file" if not path.exists() else "it is not a file that you may read"
        remedy = (
            f"Make a key with `ssh-keygen -t ed25519 -N '' -f {shown}` and add its .pub to the host, or mend the path."
        )
        raise wrong(f"{path}: {what}", remedy)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise wrong(f"{path}: other users of this machine may read the private key", f"Run `chmod 600 {shown}`.")
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            kind.from_private_key_file(str(path))
        except paramiko.PasswordRequiredException:
            remedy = "Use a key made for these hosts, without a passphrase: nobody is there to type it."
            raise wrong(f"{path}: the private key has a passphrase", remedy) from None
        except (paramiko.SSHException, ValueError):
            continue
        return
    raise wrong(
        f"{path}: it is no private key in OpenSSH form (ed25519, ecdsa or rsa)",
        "Give the private half, the file without .pub.",
    )
