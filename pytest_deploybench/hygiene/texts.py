"""Rules on what people and agents read: task.yaml, paper.md, instruction.md."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

from pytest_deploybench import taskfile
from pytest_deploybench.errors import TaskFileError
from pytest_deploybench.hygiene.folder import PLACEHOLDER, Complaint, Folder

NAME = re.compile(r"(?P<abbrev>[a-z][a-z0-9]*)_(?P<venue>[a-z]+)(?P<year>[0-9]{2})(_[a-z0-9]+)?")
"""<abbrev>_<venue><yy>, and a variant where one paper has two tasks."""
SUMMARY_WORDS = 40
EXPERIMENT_WORDS = 15
_GIVEN_AWAY = re.compile(r"\b(oracle|grader|noop|shallow\.sh|reference\.sh|certificat\w+|Layer [12])\b", re.IGNORECASE)
"""Words of the verifier that an agent has no use for."""
_EVERYWHERE = {
    *("bash", "sh", "python3", "env", "timeout", "nice", "time", "cat", "cd", "echo", "mkdir", "cp", "mv", "true"),
    *("test", "export", "set", "for", "do", "done", "if", "then", "else", "fi", "while", "ulimit"),
    *("exit", "exec", "head", "tail", "tee", "wait", "kill", "sleep", "trap", "rm", "printf", "sha256sum", "nohup"),
}  # fmt: skip
"""Words at the start of a command that every machine knows."""
_PROGRAMS = (".py", ".sh", ".java", ".js", ".R", ".jl", ".pl", ".rb", ".lua", ".ml", ".hs", ".go", ".rs", ".c", ".cpp")
"""How the names of an experiment's own programs end, which come along as inputs."""


def files(folder: Folder) -> Iterator[Complaint]:
    """Every file of a task is there."""
    required = {taskfile.FILENAME: "what the task is", **taskfile.REQUIRED_FILES}
    for name, purpose in required.items():
        file = name.format(id=folder.id)
        if not (folder.path / file).is_file():
            yield Complaint(file, "there is no such file", f"Write it: {purpose}.")


def placeholders(folder: Folder) -> Iterator[Complaint]:
    """Nothing of the scaffold is left to be written."""
    for file in folder.files:
        lines = enumerate(folder.text(file).splitlines(), start=1)
        left = [(number, line.partition(PLACEHOLDER)[2]) for number, line in lines if PLACEHOLDER in line]
        if left:
            number, hint = left[0]
            first = hint.strip(" :.<>\"'-*#)]") or "what belongs here"
            problem = f"{len(left)} lines are still to be filled in, the first with: {first}"
            yield Complaint(f"{file}:{number}", problem, f"Replace each `{PLACEHOLDER}` by the truth.")


def schema(folder: Folder) -> Iterator[Complaint]:
    """task.yaml is what the schema asks for."""
    task = folder.task
    if isinstance(task, TaskFileError) and task.key != "file":
        yield Complaint(taskfile.FILENAME, f"{task.key}: {task.problem}", task.remedy)


def name(folder: Folder) -> Iterator[Complaint]:
    """The folder is named as the benchmark names tasks."""
    if not NAME.fullmatch(folder.id):
        yield Complaint(
            ".",
            f"the folder's name {folder.id!r} is the task's id, and not of the form <abbrev>_<venue><yy>",
            "Rename folder and test module, for example spin_tse11 for Spin at IEEE TSE 2011.",
        )


