"""The nouns of the benchmark as frozen values.

One file although it is long: the nouns speak of each other, and whoever looks for a word finds it in one place.

This file imports the standard library only, performs no I/O and knows no other module of the package.
Times are seconds, sizes say their unit in their name, instants are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

SCHEMA_VERSION = 1
"""Version of `record.json` and `run.json`; raised when a reader of the old form would be misled."""


class Verdict(StrEnum):
    """What a trial says about the deployment; INVALID says that our side broke and nothing was judged."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    INVALID = "INVALID"


class Fault(StrEnum):
    """Whose fault an error is. Only the agent's fault may fail a trial."""

    USER = "user"
    PROVIDER = "provider"
    MODEL_API = "model_api"
    AGENT = "agent"
    VERIFIER = "verifier"
    TASK = "task"
    OURS = "ours"


class Termination(StrEnum):
    """How the agent ended. It is separate from the verdict: a timed-out agent is still verified."""

    FINISHED = "finished"
    """It said by its own means that it is done, or its program ended well."""
    TEXT_STOP = "text_stop"
    """The model answered with plain text instead of a further step, and claimed nothing."""
    TIME_BUDGET = "time_budget"
    TOKEN_BUDGET = "token_budget"  # noqa: S105 - a budget of tokens, not a secret
    COST_BUDGET = "cost_budget"
    STEP_BUDGET = "step_budget"
    STUCK = "stuck"
    """It did the same thing over and over, and its scaffold stopped it."""
    FORMAT_ERROR = "format_error"
    """The model's answers could not be understood several times in a row."""
    MODEL_ERROR = "model_error"
    """The model refused a request for what the agent put into it, such as one that is too long."""
    CRASHED = "crashed"
    MACHINE_LOST = "machine_lost"


class MachineState(StrEnum):
    """What the provider sees from outside: a guest that switched itself off is the agent's doing, a lost one is not."""

    RUNNING = "running"
    POWERED_OFF = "powered_off"
    LOST = "lost"


class KeepVm(StrEnum):
    """Whose machines are kept after their trial, as disks that can be booted again."""

    NEVER = "never"
    FAILED = "failed"
    ALWAYS = "always"


class Category(StrEnum):
    """What kind of failure a Layer-1 finding names."""

    DEPENDENCY = "dependency"
    GPU = "gpu"
    BUILD = "build"
    ARTIFACT = "artifact"
    SYSTEM = "system"
    OOM = "oom"
    TIMEOUT = "timeout"
    CRASH = "crash"
    CONTAINER = "container"
    NETWORK = "network"

    @property
    def root_cause(self) -> Category:
        """Which of the paper's five root causes this is: dependency, gpu, build, artifact or system."""
        return _ROOT_CAUSES.get(self, self)


_ROOT_CAUSES = {
    Category.OOM: Category.SYSTEM,
    Category.TIMEOUT: Category.SYSTEM,
    Category.NETWORK: Category.SYSTEM,
    Category.CONTAINER: Category.SYSTEM,
    Category.CRASH: Category.ARTIFACT,
}


class Role(StrEnum):
    """What a line of a log tells about the run; the head of layer1/rules.py explains each."""

    BENIGN = "benign"
    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    CONTEXT = "context"
    RECOVERY = "recovery"
    SUCCESS = "success"
    STEP = "step"
    WORDS = "words"


class Domain(StrEnum):
    """The three groups in which the paper reports its tasks."""

    AI = "ai"
    SYSTEMS = "systems"
    SCIENTIFIC = "scientific"


class Difficulty(StrEnum):
    """How hard the deployment is, as the task's author judges it."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


class Registry(StrEnum):
    """Where a pinned source comes from, by package name."""

    PYPI = "pypi"
    DEBIAN = "debian"
    NPM = "npm"
    CRATES = "crates"


class Outcome(StrEnum):
    """How one check of a trial ended; `ERROR` is our side's fault and makes the trial INVALID."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


# --- tasks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paper:
    """The publication whose artifact a task deploys."""

    title: str
    venue: str
    year: int
    reference: str
    """DOI, arXiv number or the venue's own page."""


@dataclass(frozen=True)
class Source:
    """One archive, pinned by name, version and digest."""

    registry: Registry
    name: str
    version: str
    filename: str
    sha256: str
    upstream_url: str = ""


@dataclass(frozen=True)
class MachineSize:
    """The machine that a task asks for."""

    cpus: int
    memory_gb: float
    disk_gb: int
    accelerator: str | None = None
    """For example `nvidia-tesla-t4`; None where no GPU is needed."""


