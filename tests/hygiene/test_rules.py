"""Each rule is silent on the guide's own task and speaks up, with file and remedy, where its folder is broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from pytest_deploybench import certification, hygiene, taskfile
from pytest_deploybench.certification import WITNESSES, Certificate, Statement
from pytest_deploybench.model import Verdict
from tests.support.guide import TOY, write_guide_task

Break = Callable[[Path], object]

MODULE = f"test_{TOY}.py"
ORACLE = "toysum_oracle.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_guide_task(tmp_path)


def replaced(file: str, old: str, new: str) -> Break:
    """Breaks a file by replacing a part of it that must be there."""

    def change(folder: Path) -> None:
        path = folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} stands in {file} of the guide no more"
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


def appended(file: str, text: str) -> Break:
    def change(folder: Path) -> None:
        with (folder / file).open("a", encoding="utf-8") as stream:
            stream.write(text)

    return change


def removed(file: str) -> Break:
    return lambda folder: (folder / file).unlink()


def keyed(key: str, value: object) -> Break:
    """Sets one key of task.yaml."""

    def change(folder: Path) -> None:
        path = folder / "task.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {key: value}))

    return change


def certified(
    *, stale: bool = False, agent_s: float = 600.0, reference: Verdict = Verdict.PASSED, task: str = TOY
) -> Break:
    """Puts a certificate beside the task, made on a machine ten times slower than native."""

    def change(folder: Path) -> None:
        said = {agent: Statement(verdict, "", None, {}, ()) for agent, verdict in WITNESSES.items()}
        said["reference"] = Statement(reference, "", None, {"agent": agent_s, "experiment": 60.0}, ())
        digest = "0" * 64 if stale else taskfile.digest(folder)
        content = Certificate(task, digest, "2026-01-01", "qemu", "image", "tcg", 10.0, {}, said)
        (folder / certification.FILENAME).write_text(json.dumps(asdict(content)))

    return change


BREAKS: list[tuple[str, str, Break]] = [
    ("files", "reference.sh", removed("reference.sh")),
    ("files", MODULE, removed(MODULE)),
    ("placeholders", "the first with: authors", appended("paper.md", "FILL IN: authors\n")),
    ("schema", "difficulty", keyed("difficulty", "trivial")),
    ("name", "<abbrev>_<venue><yy>", lambda folder: folder.rename(folder.with_name("toysum"))),
    ("paper-facts", "a link", replaced("paper.md", "<https://doi.org/10.1000/toysum>", "")),
    ("paper-facts", "`## Designated experiment`", replaced("paper.md", "The designated experiment", "Experiments")),
    ("paper-facts", "15 words", replaced("paper.md", "Files of random whole numbers of up to thirty", "")),
    ("paper-facts", "the year 2024", replaced("paper.md", "2024", "2023")),
    ("paper-facts", "a heading", replaced("paper.md", "# Adding Numbers Without Fear", "")),
    ("paper-facts", "the title that task.yaml gives", replaced("paper.md", "Without Fear", "Without Tears")),
    ("paper-facts", "40 words", lambda folder: (folder / "paper.md").write_text("# Adding Numbers\n")),
    ("instruction-names-no-check", "test_every_file", appended("instruction.md", "See test_every_file_has_its_sum.\n")),
    ("instruction-names-no-check", "'oracle'", appended("instruction.md", "The oracle adds them up too.\n")),
    ("instruction-names-no-check", ORACLE, appended("instruction.md", f"See {ORACLE}.\n")),
    ("instruction-values", "'toysum', a program that the checks look for", replaced("instruction.md", "toysum", "it")),
    ("instruction-values", "'add-files', a program that the exp", replaced("instruction.md", "add-files", "a command")),
    ("instruction-values", "'sums.json', a file that the exp", replaced("instruction.md", "`sums.json`", "a file")),
    ("instruction-values", "'sums', a key that the checks read", replaced("instruction.md", "sums", "totals")),
    ("tests", "has no docstring", replaced(MODULE, '    """sums.json has one decimal number for each file."""\n', "")),
    ("tests", "it has no docstring", replaced(MODULE, '"""Toysum, built', "#")),
    ("tests", "it has 2 checks", replaced(MODULE, "def test_every_file", "def every_file")),
    ("tests", "it is not Python", appended(MODULE, "def :\n")),
    ("asserts-explain", "has no message", replaced(MODULE, ', f"{path} is older than the hand-over"', "")),
    ("seed", "it has no draw(seed)", replaced(MODULE, "def draw(seed", "def drawn(seed")),
    ("seed", "the same challenge for different seeds", replaced(MODULE, "random.Random(seed)", "random.Random(7)")),
    ("seed", "different challenges for one seed", replaced(MODULE, "random.Random(seed)", "random.Random()")),
    ("seed", "draw(1) raises", replaced(MODULE, "range(3)", "range(1 // 0)")),
    ("no-sleep", f"{ORACLE}:", appended(ORACLE, "\n\ndef wait() -> None:\n    time.sleep(1)\n")),
    ("no-absolute-time", "absolute time limit", appended(MODULE, "\n\nQUICK = experiment.seconds < 5\n")),
    ("no-absolute-time", "absolute time limit", appended(MODULE, '\n\nSLOW = report["wall_seconds"] > LIMIT\n')),
    ("no-absolute-time", "it imports time", replaced(MODULE, "import random", "import time, random")),
    ("strict-scripts", "shallow.sh: it goes on", replaced("shallow.sh", "set -euo pipefail\n\nsudo", "sudo")),
    ("strict-scripts", "first line", replaced("reference.sh", "#!/usr/bin/env bash\n# Toysum", "#!/bin/sh\n# Toysum")),
    ("no-containers", "'podman'", replaced("shallow.sh", "mkdir -p ~/bin", "podman run toysum")),
    ("pinned", "pip installs numpy", replaced("reference.sh", "mkdir -p ~/bin", "pip install -q numpy scipy==1")),
    ("pinned", "pip installs scipy", replaced("reference.sh", "mkdir -p ~/bin", "pip install a==1 \\\n  scipy")),
    ("pinned", "npm installs d3", replaced("reference.sh", "mkdir -p ~/bin", "npm install d3 && true")),
    ("pinned", "cargo installs egg", replaced("reference.sh", "mkdir -p ~/bin", "cargo install egg")),
    ("pinned", "an address", replaced("reference.sh", "mkdir -p ~/bin", "git clone https://example.org/x")),
    ("shallow-claims-success", "claims no success", replaced("shallow.sh", 'echo "Success', '# echo "Success')),
    ("size", "64,000", lambda folder: (folder / "vendored.c").write_text("int x;\n" * 20_000)),
    ("size", "not text", lambda folder: (folder / "toysum.tar").write_bytes(b"\0" * 512)),
    ("size", "the folder has", lambda folder: [(folder / f"{n}.c").write_text("x" * 60_000) for n in range(4)]),
    ("budget", "the reference needed 400 s", certified(agent_s=4000.0)),
    ("certificate", "changed since", certified(stale=True)),
    ("certificate", "no certificate of this task", certified(reference=Verdict.FAILED)),
    ("certificate", "no certificate of this task", certified(task="other_toyconf24")),
    ("certificate", "is damaged", lambda folder: (folder / certification.FILENAME).write_text("{}")),
    ("certificate", "labelled smoke", keyed("labels", ["smoke"])),
    ("certified", "never certified", appended("paper.md", "")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "says", "breaks"), BREAKS, ids=[f"{rule}-{n}" for n, (rule, _, _) in enumerate(BREAKS)]
)
def test_a_broken_folder_is_told_what_is_wrong(folder: Path, rule: str, says: str, breaks: Break) -> None:
    moved = breaks(folder)
    broken = moved if isinstance(moved, Path) else folder
    complaints = [str(each) for each in hygiene.RULES[rule](hygiene.Folder(broken))]
    assert any(says in complaint for complaint in complaints), complaints
    assert all(complaint[-1] in '."' for complaint in complaints), "each ends with a remedy"


