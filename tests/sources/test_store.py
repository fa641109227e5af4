"""The store holds whole, checked files or none, whoever asks at once and whatever breaks off."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_deploybench.errors import SourceDigestError, SourceError
from pytest_deploybench.model import Fault, Source
from pytest_deploybench.sources import fetch, find, verify
from tests.sources.conftest import DATA
from tests.support.index import Index


def quiet(line: str) -> None:
    """Nobody listens."""


def test_a_source_is_fetched_once_and_kept_by_content(index: Index, source: Source, store: Path) -> None:
    said: list[str] = []
    path = fetch(source, store, said.append)
    assert path == store / source.sha256 / source.filename
    assert path.read_bytes() == DATA
    assert said == ["fetching demo_tool-1.0.tar.gz of Demo_Tool 1.0"]
    assert fetch(source, store, said.append) == path
    assert index.downloads() == 1
    assert len(said) == 1


def test_a_file_that_somebody_supplied_is_used_without_any_network(source: Source, store: Path) -> None:
    (store / source.sha256).mkdir(parents=True)
    (store / source.sha256 / source.filename).write_bytes(DATA)
    assert verify(fetch(source, store, quiet))


def test_a_spoilt_file_in_the_store_is_fetched_again(index: Index, source: Source, store: Path) -> None:
    path = fetch(source, store, quiet)
    path.write_bytes(DATA + b"x")
    assert not verify(path)
    said: list[str] = []
    assert fetch(source, store, said.append).read_bytes() == DATA
    assert "is not the pinned file" in said[0]


def test_another_content_under_the_pinned_name_is_refused(index: Index, source: Source, store: Path) -> None:
    other = dataclasses.replace(source, sha256="0" * 64)
    with pytest.raises(SourceDigestError, match=rf"{source.sha256}, but {'0' * 64} is pinned") as caught:
        fetch(other, store, quiet)
    assert caught.value.fault is Fault.TASK
    assert not (store / other.sha256 / other.filename).exists()


def test_the_error_says_how_to_supply_the_file(index: Index, source: Source, store: Path) -> None:
    missing = dataclasses.replace(source, version="7.7", filename="demo_tool-7.7.tar.gz")
    with pytest.raises(SourceError) as caught:
        fetch(missing, store, quiet)
    assert str(caught.value).startswith("Demo_Tool 7.7: ")
    assert f"{store / source.sha256 / 'demo_tool-7.7.tar.gz'}" in str(caught.value)
    assert "--deploybench-sources" in str(caught.value)


def test_several_who_ask_at_once_share_one_download(index: Index, source: Source, store: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: fetch(source, store, quiet), range(8)))
    assert len(paths) == 1
    assert index.downloads() == 1


def test_a_download_that_breaks_off_is_begun_again(index: Index, source: Source, store: Path) -> None:
    def break_twice(number: int) -> None:
        if number < 3:
            raise ConnectionError

    index.before_half = break_twice
    said: list[str] = []
    assert fetch(source, store, said.append).read_bytes() == DATA
    assert sum("broke off" in line for line in said) == 2


def test_a_download_that_never_completes_leaves_nothing(index: Index, source: Source, store: Path) -> None:
    def break_off(number: int) -> None:
        raise ConnectionError

    index.before_half = break_off
    with pytest.raises(SourceError, match=source.filename):
        fetch(source, store, quiet)
    assert [path.name for path in (store / source.sha256).iterdir()] == [".lock"]


def test_a_process_killed_in_mid_download_leaves_nothing_wrong(index: Index, source: Source, store: Path) -> None:
    half, gone = threading.Event(), threading.Event()

    def wait(number: int) -> None:
        if number == 1:
            half.set()
            gone.wait(60)
            raise ConnectionError

    index.before_half = wait
    code = "import sys; from pathlib import Path; from pytest_deploybench.model import *; "
    code += f"from pytest_deploybench.sources import fetch; fetch({source!r}, Path(sys.argv[1]), print)"
    code = code.replace("<Registry.PYPI: 'pypi'>", "Registry.PYPI")
    child = subprocess.Popen([sys.executable, "-c", code, str(store)])
    assert half.wait(60)
    child.kill()
    child.wait()
    gone.set()
    assert not (store / source.sha256 / source.filename).exists()
    assert fetch(source, store, quiet).read_bytes() == DATA
    assert sorted(path.name for path in (store / source.sha256).iterdir()) == [".lock", source.filename]


@pytest.mark.parametrize(
    "pin", [{"sha256": "../../x"}, {"sha256": "A" * 64}, {"filename": "../escape"}, {"filename": "/etc/passwd"}]
)
def test_a_malformed_pin_never_leads_out_of_the_store(source: Source, store: Path, pin: dict[str, str]) -> None:
    with pytest.raises(SourceError, match="the pin is malformed"):
        fetch(dataclasses.replace(source, **pin), store, quiet)  # type: ignore[arg-type]
    assert not store.exists()


def test_find_takes_the_store_as_it_is_and_asks_nobody(index: Index, source: Source, store: Path) -> None:
    with pytest.raises(SourceError, match=rf"is not there. `deploybench sources fetch --dir {store}`"):
        find(source, store)
    assert not store.exists()
    path = fetch(source, store, quiet)
    assert find(source, store) == path
    path.write_bytes(b"spoilt")
    with pytest.raises(SourceDigestError, match="its sha256 differs"):
        find(source, store)
    assert path.read_bytes() == b"spoilt"
    assert index.downloads() == 1
