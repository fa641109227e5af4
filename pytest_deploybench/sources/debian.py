"""Downloads one file of a Debian source package through apt, as the host has it configured.

Promises a reviewer can check:
- the host stays as it is, and root is not needed: apt runs on a private state and private source lists, which are made
  from the host's own with source packages switched on; keys, proxies and credentials stay the host's;
- no hook of the host's apt runs, and nothing of a source package is unpacked or executed.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from pytest_deploybench.errors import SourceDigestError, SourceError
from pytest_deploybench.model import Source
from pytest_deploybench.ports import Progress
from pytest_deploybench.sources import client

SUITE = "bookworm"
"""The Debian release of the pinned sources; a Debian host of another release is asked for this one too."""

_OWN_SUITES = {"stable", "oldstable", "oldoldstable", "testing", "unstable", "sid"}
_ONE_LINE = re.compile(r"deb(?:-src)?\s+(?P<options>\[[^\]]*\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<components>.*)")
_TYPES = re.compile(r"^Types:.*$", re.MULTILINE | re.IGNORECASE)
_SUITES = re.compile(r"^Suites:(.*)$", re.MULTILINE | re.IGNORECASE)

_CONFIGURATION = """\
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/none.list";
Dir::Etc::sourceparts "{folder}/sources.list.d";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""


def download(source: Source, folder: Path, state: Path, progress: Progress) -> Path:
    """Put the source's file into `folder`, unchecked. `state` keeps apt's package lists from one time to the next.

    The file is looked for by its digest: the same upstream archive often outlives the Debian revision that is pinned.

    Raises:
        SourceError: this host has no apt, or no configured archive offers the file.
        SourceDigestError: what the archive has under this name is another file.
    """
    with _listed(source.name, state, progress) as (apt, listing, updated):
        version = _version(source, listing, updated)
        done = apt.call("apt-get", "-q", "source", "--download-only", "--only-source", version, cwd=folder)
    file = folder / source.filename
    if not file.is_file():
        raise SourceError(f"apt did not fetch {source.filename} ({_complaint(done)}).")
    if file.is_symlink():  # an archive on this host's own disk
        return Path(shutil.copyfile(file, folder / "copy"))
    return file


def locate(name: str, version: str, state: Path) -> tuple[str, str]:
    """File name and sha256 of the upstream archive in a version of a Debian source package.

    Raises:
        SourceError: this host has no apt, or no configured archive has that version.
    """
    versions = []
    with _listed(name, state, print) as (_, listing, _updated):
        for stanza in listing.split("\n\n"):
            found = re.search(r"^Version: (\S+)$", stanza, re.MULTILINE)
            archive = re.search(r"^ ([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.\w+)$", stanza, re.MULTILINE)
            if found and archive and found[1] == version:
                return archive[2], archive[1]
            versions += [found[1]] if found else []
    raise SourceError(
        f"no archive in this host's apt sources has {name} {version} with an upstream archive; versions: "
        f"{', '.join(sorted(set(versions))) or 'none'}."
    )


@contextmanager
def _listed(name: str, state: Path, progress: Progress) -> Iterator[tuple[_Apt, str, subprocess.CompletedProcess[str]]]:
    """apt, what its lists say of a source package, and how their update went; `state` is ours alone meanwhile."""
    client.require("apt-get", "It comes from the Debian archive, which apt can read on Debian and its relatives.")
    state.mkdir(parents=True, exist_ok=True)
    with FileLock(state / ".lock"):
        apt = _Apt(_prepare(state))
        progress("reading the lists of Debian source packages")
        updated = apt.call("apt-get", "-q", "update")
        yield apt, apt.call("apt-cache", "showsrc", "--only-source", name).stdout, updated


def source_lists(one_line: str, deb822: str, own_suites: set[str]) -> tuple[str, str]:
    """The host's source lists in both of apt's formats, with source packages in place of binary ones.

    `own_suites` are the suites by which the host may name a whole Debian release; next to such a one, `SUITE` is asked.
    """
    lines = []
    for line in one_line.splitlines():
        if entry := _ONE_LINE.fullmatch(line.strip()):
            suites = {entry["suite"], *([SUITE] if entry["suite"] in own_suites else [])}
            head, tail = f"deb-src {entry['options'] or ''}{entry['uri']}", entry["components"]
            lines += [f"{head} {suite}{tail}" for suite in sorted(suites)]
    stanzas = []
    for stanza in re.split(r"\n\s*\n", deb822):
        suites_field = _SUITES.search(stanza)
        if suites_field:
            suites = set(suites_field[1].split())
            suites |= {SUITE} if suites & own_suites else set()
            replaced = _SUITES.sub(f"Suites: {' '.join(sorted(suites))}", stanza)
            stanzas.append(_TYPES.sub("Types: deb-src", replaced).strip())
    return "\n".join(dict.fromkeys(lines)) + "\n", "\n\n".join(stanzas) + "\n"