def test_every_rule_was_seen_to_speak() -> None:
    assert {rule for rule, _, _ in BREAKS} == hygiene.RULES.keys()


def test_the_guide_s_own_task_lacks_nothing_but_its_certificate(folder: Path) -> None:
    assert list(hygiene.examine(folder)) == ["certified"]
    certified()(folder)
    assert hygiene.examine(folder) == {}


@pytest.mark.parametrize(
    "line",
    [
        "pip install --no-compile --only-binary :all: numpy==1.24.4 ~/artifact",
        "pip install -r ~/artifact/requirements.txt",
        "cargo install --locked egg",
        "npm install d3@3.5.17",
        "go install example.org/x@v1.2.3",
        "# pip install numpy",
    ],
)
def test_pinned_and_local_installs_are_fine(folder: Path, line: str) -> None:
    replaced("reference.sh", "mkdir -p ~/bin", line)(folder)
    assert list(hygiene.RULES["pinned"](hygiene.Folder(folder))) == []


@pytest.mark.parametrize("command", ["python3 driver.py", "java Driver.java"])
def test_a_program_that_comes_along_answers_for_the_outputs_itself(folder: Path, command: str) -> None:
    program = command.partition(" ")[2]
    replaced(MODULE, "f\"add-files out {' '.join(columns)}\"", f'"{command}"')(folder)
    replaced(MODULE, "inputs={", f'inputs={{"{program}": b""}} | {{')(folder)
    replaced("instruction.md", "sums.json", "what java is asked for")(folder)
    broken = hygiene.Folder(folder)
    assert broken.drawn
    assert list(hygiene.RULES["instruction-values"](broken)) == []


def test_a_speed_against_a_baseline_is_no_absolute_time(folder: Path) -> None:
    appended(MODULE, '\n\nFASTER = 2\nOK = report["words_per_s"] >= FASTER * report["baseline_seconds"]\n')(folder)
    assert list(hygiene.RULES["no-absolute-time"](hygiene.Folder(folder))) == []