def paper_facts(folder: Folder) -> Iterator[Complaint]:
    """paper.md has citation, link, summary and the designated experiment."""
    text = folder.text("paper.md")
    experiment = re.search(r"^#+ *(?:The )?Designated experiment\b.*\n((?:(?!#).*\n?)*)", text, re.MULTILINE | re.I)
    rest = re.sub(r"^#.*$", "", text.replace(experiment[0], "") if experiment else text, flags=re.MULTILINE)
    wanted = {
        "a heading with the paper's title": bool(re.match(r"# \S", text)),
        "a link to the paper, as <https://...>": bool(re.search(r"<https?://[^\s>]+>|\]\(https?://", text)),
        f"a summary of at least {SUMMARY_WORDS} words": len(rest.split()) >= SUMMARY_WORDS,
        f"a section `## Designated experiment` of at least {EXPERIMENT_WORDS} words": bool(
            experiment and len(experiment[1].split()) >= EXPERIMENT_WORDS
        ),
    }
    if not isinstance(folder.task, TaskFileError):
        paper = folder.task.paper
        wanted[f"the year {paper.year} of the citation"] = str(paper.year) in text
        wanted["the title that task.yaml gives"] = _plain(paper.title) in _plain(text)
    for fact, there in wanted.items():
        if not there:
            yield Complaint("paper.md", f"it lacks {fact}", "Write it, in words of your own.")


def instruction_names_no_check(folder: Folder) -> Iterator[Complaint]:
    """instruction.md says nothing of checks, tests or oracles."""
    text = folder.text("instruction.md")
    inputs = set(folder.drawn.inputs) if folder.drawn else set()
    own = {test.name for test in folder.tests()} | {file for file in folder.trees if file not in inputs}
    given_away = sorted({word for word in own if word in text} | {found[0] for found in _GIVEN_AWAY.finditer(text)})
    for word in given_away:
        yield Complaint(
            "instruction.md",
            f"it names {word!r}, which belongs to the verifier",
            "Say what the deployment must do, not how it is checked.",
        )


def instruction_values(folder: Folder) -> Iterator[Complaint]:
    """instruction.md names each program that the experiment calls, each file it must leave, each key that is read."""
    text = folder.text("instruction.md")
    for kind, value in _needed(folder):
        if value not in text:
            yield Complaint(
                "instruction.md",
                f"it never names {value!r}, {kind}",
                "Name it and say what is expected: an agent can meet only what it was told.",
            )


def _needed(folder: Folder) -> Iterator[tuple[str, str]]:
    for call in (node for node in ast.walk(folder.test_tree) if isinstance(node, ast.Call)):
        if ast.unparse(call.func) == "evidence.program" and isinstance(call.args[-1], ast.Constant):
            yield "a program that the checks look for", str(call.args[-1].value)
    drawn = folder.drawn
    if drawn is None:
        return
    words, redirected, programs = _read_command(drawn.command)
    yield from (("a program that the experiment calls", name) for name in programs if name not in drawn.inputs)
    if any(name in words for name in drawn.inputs if name.endswith(_PROGRAMS)):
        return  # the experiment's own program comes along and writes the outputs
    for output in (PurePosixPath(output) for output in drawn.outputs):
        if str(output) not in redirected:
            # Named after a drawn argument, such as 4711.txt, it can be promised by its ending only.
            yield "a file that the experiment must leave", output.suffix if output.stem in words else output.name
    for test in folder.tests():
        if any(isinstance(node, ast.Attribute) and node.attr == "json" for node in ast.walk(test)):
            yield from (("a key that the checks read", key) for key in _keys(test))


def _keys(test: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(test):
        keys = node.keys if isinstance(node, ast.Dict) else [node.slice] if isinstance(node, ast.Subscript) else []
        yield from (key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


def _read_command(command: str) -> tuple[set[str], set[str], list[str]]:
    """All words of a shell command, the files it redirects to, and the words that stand where programs do."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words, redirected, programs = set(), set(), []
    before = ";"
    for word in lexer:
        words.add(word)
        assignment = re.match(r"\w+=", word)
        if before in (">", ">>", "<"):
            redirected |= {word} if before != "<" else set()
            before = "word"
            continue
        starts = before in {";", "&&", "||", "|", "&", "{", "(", "!", "do", "then", "assignment"}
        if starts and re.match(r"[\w./-]+$", word) and not assignment and word not in _EVERYWHERE:
            programs.append(PurePosixPath(word).name)
        before = "assignment" if starts and assignment else word
    return words, redirected, programs


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
