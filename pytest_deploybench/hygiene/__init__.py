"""What a task folder must show before a machine is spent on it: rules that need no machine, each with its remedy.

    folder    a task folder as the rules look at it       drawing   its challenges, drawn in a process of their own
    texts     rules on task.yaml, paper and instruction   code      rules on the test module and what it draws
    scripts   rules on reference.sh and shallow.sh        proof     rules on certificate, budgets and size
    suite     the shape of all tasks together

A rule that finds nothing says nothing. What no rule can see, such as whether an answer can be guessed, three witnesses
and a careful reader must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pytest_deploybench.hygiene import code, proof, scripts, texts
from pytest_deploybench.hygiene.folder import Complaint, Folder

__all__ = ["NOTES", "RULES", "Complaint", "Folder", "examine"]

Rule = Callable[[Folder], Iterator[Complaint]]

RULES: Mapping[str, Rule] = {
    "files": texts.files,
    "placeholders": texts.placeholders,
    "schema": texts.schema,
    "name": texts.name,
    "paper-facts": texts.paper_facts,
    "instruction-names-no-check": texts.instruction_names_no_check,
    "instruction-values": texts.instruction_values,
    "tests": code.tests,
    "asserts-explain": code.asserts_explain,
    "seed": code.seed,
    "no-sleep": code.no_sleep,
    "no-absolute-time": code.no_absolute_time,
    "strict-scripts": scripts.strict_scripts,
    "no-containers": scripts.no_containers,
    "pinned": scripts.pinned,
    "shallow-claims-success": scripts.shallow_claims_success,
    "size": proof.size,
    "budget": proof.budget,
    "certificate": proof.certificate,
    "certified": proof.certified,
}
"""Every rule by the name under which it complains, in the order in which an author meets them."""
NOTES = frozenset({"certified"})
"""Rules whose complaint is no fault: a whole task waits for its certificate, and the tables say so."""


def examine(path: Path) -> dict[str, list[Complaint]]:
    """What each rule has to say about the task folder at `path`, for the rules that have something to say."""
    folder = Folder(path)
    found = {name: list(rule(folder)) for name, rule in RULES.items()}
    return {name: complaints for name, complaints in found.items() if complaints}
