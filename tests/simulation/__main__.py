"""Replay one simulated job and tell its story: `python -m tests.simulation SEED`."""

import sys

from tests.simulation.invariants import Violation
from tests.simulation.world import World


def main() -> int:
    world = World(int(sys.argv[1]), tells=True)
    sys.stdout.write(f"{world.store.graph.model_dump_json(indent=2, exclude_defaults=True)}\n")
    try:
        world.run()
        ending = f"The job ended as {world.store.status}; every invariant holds."
    except Violation as broken:
        ending = f"VIOLATION: {broken}"
    sys.stdout.write("\n".join([*world.story, ending, ""]))
    return int(ending.startswith("VIOLATION"))


if __name__ == "__main__":
    sys.exit(main())