@dataclass(frozen=True)
class _Apt:
    """apt on its private state."""

    configuration: Path

    def call(self, program: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = (program, "-c", str(self.configuration), *arguments)
        return client.run(*command, cwd=cwd, DEBIAN_FRONTEND="noninteractive")


def _prepare(state: Path) -> Path:
    """Write apt's private configuration and source lists."""
    parts = state / "sources.list.d"
    for folder in (parts, state / "state" / "lists" / "partial", state / "cache" / "archives" / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    own_suites = _own_suites()
    one_line, deb822 = _host_lists()
    if not own_suites:
        one_line += mmdebstrap_lists()
    one_line, deb822 = source_lists(one_line, deb822, own_suites)
    (parts / "host.list").write_text(one_line)
    (parts / "host.sources").write_text(deb822)
    configuration = state / "apt.conf"
    configuration.write_text(_CONFIGURATION.format(folder=state))
    return configuration


def _host_lists() -> tuple[str, str]:
    """The host's source lists: those in one-line format, those in deb822 format."""
    where = subprocess.run(
        ["apt-config", "shell", "list", "Dir::Etc::sourcelist/f", "parts", "Dir::Etc::sourceparts/d"],
        capture_output=True,
        text=True,
        check=True,
        timeout=client.TIMEOUT_S,
    ).stdout
    places = dict(re.findall(r"^(\w+)='(.*)'$", where, re.MULTILINE))
    files = [Path(places["list"]), *sorted(Path(places["parts"]).glob("*"))]
    texts: dict[str, list[str]] = {".list": [], ".sources": []}
    for file in files:
        if file.suffix in texts and file.is_file():
            texts[file.suffix].append(file.read_text(encoding="utf-8", errors="replace"))
    return "\n".join(texts[".list"]), "\n\n".join(texts[".sources"])


def _own_suites() -> set[str]:
    """How this host may name a release of Debian in its source lists; nothing where it is no Debian."""
    release = platform.freedesktop_os_release()
    return _OWN_SUITES | {release.get("VERSION_CODENAME", "sid")} if release.get("ID") == "debian" else set()


def mmdebstrap_lists() -> str:
    """The source lists that mmdebstrap, which builds our machines, would give a Debian guest; empty without it.

    So a host of another distribution finds Debian's archive as its own packager has set it up.
    """
    if shutil.which("mmdebstrap") is None:
        return ""
    # It is stopped right after it wrote the lists into the guest's still empty root.
    hook = 'cat "$1/etc/apt/sources.list" >&2; exit 1'
    command = ["mmdebstrap", "--variant=custom", "--format=null", f"--setup-hook={hook}", SUITE, "/dev/null"]
    said = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=client.TIMEOUT_S
    )
    return said.stdout + said.stderr


def _version(source: Source, listing: str, updated: subprocess.CompletedProcess[str]) -> str:
    """`NAME=VERSION` of the source package that holds exactly the pinned file."""
    versions, digests = set(), set()
    for stanza in listing.split("\n\n"):
        version = re.search(r"^Version: (\S+)$", stanza, re.MULTILINE)
        if version is None:
            continue
        listed = re.findall(rf"^ ([0-9a-f]{{64}}) \d+ {re.escape(source.filename)}$", stanza, re.MULTILINE)
        if source.sha256 in listed:
            return f"{source.name}={version[1]}"
        versions.add(version[1])
        digests.update(listed)
    if digests:
        raise SourceDigestError(
            f"the archive has {source.filename} with the sha256 {', '.join(sorted(digests))}, but {source.sha256} is "
            "pinned. If the pin in task.yaml is wrong, mend it and certify the task again."
        )
    if updated.returncode != 0:
        raise SourceError(f"apt cannot read the archive's lists of source packages ({_complaint(updated)}).")
    offered = f"they offer versions {', '.join(sorted(versions))}" if versions else "they do not know the package"
    raise SourceError(
        f"no archive in this host's apt sources holds {source.filename} with the pinned sha256; {offered}. Archives "
        f"drop old versions in time; a source list for the Debian release {SUITE} may help."
    )


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
    return " ".join((errors or done.stderr.splitlines())[-2:]) or f"exit status {done.returncode}"
