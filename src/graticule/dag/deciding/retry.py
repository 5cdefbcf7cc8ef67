"""How long a retry waits, and whether there is one."""

import hashlib
from collections.abc import Mapping

from graticule.dag.graph import Backoff, RetryPolicy
from graticule.dag.state import NodeState

LARGEST_EXPONENT = 64  # beyond it every delay is at its maximum, and a float would overflow


def may_retry(node: NodeState, policy: RetryPolicy) -> bool:
    """Tell whether the present budget of a node allows one more try."""
    return node.retry_count - node.retry_base < policy.max_attempts


def delay_seconds(policy: RetryPolicy, retry: int, task_id: str) -> float:
    """Give the wait before the n-th retry of a budget. The jitter follows from the id of the task that failed."""
    initial = policy.initial_delay_seconds
    growth: Mapping[Backoff, float] = {
        Backoff.FIXED: 1.0,
        Backoff.LINEAR: float(retry),
        Backoff.EXPONENTIAL: 2.0 ** min(retry - 1, LARGEST_EXPONENT),
    }
    delay = min(initial * growth[policy.backoff], policy.max_delay_seconds)
    return delay * _jitter(task_id) if policy.jitter else delay


def _jitter(task_id: str) -> float:
    """Spread retries between half of the delay and the whole of it."""
    digest = hashlib.sha256(task_id.encode()).digest()
    return 0.5 + int.from_bytes(digest[:4], "big") / 0xFFFFFFFF / 2
