"""The one way to the models: a process on this host that alone holds the keys, counts, limits and logs.

    owner       Gateway: starts and ends the process; in the session's controller
    borrowing   GatewayClient: opens an account for a trial, from any process
    wire        what these two and the process say to each other
    ledger      pure: calls -> tokens, cost, budget
    dialects    pure: the four languages of models; `streams` reads their streamed answers
    retrying    pure: what a provider's answer means, and when to try again

and within the process, of which nothing is imported anywhere else:

    desk, accounts      who may ask
    proxy, exchange     requests and answers
    calllog             llm.jsonl of each trial
"""

from pytest_deploybench.gateway.borrowing import Account, GatewayClient
from pytest_deploybench.gateway.ledger import Budget, Limit, Statement, Usage
from pytest_deploybench.gateway.owner import Gateway
from pytest_deploybench.gateway.retrying import RetryPolicy
from pytest_deploybench.gateway.wire import Endpoint

__all__ = [
    "Account",
    "Budget",
    "Endpoint",
    "Gateway",
    "GatewayClient",
    "Limit",
    "RetryPolicy",
    "Statement",
    "Usage",
]
