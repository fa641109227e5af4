"""Trains the net of challenge.json with the deployed Theano; all goes to result.json."""

import json
import os
import sys
from pathlib import Path
from typing import Any

flags = [os.environ.get("THEANO_FLAGS", ""), "floatX=float64", f"base_compiledir={Path.cwd() / 'compiled'}"]
os.environ["THEANO_FLAGS"] = ",".join(flag for flag in flags if flag)

import numpy as np  # noqa: E402 - after the flags, as all that follow
import theano  # type: ignore[import-not-found]  # noqa: E402 - the deployment's, on the machine
import theano.tensor as tt  # type: ignore[import-not-found]  # noqa: E402

ACTIVATIONS = {"tanh": tt.tanh, "sigmoid": tt.nnet.sigmoid}


def train(net: "dict[str, Any]") -> "dict[str, Any]":
    """Gradient descent on a recurrent net: the loss before each step, and the weights after the last."""
    activation = ACTIVATIONS[net["activation"]]
    inward, around = (theano.shared(np.array(net[name]), name) for name in ("inward", "around"))
    # As constants: with every length known, Theano has no code to make for lengths that are not.
    sequence, start, target = (tt.constant(np.array(net[name])) for name in ("sequence", "start", "target"))
    states, _ = theano.scan(
        lambda x, h, inward, around: activation(tt.dot(x, inward) + tt.dot(h, around)),
        sequences=[sequence],
        outputs_info=[start],
        non_sequences=[inward, around],
        n_steps=len(net["sequence"]),
    )
    loss = tt.sqr(states - target).sum()
    updates = [(weight, weight - net["rate"] * theano.grad(loss, weight)) for weight in (inward, around)]
    step = theano.function([], loss, updates=updates)
    losses = [float(step()) for _ in range(net["steps"])]
    return {"losses": losses, "inward": inward.get_value().tolist(), "around": around.get_value().tolist()}


def scan_version() -> "float | None":
    """What the compiled loop of scan says that it is; None when there is none, as without a compiler."""
    try:
        from theano.scan_module import scan_perform_ext  # type: ignore[import-not-found]  # it may have to be compiled
    except ImportError:
        return None
    return float(scan_perform_ext.get_version())


def compiled_here() -> "list[str]":
    """The libraries below the fresh folder `compiled` that are mapped into this process."""
    maps = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    folder = str(Path.cwd() / "compiled")
    return sorted({fields[5] for fields in maps if len(fields) == 6 and fields[5].startswith(folder)})


result = {
    "python": list(sys.version_info[:2]),
    "version": theano.__version__,
    "package": theano.__file__,
    "config": {"cxx": theano.config.cxx, "mode": theano.config.mode, "linker": theano.config.linker},
    "net": train(json.loads(Path("challenge.json").read_text())),
    "scan_version": scan_version(),
}
result["compiled"] = compiled_here()
Path("result.json").write_text(json.dumps(result))
print(f"Theano {result['version']}, {result['config']}, {len(result['compiled'])} compiled libraries mapped")