@dataclass(frozen=True)
class Task:
    """One folder under `tasks/`: a paper, a pinned source, an instruction, a hidden verifier, a reference."""

    id: str
    folder: Path
    title: str
    paper: Paper
    source: Source
    domain: Domain
    languages: tuple[str, ...]
    difficulty: Difficulty
    machine: MachineSize
    agent_budget_s: float
    """How long the agent may work, at native speed."""
    experiment_budget_s: float
    """How long the designated experiment may run, at native speed."""
    check_budget_s: float = 120.0
    """How long one check may take, at native speed."""
    extra_sources: tuple[Source, ...] = ()
    legacy: bool = False
    qemu: bool = False
    smoke: bool = False
    reboot_before_verify: bool = False
    """Whether the machine is restarted between the agent's end and the experiment."""

    @property
    def gpu(self) -> bool:
        return self.machine.accelerator is not None

    @property
    def labels(self) -> tuple[str, ...]:
        """The pytest markers of this task, in the order in which people read them."""
        flags = {"gpu": self.gpu, "qemu": self.qemu, "legacy": self.legacy, "smoke": self.smoke}
        return (
            self.domain.value,
            self.difficulty.value,
            *(name for name, on in flags.items() if on),
            *(language_label(name) for name in self.languages),
        )


def language_label(language: str) -> str:
    """Marker of a language: `C++` becomes `lang_cpp`."""
    return "lang_" + language.lower().replace("+", "p").replace("#", "sharp").replace("-", "_").replace(" ", "_")


# --- trials ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrialKey:
    """Names one trial: (task, agent, model, attempt)."""

    task: str
    agent: str
    model: str | None
    attempt: int

    @property
    def contestant(self) -> str:
        """Who is being measured: the model, or the agent where it needs none."""
        return self.model or self.agent

    @property
    def folder(self) -> Path:
        """Where the trial's evidence lies, relative to the run's folder."""
        who = f"{self.agent}+{self.model}" if self.model else self.agent
        return Path(self.task) / who.replace("/", "_") / f"attempt-{self.attempt:02d}"


@dataclass(frozen=True)
class Address:
    """All that a borrower learns of a machine: where it is, how to log in, and which host key it must show."""

    host: str
    port: int
    user: str
    login_key: str = field(repr=False)
    """Private key in OpenSSH form. It opens this one machine and dies with it."""
    host_key: str
    """Public host key as `ssh-ed25519 AAAA...`."""


@dataclass(frozen=True)
class MachineFacts:
    """What a record says about the machine, so that a reader can judge the numbers."""

    provider: str
    image: str
    """Digest or name of the image."""
    acceleration: str
    """`kvm`, `tcg`, `native`, and so on."""
    speed_factor: float
    """How many times longer CPU work takes here than natively (>= 1); every budget is multiplied by it."""
    note: str = ""
    """Why this acceleration is in use, in one sentence."""
    no_benchmark: str = ""
    """Why a verdict reached on this machine is no benchmark result; empty where it is one."""


@dataclass(frozen=True)
class Capacity:
    """How much a provider can host at once; None where it sets no limit."""

    machines: int | None = None
    cpus: int | None = None
    memory_gb: float | None = None


@dataclass(frozen=True)
class ProviderOptions:
    """What the user said about machines."""

    image: str | None = None
    """`--deploybench-image`: the user's own cloud image instead of the one we build."""
    inventory: str | None = None
    """`--deploybench-inventory`: file that lists the user's own hosts."""


@dataclass(frozen=True)
class MachineRequest:
    """What a fleet asks of a provider."""

    machine_id: str
    """Chosen and journalled by the fleet before the call, so that a half-made machine can be found again."""
    size: MachineSize
    lifetime_s: float
    """The machine must end itself after this many seconds of native time, whatever becomes of us."""
    purpose: str = ""
    """For people who find the machine: run and trial."""
    kept: str | None = None
    """Folder of a kept machine that is to be woken again, as its provider left it; None for a fresh machine."""


@dataclass(frozen=True)
class Lease:
    """A machine in the hands of one trial."""

    machine_id: str
    address: Address
    facts: MachineFacts


@dataclass(frozen=True)
class Completed:
    """The end of one command on a machine."""

    exit_status: int | None
    """None when the command was cut off by its time limit."""
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool = False
    truncated: bool = False
    """True when output beyond the limit was thrown away."""

    @property
    def ok(self) -> bool:
        return self.exit_status == 0


@dataclass(frozen=True)
class AgentRun:
    """What the agent did, as seen from outside. Its own failure is a value here, never an exception."""

    termination: Termination
    seconds: float
    budget_s: float
    """The wall-clock budget after scaling by the machine's speed factor."""
    exit_status: int | None = None
    claimed_success: bool | None = None
    """What the agent said of itself; None when it said nothing."""
    detail: str = ""
    started_at: float = 0.0
    """When the machine was handed to the agent: Unix time by the machine's own clock."""


@dataclass(frozen=True)
class ModelUse:
    """What an agent used of its model, as the gateway counted it, whatever the agent says itself."""

    calls: int
    input_tokens: int
    """Cached ones included."""
    cached_tokens: int
    output_tokens: int
    """Reasoning included."""
    reasoning_tokens: int
    cost_usd: float | None
    """By list price; None where that is unknown."""
    unmetered_calls: int
    """Calls whose tokens the provider did not tell in full; all sums are too low by what they used."""
    waited_s: float
    """Time lost to the provider's rate limits and faults; it does not count as working time."""
    price_as_of: str | None = None
    """The day on which the price was looked up."""
    spent: Termination | None = None
    """The budget that was used up, if a call was refused for it."""
    provider_down: str | None = None
    """Why the model could not be reached any more, as a sentence."""


