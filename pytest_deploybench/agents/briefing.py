"""What every agent that drives a model is told, whatever scaffold it works through. Pure: texts in, a text out.

Nothing of the verifier can stand in it: it is made of the two files that lie on the machine, TASK.md and paper.md.
"""

from __future__ import annotations

_PROMPT = """\
You deploy the artifact of a published paper on a fresh Linux machine. Every command you run is run on that machine,
as its user `agent`, over SSH; you have password-less sudo and internet access. Nobody answers questions: decide
yourself, and go on until the deployment works. First the task, then what the paper is about; both lie in your home as
TASK.md and paper.md.

<task>
{task}
</task>

<paper>
{paper}
</paper>

Before you end, try the designated experiment in the way RUNBOOK.md describes, in a new shell that has only sourced
~/env.sh. You have about {minutes:.0f} minutes from now. Commands that take long should not wait for input: answer
their questions by options, and let what takes minutes write into a file.
"""


def prompt(task_md: str, paper_md: str, budget_s: float) -> str:
    """The first message to the model.

    Args:
        task_md: TASK.md as it lies on the machine; it holds deliverables, rules and the deadline by its clock.
        paper_md: paper.md as it lies there.
        budget_s: how long the agent may work from now on.
    """
    return _PROMPT.format(task=task_md.strip(), paper=paper_md.strip(), minutes=budget_s / 60)
