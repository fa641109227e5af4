"""The registry of Rust is the one that cargo is configured to use, and no code of a crate runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_deploybench.errors import SourceDigestError, SourceError
from pytest_deploybench.model import Registry, Source
from pytest_deploybench.sources import fetch, locate, verify
from tests.support import registries
from tests.support.sshd import free_port


def quiet(line: str) -> None:
    """Nobody listens."""


def crate(**files: str) -> bytes:
    manifest = '[package]\nname = "demo-tool"\nversion = "1.0.0"\nedition = "2021"\n'
    texts = {"Cargo.toml": manifest, "src/lib.rs": ""} | files
    return registries.tar_gz({f"demo-tool-1.0.0/{name}": text for name, text in texts.items()})


def pinned(archive: bytes, filename: str = "demo-tool-1.0.0.crate") -> Source:
    return Source(Registry.CRATES, "demo-tool", "1.0.0", filename, hashlib.sha256(archive).hexdigest())


def configure(home: Path, url: str) -> None:
    """Have cargo ask this registry instead of its default one."""
    (home / "config.toml").write_text(
        f'[source.crates-io]\nreplace-with = "mine"\n[source.mine]\nregistry = "sparse+{url}/"\n[net]\nretry = 0\n'
    )


def _knows_sparse_registries() -> bool:
    """Debian 12's own cargo does not know the kind of registry that stands in here."""
    if shutil.which("cargo") is None:
        return False
    said = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = map(int, said.split()[1].split(".")[:2])
    return (major, minor) >= (1, 68)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """cargo's home on this host."""
    if not _knows_sparse_registries():
        pytest.skip("these tests talk to a real cargo of version 1.68 or later: install Rust")
    for name in [name for name in os.environ if name.startswith(("CARGO_REGISTR", "CARGO_SOURCE"))]:
        monkeypatch.delenv(name)
    home = tmp_path / "cargo"
    home.mkdir()
    monkeypatch.setenv("CARGO_HOME", str(home))
    return home


@pytest.fixture
def registry(home: Path) -> Iterator[registries.Registry]:
    with registries.running_registry() as running:
        configure(home, running.url)
        yield running


def test_a_pinned_crate_is_fetched_once_and_cargo_s_home_is_left_alone(
    registry: registries.Registry, store: Path, home: Path
) -> None:
    archive = crate()
    registry.add_to_crates("demo-tool", "1.0.0", archive)
    path = fetch(pinned(archive), store, quiet)
    assert path.read_bytes() == archive
    assert fetch(pinned(archive), store, quiet) == path
    assert registry.asked.count("/files/demo-tool/1.0.0/download") == 1
    assert sorted(each.name for each in path.parent.iterdir()) == [".lock", path.name]
    assert [each.name for each in home.iterdir()] == ["config.toml"]


def test_a_crate_is_pinned_by_what_the_registry_gives(registry: registries.Registry, tmp_path: Path) -> None:
    archive = crate()
    registry.add_to_crates("demo-tool", "1.0.0", archive)
    assert locate(Registry.CRATES, "demo-tool", "1.0.0", tmp_path) == pinned(archive)


def test_another_content_than_the_pinned_one_is_refused(registry: registries.Registry, store: Path) -> None:
    registry.add_to_crates("demo-tool", "1.0.0", crate(README="another"))
    with pytest.raises(SourceDigestError, match=r"but .* is pinned"):
        fetch(pinned(crate()), store, quiet)


@pytest.mark.parametrize(
    ("name", "version", "complaint"),
    [
        ("demo-tool", "7.7.7", r"demo-tool = .=7\.7\.7.*supply it yourself"),
        ("no-such-thing", "1.0.0", "no matching package.*no-such-thing"),
        ("demo-tool", "1", "no crate with an exact version"),
        ("../tool", "1.0.0", "no crate with an exact version"),
    ],
)
def test_what_the_registry_lacks_is_named(
    registry: registries.Registry, store: Path, name: str, version: str, complaint: str
) -> None:
    registry.add_to_crates("demo-tool", "1.0.0", crate())
    with pytest.raises(SourceError, match=complaint):
        fetch(Source(Registry.CRATES, name, version, "x.crate", "0" * 64), store, quiet)


def test_a_registry_that_cannot_be_reached_is_named_without_its_password(home: Path, store: Path) -> None:
    configure(home, f"http://me:hunter22@127.0.0.1:{free_port()}")
    with pytest.raises(SourceError, match=r"cargo does not give it.*127\.0\.0\.1") as caught:
        fetch(pinned(b""), store, quiet)
    assert "hunter22" not in str(caught.value)


def test_no_code_of_a_crate_runs(registry: registries.Registry, store: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    archive = crate(**{"build.rs": f'fn main() {{ std::fs::write("{canary}", "").unwrap(); }}'})
    registry.add_to_crates("demo-tool", "1.0.0", archive)
    fetch(pinned(archive), store, quiet)
    assert not canary.exists()


def test_a_host_without_cargo_is_told_so(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SourceError, match=r"no cargo to fetch it with\. Install Rust with cargo.*supply it yourself"):
        fetch(pinned(b""), store, quiet)


@pytest.mark.network
def test_a_pinned_crate_of_the_real_registry(store: Path) -> None:
    pin = "96beaf9d35dbc4686bc86a4ecb851fd6a406f0bf32d9f646b1225a5c5cf5b5d7"
    assert verify(fetch(Source(Registry.CRATES, "egg", "0.9.5", "egg-0.9.5.crate", pin), store, quiet))
