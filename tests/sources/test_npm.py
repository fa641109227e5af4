"""The registry of JavaScript is the one that npm is configured to use, and no script of a package runs."""

from __future__ import annotations

import hashlib
import json
import shutil
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


def pinned(archive: bytes, name: str = "demo-tool", filename: str = "demo-tool-1.0.0.tgz") -> Source:
    return Source(Registry.NPM, name, "1.0.0", filename, hashlib.sha256(archive).hexdigest())


def package(name: str = "demo-tool", **scripts: str) -> bytes:
    manifest = {"name": name, "version": "1.0.0", "scripts": scripts}
    return registries.tar_gz({"package/package.json": json.dumps(manifest)})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[registries.Registry]:
    if shutil.which("npm") is None:
        pytest.skip("these tests talk to a real npm: install Node.js with npm")
    with registries.running_registry() as running:
        monkeypatch.setenv("npm_config_registry", running.url)
        monkeypatch.setenv("npm_config_fetch_retries", "0")
        yield running


def test_a_pinned_package_is_fetched_once(registry: registries.Registry, store: Path) -> None:
    archive = package()
    registry.add_to_npm("demo-tool", "1.0.0", archive)
    path = fetch(pinned(archive), store, quiet)
    assert path.read_bytes() == archive
    assert fetch(pinned(archive), store, quiet) == path
    assert registry.asked.count("/files/demo-tool-1.0.0.tgz") == 1
    assert sorted(each.name for each in path.parent.iterdir()) == [".lock", path.name]


def test_a_package_of_a_scope_is_pinned_by_what_the_registry_gives(
    registry: registries.Registry, tmp_path: Path, store: Path
) -> None:
    archive = package("@demo/tool")
    registry.add_to_npm("@demo/tool", "1.0.0", archive)
    source = locate(Registry.NPM, "@demo/tool", "1.0.0", tmp_path)
    assert source == pinned(archive, "@demo/tool", "demo-tool-1.0.0.tgz")
    assert verify(fetch(source, store, quiet))


def test_another_content_than_the_pinned_one_is_refused(registry: registries.Registry, store: Path) -> None:
    registry.add_to_npm("demo-tool", "1.0.0", package(test="true"))
    with pytest.raises(SourceDigestError, match=r"but .* is pinned"):
        fetch(pinned(package()), store, quiet)


def test_another_file_name_than_the_pinned_one_is_named(registry: registries.Registry, store: Path) -> None:
    archive = package()
    registry.add_to_npm("demo-tool", "1.0.0", archive)
    with pytest.raises(SourceError, match=r"calls its archive demo-tool-1\.0\.0\.tgz, not tool\.tgz"):
        fetch(pinned(archive, filename="tool.tgz"), store, quiet)


@pytest.mark.parametrize(
    ("name", "version", "complaint"),
    [
        ("demo-tool", "7.7.7", r"No matching version found for demo-tool@7\.7\.7.*supply it yourself"),
        ("no-such-thing", "1.0.0", "E404.*no-such-thing"),
        ("demo-tool", "^1.0.0", "no package with an exact version"),
        ("demo/tool", "1.0.0", "no package with an exact version"),
        ("../tool", "1.0.0", "no package with an exact version"),
    ],
)
def test_what_the_registry_lacks_is_named(
    registry: registries.Registry, store: Path, name: str, version: str, complaint: str
) -> None:
    registry.add_to_npm("demo-tool", "1.0.0", package())
    with pytest.raises(SourceError, match=complaint):
        fetch(Source(Registry.NPM, name, version, "x.tgz", "0" * 64), store, quiet)


def test_a_registry_that_cannot_be_reached_is_named_without_its_password(
    registry: registries.Registry, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_registry", f"http://me:hunter22@127.0.0.1:{free_port()}/")
    with pytest.raises(SourceError, match=r"ECONNREFUSED.*127\.0\.0\.1") as caught:
        fetch(pinned(b""), store, quiet)
    assert "hunter22" not in str(caught.value)


def test_no_script_of_a_package_runs(registry: registries.Registry, store: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    script = f"touch {canary}"
    archive = package(preinstall=script, install=script, postinstall=script, prepare=script, prepack=script)
    registry.add_to_npm("demo-tool", "1.0.0", archive)
    fetch(pinned(archive), store, quiet)
    assert not canary.exists()


def test_a_host_without_npm_is_told_so(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SourceError, match=r"no npm to fetch it with\. Install Node\.js with npm.*supply it yourself"):
        fetch(pinned(b""), store, quiet)


@pytest.mark.network
def test_a_pinned_package_of_the_real_registry(store: Path) -> None:
    pin = "b2c1d1af8e598dcec4a0da85a93f453e5d331ce40ea47a58be9db0a562100748"
    assert verify(fetch(Source(Registry.NPM, "d3", "3.0.0", "d3-3.0.0.tgz", pin), store, quiet))
