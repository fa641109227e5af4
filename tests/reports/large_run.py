"""A made-up run of the size of the whole benchmark, 51 tasks and 4 models, with what its trials left."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pytest_deploybench.model import (
    AgentRun,
    Category,
    Check,
    Domain,
    Fault,
    Finding,
    ModelUse,
    Outcome,
    RunRecord,
    Termination,
    TrialKey,
    TrialRecord,
    Try,
    Verdict,
    Vitals,
)
from pytest_deploybench.reports.html import Evidence, Line, Log
from pytest_deploybench.reports.html.trajectory import Part, Step, Trajectory
from tests.reports.runs import run, trial

MODELS = {"model-a": 0.51, "model-b": 0.28, "model-c": 0.12, "model-d": 0.08}
"""How often each passes, and below what a million of its tokens costs."""
_PRICES: dict[str, float | None] = {"model-a": 1.9, "model-b": 2.4, "model-c": 1.1, "model-d": 0.3}
_GROUPS = ((Domain.AI, 25, "python"), (Domain.SYSTEMS, 19, "c"), (Domain.SCIENTIFIC, 7, "fortran"))
_LANGUAGES = ("c", "cpp", "rust", "go", "java", "ocaml", "python", "haskell", "r", "julia", "fortran")
_WORDS = (
    "solve",
    "graph",
    "cache",
    "parse",
    "align",
    "sketch",
    "index",
    "prune",
    "shard",
    "fuse",
    "trace",
    "quant",
    "embed",
    "route",
    "merge",
    "bloom",
    "delta",
)
_VENUES = ("nips", "sosp", "icml", "pldi")
_CHECKS = (
    "test_no_container_engine_was_used",
    "test_log_reports_no_missing_dependency",
    "test_log_reports_no_build_error",
    "test_log_reports_no_missing_artifact",
    "test_log_reports_no_crash",
    "test_program_was_built_from_the_given_source",
    "test_every_answer_agrees_with_brute_force",
    "test_the_papers_own_mode_was_used",
)
_FAILURES = (
    ("missing-python-module", Category.DEPENDENCY, "ModuleNotFoundError: No module named 'torch_scatter'"),
    ("missing-shared-library", Category.DEPENDENCY, "error while loading shared libraries: libgmp.so.10: cannot open"),
    ("compiler-error", Category.BUILD, "src/main.c:214:10: fatal error: zlib.h: No such file or directory"),
    ("no-gpu-device", Category.GPU, "RuntimeError: No CUDA GPUs are available"),
    ("missing-executable", Category.ARTIFACT, "bash: line 1: ./run_experiment: No such file or directory"),
    ("experiment-timed-out", Category.TIMEOUT, "deploybench: experiment timed out after 1800 s"),
)
BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def large_run(tasks: int = 51, workers: int = 16, seed: int = 1) -> tuple[RunRecord, dict[TrialKey, Evidence]]:
    """The run and its evidence; the same for the same arguments."""
    draw = random.Random(seed)
    free = [0.0] * workers
    records, evidence = [], {}
    domains = [(domain, language) for domain, count, language in _GROUPS for _ in range(count)]
    for number, (domain, language) in enumerate(domains[:tasks]):
        task = (
            f"{_WORDS[number % len(_WORDS)]}{number // len(_WORDS) or ''}_{draw.choice(_VENUES)}{draw.randint(11, 25)}"
        )
        flags = [name for name, chance in (("gpu", 0.43), ("legacy", 0.2), ("qemu", 0.1)) if draw.random() < chance]
        spoken = language if draw.random() < 0.4 else draw.choice(_LANGUAGES)
        labels = (draw.choice(["easy", "medium", "medium", "hard", "hard"]), *flags, f"lang_{spoken}")
        for model, skill in MODELS.items():
            record = _record(draw, task, model, labels, domain=domain, skill=skill)
            worker = min(range(workers), key=free.__getitem__)
            record = replace(record, started_at=(BEGIN + timedelta(seconds=int(free[worker]))).isoformat())
            free[worker] += sum(record.durations.values()) - record.durations["total"] + 2
            records.append(record)
            evidence[record.key] = _evidence(draw, record)
    ended = (BEGIN + timedelta(seconds=max(free))).isoformat()
    whole = run(*records)
    return replace(whole, started_at=BEGIN.isoformat(), finished_at=ended, command=("pytest", "-n", "16")), evidence


def _record(
    draw: random.Random, task: str, model: str, labels: tuple[str, ...], *, domain: Domain, skill: float
) -> TrialRecord:
    luck = draw.random()
    verdict = Verdict.INVALID if luck > 0.985 else Verdict.PASSED if luck < skill else Verdict.FAILED
    rule, category, line = draw.choice(_FAILURES)
    seen = verdict is Verdict.FAILED and draw.random() < 0.7
    reason = {
        Verdict.PASSED: f"all {len(_CHECKS)} checks passed",
        Verdict.FAILED: f"test_every_answer_agrees_with_brute_force: {line}"
        if seen
        else "test_every_answer_agrees_with_brute_force: 12 of 40 answers differ",
        Verdict.INVALID: "the provider or the machine broke: the machine did not answer for 120 s",
    }[verdict]
    phases = {"machine": draw.uniform(2, 90), "seed": 3.0, "agent": draw.lognormvariate(7, 0.6), "evidence": 2.0}
    phases |= {"experiment": draw.uniform(20, 900), "checks": draw.uniform(2, 60)}
    ending = draw.choice(
        [Termination.FINISHED] * 6 + [Termination.TIME_BUDGET, Termination.TEXT_STOP, Termination.STUCK]
    )
    tokens = int(draw.lognormvariate(14.3, 0.5))
    price = _PRICES[model]
    return replace(
        trial(task, verdict, reason, model=model, domain=domain, labels=labels),
        termination=ending,
        checks=tuple(
            Check(
                name,
                1 if "log" in name else 2,
                Outcome.FAILED if verdict is Verdict.FAILED and number > 5 else Outcome.PASSED,
                0.4,
                reason if number > 5 and verdict is Verdict.FAILED else "",
            )
            for number, name in enumerate(_CHECKS)
        )
        if verdict is not Verdict.INVALID
        else (),
        durations=phases | {"total": sum(phases.values())},
        findings=(
            Finding(
                rule,
                category,
                180,
                line,
                "What the program needs is not there.",
                "Install it, or name its place in env.sh.",
                0.95,
                "python",
            ),
        )
        if seen
        else (),
        tries=(Try(1, "db-1", 40.0, Fault.PROVIDER, "the machine did not answer"),)
        if verdict is Verdict.INVALID
        else (Try(1, "db-1", 754.0),),
        agent_run=AgentRun(ending, phases["agent"], 5760.0, 0, True),
        vitals=Vitals(beats=90, missed=1, least_memory_mb=812, least_disk_mb=4021),
        model_use=ModelUse(
            90,
            tokens,
            tokens // 2,
            tokens // 40,
            tokens // 80,
            None if price is None else tokens * price / 1e6,
            0,
            12.5,
        ),
    )


def _evidence(draw: random.Random, record: TrialRecord) -> Evidence:
    log = [
        f"[{number:4}] {draw.choice(_WORDS)}: {draw.random():.6f} in {draw.randint(1, 900)} ms, ok"
        for number in range(1, 241)
    ]
    for finding in record.findings:
        log[finding.line_number - 1] = finding.line
    return Evidence(
        trajectory=_trajectory(draw, draw.randint(40, 120)) if draw.random() < 0.8 else None,
        agent_log=_log([f"$ make {word}\ncc -O2 -c {word}.c" for word in _WORDS]),
        experiment_log=_log(log),
        runbook=_log(
            [
                f"# How {record.task} was set up",
                "",
                *(f"{n}. `sudo apt-get install -y lib{word}-dev` and rebuild {word}" for n, word in enumerate(_WORDS)),
            ]
        ),
    )


def _trajectory(draw: random.Random, count: int) -> Trajectory:
    steps = [Step(1, "user", BEGIN.isoformat(), (Part("message", "Deploy the artifact natively. Read ~/TASK.md."),))]
    for number in range(2, count + 1):
        word = draw.choice(_WORDS)
        output = "\n".join(
            f"{draw.choice(_WORDS)}.c:{draw.randint(1, 900)}: {draw.choice(_WORDS)} {draw.random():.5f}"
            for _ in range(draw.randint(2, 25))
        )
        steps.append(
            Step(
                number,
                "agent",
                (BEGIN + timedelta(seconds=20 * number)).isoformat(),
                (
                    Part(
                        "message",
                        f"The {word} step failed because {draw.choice(_WORDS)} is missing; I look at its log first.",
                    ),
                    Part("call", f"cd ~/artifact && make {word} 2>&1 | tail -n {draw.randint(5, 50)}"),
                    Part("output", output),
                ),
            )
        )
    return Trajectory("openhands 1.4.0", tuple(steps), count)


def _log(lines: list[str]) -> Log:
    return Log(tuple(Line(number, line) for number, line in enumerate(lines, 1)), len(lines))
