"""A catalogue loads as compiled rules, and a damaged one is refused with file, rule and key."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pytest_deploybench.layer1.rules import CatalogueError, load_catalogue, read_catalogue
from pytest_deploybench.model import Category

GOOD = {
    "id": "lost-cause",
    "category": "system",
    "patterns": ["lost", "gone"],
    "unless": ["lost and found"],
    "explanation": "It is lost.",
    "remedy": "Look for it.",
    "confidence": 0.75,
    "samples": {"hits": ["all lost"], "near_misses": ["lost and found"]},
}


def write(folder: Path, *entries: object, name: str = "system.yaml") -> Path:
    (folder / name).write_text(yaml.safe_dump(list(entries)), encoding="utf-8")
    return folder


def test_an_entry_becomes_a_rule(tmp_path: Path) -> None:
    (rule,) = read_catalogue(write(tmp_path, GOOD)).rules
    assert (rule.id, rule.category, rule.confidence) == ("lost-cause", Category.SYSTEM, 0.75)
    assert rule.hits == ("all lost",)
    assert [rule.matches(line) for line in ("all lost", "gone", "lost and found", "fine")] == [True, True, False, False]


def test_veto_may_be_left_out(tmp_path: Path) -> None:
    entry = {key: value for key, value in GOOD.items() if key != "unless"}
    assert read_catalogue(write(tmp_path, entry)).rules[0].unless == ()


def test_the_most_confident_rules_come_first_and_other_files_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, GOOD | {"id": "weak", "confidence": 0.2}, GOOD | {"id": "strong", "confidence": 1})
    write(tmp_path, GOOD, name="oom.yaml")
    (tmp_path / "notes.txt").write_text("not: [a catalogue", encoding="utf-8")
    assert [rule.id for rule in read_catalogue(tmp_path).rules] == ["strong", "lost-cause", "weak"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"category": "weather"}, "category"),
        ({"confidence": 1.5}, "confidence"),
        ({"confidence": 0}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"patterns": []}, "patterns"),
        ({"patterns": "lost"}, "patterns"),
        ({"patterns": ["lost", "(gone"]}, "patterns.1"),
        ({"unless": ["[a"]}, "unless.0"),
        ({"id": "Lost Cause"}, "id"),
        ({"remedy": " "}, "remedy"),
        ({"explanation": ""}, "explanation"),
        ({"samples": {"hits": ["x"]}}, "samples.near_misses"),
        ({"samples": {"hits": [], "near_misses": ["x"]}}, "samples.hits"),
        ({"samples": {"hits": ["x"], "near_misses": []}}, "samples.near_misses"),
        ({"pattern": "lost"}, "pattern"),
    ],
)
def test_a_wrong_key_is_named(tmp_path: Path, change: dict[str, object], key: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        read_catalogue(write(tmp_path, GOOD | change))
    error = caught.value
    assert (error.file, error.key) == ("system.yaml", key)
    assert error.rule == change.get("id", "lost-cause")
    assert str(error).startswith(f"system.yaml: rule {error.rule}: {key}: ")


@pytest.mark.parametrize("key", [key for key in GOOD if key != "unless"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    entry = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(CatalogueError) as caught:
        read_catalogue(write(tmp_path, entry))
    assert caught.value.key == key


def test_an_id_stands_once(tmp_path: Path) -> None:
    write(tmp_path, GOOD, name="oom.yaml")
    with pytest.raises(CatalogueError, match=r"^system\.yaml: rule lost-cause: id: stands twice"):
        read_catalogue(write(tmp_path, GOOD))


@pytest.mark.parametrize(
    ("text", "key"), [("a: [", "YAML"), ("a: 1", "top level"), ("", "top level"), ("- 3", "entry")]
)
def test_a_file_that_is_no_list_of_rules_is_refused(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "system.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(CatalogueError) as caught:
        read_catalogue(tmp_path)
    assert caught.value.key == key


def test_the_catalogue_of_the_package_is_read_once() -> None:
    assert load_catalogue() is load_catalogue()