@dataclass(frozen=True)
class Brief:
    """What an agent that drives a model is given beside the machine: how to log in, and the way to the model."""

    address: Address
    model: str
    """The name under which the user knows it."""
    upstream: str
    """The name under which its provider knows it."""
    provider: str
    dialect: str
    """The language in which it is usually asked: `chat`, `responses`, `messages` or `generate_content`."""
    url: str
    """The gateway, without a path: `http://127.0.0.1:PORT`."""
    token: str = field(repr=False)
    """Opens the gateway for this trial only, until it ends."""
    used: Callable[[], ModelUse] = field(repr=False)
    """Asks the gateway; raises InfraError if it has ended."""
    max_steps: int | None = None
    command: str | None = None
    """`--deploybench-command`."""
    command_on: str = "host"
    """`--deploybench-command-on`: `host` or `machine`."""


@dataclass(frozen=True)
class Readiness:
    """Whether an agent can be used on this host."""

    usable: bool
    detail: str
    """What it will run with, or what is missing and how to get it."""


@dataclass(frozen=True)
class Vitals:
    """What a machine's heartbeat showed while the agent worked; the machine's own words, which an agent could forge."""

    beats: int = 0
    """How often it answered."""
    missed: int = 0
    """How often it did not."""
    oom_kills: int = 0
    """Processes that its kernel killed for lack of memory."""
    least_memory_mb: int | None = None
    """Least available memory seen."""
    least_disk_mb: int | None = None
    """Least free space on its disk seen."""


@dataclass(frozen=True)
class Finding:
    """One failure that Layer 1 read out of a log."""

    rule: str
    category: Category
    line_number: int
    """1-based line of the log."""
    line: str
    explanation: str
    remedy: str
    confidence: float = 1.0
    ecosystem: str = ""
    """Whose manner of speech it is: `pip`, `cmake`, `kernel`."""
    kind: str = ""
    """A finer name within the category; empty where there is none."""
    role: Role = Role.CAUSE


@dataclass(frozen=True)
class Check:
    """One claim of the verifier and how it ended."""

    name: str
    layer: int
    outcome: Outcome
    seconds: float
    message: str = ""
    """Why it did not pass; bounded and redacted."""


@dataclass(frozen=True)
class Try:
    """One attempt to get through a trial on one machine; infrastructure faults lead to the next try."""

    number: int
    machine_id: str | None
    seconds: float
    fault: Fault | None = None
    error: str = ""


@dataclass(frozen=True)
class TrialRecord:
    """Everything a report may say about one trial; `record.json` is this value."""

    task: str
    agent: str
    model: str | None
    attempt: int
    verdict: Verdict
    reason: str
    """One sentence: the first cause of the verdict."""
    termination: Termination | None
    checks: tuple[Check, ...]
    durations: dict[str, float]
    """Seconds by phase: `machine`, `seed`, `agent`, `evidence`, `experiment`, `checks`, `total`."""
    seed: int | None
    """The trial's challenge seed."""
    run_seed: int
    """What `--deploybench-seed` takes to draw the same challenges again."""
    domain: Domain
    labels: tuple[str, ...]
    task_digest: str
    folder: str
    """Evidence of the trial, relative to the run's folder."""
    started_at: str
    machine: MachineFacts | None = None
    agent_run: AgentRun | None = None
    findings: tuple[Finding, ...] = ()
    tries: tuple[Try, ...] = ()
    vitals: Vitals | None = None
    model_use: ModelUse | None = None
    """Tokens, cost and calls of the last try; None where no model was asked."""
    kept: str | None = None
    """Name of the kept machine, for `deploybench vms ssh NAME` and `--deploybench-reverify`; None where it is gone."""
    verified_again: str | None = None
    """The earlier run whose deployment this trial verified again, without any agent; None in an ordinary trial."""
    resumed_from: str | None = None
    """The earlier run that reached this verdict, which `--deploybench-resume` took over; None in an ordinary trial."""
    schema_version: int = SCHEMA_VERSION

    @property
    def key(self) -> TrialKey:
        return TrialKey(self.task, self.agent, self.model, self.attempt)


@dataclass(frozen=True)
class RunRecord:
    """One session: its settings and all its trials; `run.json` is this value."""

    run_id: str
    started_at: str
    finished_at: str
    command: tuple[str, ...]
    provider: str
    run_seed: int
    versions: dict[str, str]
    trials: tuple[TrialRecord, ...]
    swept: tuple[str, ...] = ()
    """Machines that an earlier session left behind and this one destroyed."""
    settings: dict[str, str] = field(default_factory=dict)
    """What the verdicts depend on, by option: a run that resumes this one must have the same."""
    schema_version: int = SCHEMA_VERSION
