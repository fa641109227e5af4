"""Measures what the gateway adds to a call of a model, with many trials at once.

A scripted model on the loopback answers at once. So many trials as asked for ask it at the same time, each in a process
of its own as agents are, call by call alternately direct and through the gateway, so that a busy host slows both down
alike; all these calls' medians are compared. Between two calls each trial pauses, as an agent does whose tools run.

    python bench/gateway_overhead.py [--trials 16] [--calls 20] [--limit-ms 5]

Exit status 1 when the gateway adds more than the limit at the median.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402

from pytest_deploybench.gateway import Budget, Gateway, GatewayClient  # noqa: E402
from pytest_deploybench.models import Dialect, ModelSpec  # noqa: E402
from tests.support.model_server import running_model_server  # noqa: E402

KEY = "scripted-key"
CONVERSATION = 20_000
"""Characters that a call sends."""


def ask(connection: http.client.HTTPConnection, path: str, token: str, streams: bool) -> float:
    """Milliseconds from the request to the end of the answer."""
    body = {
        "model": "scripted",
        "stream": streams,
        "messages": [{"role": "user", "content": "x " * (CONVERSATION // 2)}],
    }
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    start = time.perf_counter()
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    answer = response.read()
    if response.status != 200:
        raise SystemExit(f"status {response.status}: {answer[:300]!r}")
    return (time.perf_counter() - start) * 1000


def trial(ways: dict[str, tuple[str, str]], calls: int, pause_s: float, start: Barrier, results: Any) -> None:
    """Ask in each way by turns, and report the milliseconds of all calls by way."""
    connections = {way: http.client.HTTPConnection(url.removeprefix("http://")) for way, (url, _) in ways.items()}
    taken: dict[str, list[float]] = {way: [] for way in ways}
    start.wait()
    for number in range(calls + 2):
        for way in random.sample(sorted(ways), len(ways)):
            time.sleep(random.uniform(0, 2 * pause_s))  # noqa: S311 - no secret
            milliseconds = ask(connections[way], "/v1/chat/completions", ways[way][1], streams=number % 2 == 1)
            if number >= 2:  # the first two only warm up
                taken[way].append(milliseconds)
    results.put(taken)


def _cpu_ms(gateway: Gateway) -> float:
    times = psutil.Process(gateway.pid).cpu_times()
    return (times.user + times.system) * 1000


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--trials", type=int, default=16, help="trials at once (default: 16)")
    options.add_argument("--calls", type=int, default=20, help="calls of each trial in each way (default: 20)")
    options.add_argument("--pause-ms", type=float, default=1000, help="mean pause between two calls (default: 1000)")
    options.add_argument("--limit-ms", type=float, default=5.0, help="most that may be added (default: 5)")
    chosen = options.parse_args()
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="gateway-overhead-") as folder, running_model_server(key=KEY) as server:
        spec = ModelSpec("scripted", "openai", "scripted", (Dialect.CHAT,), server.url, "KEY")
        direct = (server.url.removesuffix("/v1"), KEY)
        with Gateway([spec], {"KEY": KEY}, log=Path(folder) / "gateway.log") as gateway:
            client = GatewayClient(gateway.open())
            at_rest = _cpu_ms(gateway)
            start, results = processes.Barrier(chosen.trials), processes.Queue()
            accounts = [
                client.open_account(f"{number}", "scripted", Budget(), Path(folder) / f"{number}", lifetime_s=600)
                for number in range(chosen.trials)
            ]
            workers = [
                processes.Process(
                    target=trial,
                    args=(
                        {"direct": direct, "gateway": (account.url, account.token)},
                        chosen.calls,
                        chosen.pause_ms / 1000,
                        start,
                        results,
                    ),
                    daemon=True,
                )
                for account in accounts
            ]
            for worker in workers:
                worker.start()
            taken = [results.get(timeout=600) for _ in workers]
            worked = _cpu_ms(gateway) - at_rest
            counted = sum(account.close().calls for account in accounts)
    medians = {way: statistics.median(value for each in taken for value in each[way]) for way in ("direct", "gateway")}
    added = medians["gateway"] - medians["direct"]
    print(
        f"{chosen.trials} trials at once, {counted} calls through the gateway, medians: {medians['direct']:.2f} ms "
        f"direct, {medians['gateway']:.2f} ms through the gateway: {added:+.2f} ms, "
        f"ratio {medians['gateway'] / medians['direct']:.2f}; CPU time of the gateway {worked / counted:.2f} ms a call"
    )
    sys.exit(added > chosen.limit_ms)


if __name__ == "__main__":
    main()
