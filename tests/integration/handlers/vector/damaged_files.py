"""Read all files of a folder as handlers do, and print how each ends; whatever else happens ends the process."""

import resource
import sys
from pathlib import Path

from tests.integration.handlers.vector.sources import Desk

from graticule.handlers.findings import Rejected

MEMORY_BYTES = 3 * 1024**3


def main(folder: Path) -> None:
    desk = Desk(folder)
    for file in sorted((folder / "bronze").iterdir()):
        options = {"source_crs": "EPSG:4326"} if file.suffix == ".topojson" else {}
        try:
            for opened in desk.open_all(f"bronze/{file.name}", layers="all", **options):
                desk.read(opened)
            sys.stdout.write("read\n")
        except Rejected as rejected:
            sys.stdout.write(f"{rejected.findings[0].code}\n")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    main(Path(sys.argv[1]))
