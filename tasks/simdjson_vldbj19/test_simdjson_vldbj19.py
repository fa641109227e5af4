"""simdjson, built from the given source, reads all of a fresh JSON file, rejects every broken one, and is fast.

Documents are drawn anew. Python's own parser says on the host what each holds, to the last bit of every number, and
whether it is JSON at all.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass

from testinfra.host import Host

from pytest_deploybench.layer2 import Challenge, Experiment, evidence
from pytest_deploybench.model import AgentRun
from tasks.simdjson_vldbj19 import simdjson_oracle as oracle

VERSION = "3.0.1"
KERNELS = (({"avx2", "bmi1", "bmi2", "pclmulqdq"}, {"haswell", "icelake"}), ({"sse4_2", "pclmulqdq"}, {"westmere"}))
"""Processor flags and the kernels that may then be active, best first; `fallback` is for processors with neither."""
SYMBOL = b"_ZN8simdjson"
"""Every function of simdjson's namespace begins so: in the symbol table of an unstripped program that contains it."""
FASTER = 1.5
"""Than Python's parser on the same machine: at least 5 times natively and 4 times emulated, under load too."""


@dataclass(frozen=True)
class JsonChallenge(Challenge):
    """Files with what is true of each; None for what is not JSON."""

    truth: Mapping[str, oracle.Stats | None]


def draw(seed: int) -> JsonChallenge:
    rng = random.Random(seed)
    lines = [oracle.draw_line(rng) for _ in range(300)]
    documents = {
        "document.json": [oracle.draw_document(rng, 300_000)],
        "messages.json": [oracle.draw_messages(rng, 1_000)],
        "stream.ndjson": lines,
        "broken-line.ndjson": [*lines[:5], oracle.BREAKINGS["wrong-punctuation"](rng, [b"[", b"1", b",", b"2", b"]"])],
        "broken-end.ndjson": [*lines[:5], lines[5][:-1]],
        **{f"{name}.json": [document] for name, document in oracle.draw_cases(rng).items()},
    }
    inputs = {name: b"\n".join(parts) for name, parts in documents.items()}
    return JsonChallenge(
        command="python3 simdjson_experiment.py",
        inputs={"simdjson_experiment.py": oracle.driver(), **inputs},
        outputs=("results.json",),
        truth={name: oracle.stats(parts) for name, parts in documents.items()},
    )


def test_jsonstat_was_built_with_the_given_source(server: Host, agent_run: AgentRun, experiment: Experiment) -> None:
    """`jsonstat` is a fresh ELF program of no package, and simdjson is in it or in a fresh library that it loads."""
    path = evidence.program(server, "jsonstat")
    assert path, "expected a command `jsonstat` on PATH after env.sh, there is none"
    parts = [path, *experiment.json("results.json")["libraries"]]
    for part in parts:
        owner = evidence.package_owner(server, part)
        assert owner is None, f"simdjson should be built here, but {part} is of the package {owner}"
        assert evidence.changed_after_handover(server, part, agent_run), f"{part} is older than the hand-over"
    assert any(evidence.contains(server, part, SYMBOL) for part in parts), (
        f"expected functions of simdjson in the symbol table of {' or '.join(parts)}, there are none"
    )
    packages = str(server.run("dpkg-query -W -f '${Package} ' 'libsimdjson*'").stdout).split()
    assert not packages, f"simdjson should come from the given source alone, but {packages} are installed"


def test_the_fastest_kernel_of_this_processor_is_active(server: Host, experiment: Experiment) -> None:
    """Version 3.0.1 reports the vector kernel that the processor's flags allow."""
    report = _report(experiment, "document.json")
    flags = set(str(server.run("grep -m 1 ^flags /proc/cpuinfo").stdout).split())
    allowed = next((kernels for needed, kernels in KERNELS if needed <= flags), {"fallback"})
    got = (report.get("version"), report.get("implementation"))
    assert got[0] == VERSION, f"expected simdjson {VERSION}, jsonstat says {got[0]!r}"
    assert got[1] in allowed, f"expected one of the kernels {sorted(allowed)} on this processor, got {got[1]!r}"


def test_a_large_document_is_read_to_the_last_bit(experiment: Experiment, challenge: JsonChallenge) -> None:
    """Counts, depth, unescaped strings, integers and the bits of all doubles are as Python finds them."""
    _assert_stats(experiment, challenge, "document.json")
    _assert_stats(experiment, challenge, "messages.json")


def test_every_document_of_a_stream_is_read(experiment: Experiment, challenge: JsonChallenge) -> None:
    """All documents of a newline-delimited file count, not the first alone."""
    _assert_stats(experiment, challenge, "stream.ndjson")


def test_peculiar_values_are_understood(experiment: Experiment, challenge: JsonChallenge) -> None:
    """Limits of integers and doubles, escapes, empty and repeated keys: valid, and with the right values."""
    for name, truth in challenge.truth.items():
        if truth is not None and name.startswith("sound-"):
            _assert_stats(experiment, challenge, name)


def test_broken_json_is_rejected(experiment: Experiment, challenge: JsonChallenge) -> None:
    """Each file with one fault, in any document, is reported as not valid, by an answer and not by a crash."""
    broken = [name for name, truth in challenge.truth.items() if truth is None]
    accepted = [name for name in broken if _report(experiment, name).get("valid") is not False]
    assert not accepted, (
        f"expected all {len(broken)} broken files to be rejected, {len(accepted)} were not: "
        + "; ".join(f"{name} {challenge.inputs[name][-60:]!r}" for name in accepted[:5])
    )


def test_parsing_is_faster_than_a_scalar_parser(experiment: Experiment) -> None:
    """The paper's claim, against the parser of this machine's Python on the same bytes in the same run."""
    speed = _report(experiment, "messages.json").get("gigabytes_per_second")
    baseline = experiment.json("results.json")["python_gigabytes_per_second"]
    assert isinstance(speed, float | int), f"expected a number of gigabytes per second, got {speed!r}; see results.json"
    assert speed >= FASTER * baseline, f"expected at least {FASTER} x {baseline:.4f} GB/s of Python's, got {speed:.4f}"


def _assert_stats(experiment: Experiment, challenge: JsonChallenge, name: str) -> None:
    report, truth = _report(experiment, name), challenge.truth[name]
    assert truth is not None, f"{name} was drawn to be valid"
    assert report.get("valid") is True, f"{name}: expected it to be valid, jsonstat says {report}; see results.json"
    wrong = {key: (value, report.get(key)) for key, value in truth.items() if report.get(key) != value}
    assert not wrong, f"{name}: (expected, got) differ in {wrong}; see results.json"


def _report(experiment: Experiment, name: str) -> dict[str, object]:
    """What `jsonstat` printed for a file."""
    call = experiment.json("results.json")["calls"][name]
    assert call["status"] == 0, f"{name}: expected exit status 0, got {call['status']}, and {call['err'][-300:]!r}"
    try:
        report = json.loads(call["out"])
    except ValueError:
        report = None
    assert isinstance(report, dict), f"{name}: expected one JSON object from jsonstat, got {call['out'][:200]!r}"
    return report
