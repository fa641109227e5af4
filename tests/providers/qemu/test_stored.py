"""A stored template is what its manifest says, or it is not there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pytest_deploybench.providers.qemu import stored
from pytest_deploybench.providers.qemu.stored import Template

MIB = 1 << 20


@pytest.fixture
def template(tmp_path: Path) -> Template:
    made = Template(tmp_path / "key", speed_factor=9.5, cold_because="")
    made.folder.mkdir()
    made.disk.write_bytes(b"disk" * 1000)
    (made.folder / "devices").write_bytes(b"devices")
    with made.memory.open("wb") as memory:
        memory.truncate(64 * MIB)
        memory.seek(10 * MIB + 5)
        memory.write(b"page")
    stored.write_manifest(made)
    return made


def test_what_was_written_is_loaded(template: Template) -> None:
    said: list[str] = []
    assert stored.load(template.folder, said.append) == template
    assert said == []


def test_a_missing_template_is_nothing_to_speak_of(tmp_path: Path) -> None:
    said: list[str] = []
    assert stored.load(tmp_path / "none", said.append) is None
    assert said == []


def flip_a_byte_of_memory(template: Template) -> None:
    with template.memory.open("r+b") as memory:
        memory.seek(10 * MIB + 6)
        memory.write(b"X")


def write_into_a_hole(template: Template) -> None:
    with template.memory.open("r+b") as memory:
        memory.seek(40 * MIB)
        memory.write(b"X")


DAMAGE = {
    "memory": flip_a_byte_of_memory,
    "a hole in memory": write_into_a_hole,
    "a shorter disk": lambda template: template.disk.write_bytes(b"disk"),
    "no devices": lambda template: (template.folder / "devices").unlink(),
    "no manifest": lambda template: (template.folder / "template.json").unlink(),
    "half a manifest": lambda template: (template.folder / "template.json").write_text('{"files": {'),
    "another manifest": lambda template: (template.folder / "template.json").write_text('{"files": []}'),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_template_is_absent_and_somebody_is_told(template: Template, damage: object) -> None:
    assert callable(damage)
    damage(template)
    said: list[str] = []
    assert stored.load(template.folder, said.append) is None
    assert len(said) == 1
    assert str(template.folder) in said[0]
    assert "made again" in said[0]


def test_how_a_file_lies_on_the_disk_does_not_matter(tmp_path: Path) -> None:
    """File systems turn holes into zeros and back as they like, for instance when a file is copied or written out."""
    sparse, full = tmp_path / "sparse", tmp_path / "full"
    content = b"\0" * (3 * MIB) + b"data" + b"\0" * (2 * MIB)
    full.write_bytes(content)
    with sparse.open("wb") as file:
        file.truncate(len(content))
        file.seek(3 * MIB)
        file.write(b"data")
    assert sparse.stat().st_blocks < full.stat().st_blocks
    assert stored.digest_of(sparse) == stored.digest_of(full)


def test_data_at_another_place_is_another_content(tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    early.write_bytes(b"data".ljust(MIB, b"\0") + b"\0" * MIB)
    late.write_bytes(b"\0" * MIB + b"data".ljust(MIB, b"\0"))
    assert stored.digest_of(early) != stored.digest_of(late)


def test_what_nobody_used_for_long_is_forgotten(template: Template) -> None:
    templates = template.folder.parent
    day_before_yesterday = time.time() - 2 * 86_400
    unfinished, held = templates / "other.building", templates / "held"
    for folder in (unfinished, held, template.folder):
        folder.mkdir(exist_ok=True)
        os.utime(folder, (day_before_yesterday, day_before_yesterday))
    stored.load(template.folder, print)
    with stored.lock_of(held):
        assert stored.forget_unused(templates, days=1) == [unfinished]
    assert template.folder.exists()
    assert stored.forget_unused(templates, days=1) == [held]
