"""Handlers of another package, as an author would install them: found by their entry points on PYTHONPATH.

The source container is a folder, and so is what the public reads. An empty source is one that is still being written:
whoever processes it waits for it.
"""

from pathlib import Path

from tests.sources import put_source

WORKFLOW = """
workflow_id: raster_ingest
name: Raster ingest
version: 1
inputs:
  container_name: {type: string, required: true}
  blob_name: {type: string, required: true}
  blob_prefix: {type: string, required: true}
nodes:
  start: {type: start, next: convert_source}
  convert_source:
    handler: lifecycle.convert
    queue: functionapp-tasks
    params:
      source: "{{ inputs.container_name }}/{{ inputs.blob_name }}"
      blob_prefix: "{{ inputs.blob_prefix }}"
    next: end
  end: {type: end}
"""

UNHANDLED = """
workflow_id: vector_ingest
name: Vector ingest
version: 1
nodes:
  start: {type: start, next: load}
  load: {handler: lifecycle.load, queue: functionapp-tasks, next: end}
  end: {type: end}
"""

# Workflows of one's own that take the place of those that are shipped.
PUBLISHING_WORKFLOW = """
workflow_id: {workflow}
name: {workflow}
version: 1
inputs: {{{inputs}}}
nodes:
  start: {{type: start, next: {node}}}
  {node}: {{handler: lifecycle.{node}, queue: container-tasks, params: {{{params}}}, next: end}}
  end: {{type: end}}
"""
PUBLISHING_INPUTS = {
    ("adf_export", "export"): {"version_ordinal": "integer", "revision": "integer", "blob_path": "string"},
    ("adf_reversal", "reverse"): {"export_run_id": "string"},
    ("unpublish", "unpublish"): {"versions": "array"},
}

PROCESSING = """
import asyncio
import hashlib
from pathlib import Path

from graticule.handlers import HandlerContext, HandlerResult, register_handler

CONTAINERS = Path(__file__).with_name("containers")


@register_handler("lifecycle.convert", queue="functionapp-tasks")
async def convert(ctx: HandlerContext) -> HandlerResult:
    source = CONTAINERS / ctx.params["source"]
    try:
        while not (content := source.read_bytes()):
            await asyncio.sleep(0.02)
    except FileNotFoundError:
        return HandlerResult.failure("The file is not in its container.", retryable=False)
    path = f"silver/{ctx.params['blob_prefix']}/cog.tif"
    await ctx.storage.put(path, content)
    return HandlerResult.success(
        {
            "content_hash": hashlib.sha256(content).hexdigest(),
            "blob_path": path,
            "bbox": [5.5, 45.5, 10.5, 47.5],
        }
    )
"""

PUBLISHING = """
from pathlib import Path

from graticule.handlers import HandlerContext, register_handler

EXTERNAL = Path(__file__).with_name("external")


@register_handler("lifecycle.export", queue="container-tasks")
async def export(ctx: HandlerContext) -> dict[str, str]:
    run = f"run_{ctx.params['version_ordinal']}_{ctx.params['revision']}"
    (EXTERNAL / run).write_text(ctx.params["blob_path"])
    return {"external_blob_path": ctx.params["blob_path"].replace("silver", "external", 1), "export_run_id": run}


@register_handler("lifecycle.reverse", queue="container-tasks")
async def reverse(ctx: HandlerContext) -> None:
    (EXTERNAL / ctx.params["export_run_id"]).unlink()


@register_handler("lifecycle.unpublish", queue="container-tasks")
async def unpublish(ctx: HandlerContext) -> None:
    for version in ctx.params["versions"]:
        if version["export_run_id"]:
            (EXTERNAL / version["export_run_id"]).unlink()
"""


class LifecyclePackage:
    """A folder for PYTHONPATH, one for GRATICULE_WORKFLOWS, and the files that the handlers read and write."""

    def __init__(self, folder: Path, storage: Path) -> None:
        self._storage = storage
        self.modules = folder / "modules"
        self.workflows = folder / "workflows"
        for made in (self.modules, self.workflows, self._containers, self._external):
            made.mkdir(parents=True)
        (self.workflows / "raster_ingest.yaml").write_text(WORKFLOW)
        (self.workflows / "vector_ingest.yaml").write_text(UNHANDLED)
        for (workflow, node), inputs in PUBLISHING_INPUTS.items():
            declared = ", ".join(f"{name}: {{type: {kind}}}" for name, kind in inputs.items())
            params = ", ".join(f'{name}: "{{{{ inputs.{name} }}}}"' for name in inputs)
            text = PUBLISHING_WORKFLOW.format(workflow=workflow, node=node, inputs=declared, params=params)
            (self.workflows / f"{workflow}.yaml").write_text(text)
        self._install("lifecycle_processing", PROCESSING)

    @property
    def _containers(self) -> Path:
        return self.modules / "containers" / "bronze" / "ddh"

    @property
    def _external(self) -> Path:
        return self.modules / "external"

    def install_publishing(self) -> None:
        """Bring the handlers that publish and withdraw; a worker that starts from now on has them."""
        self._install("lifecycle_publishing", PUBLISHING)

    def _install(self, name: str, code: str) -> None:
        (self.modules / f"{name}.py").write_text(code)
        information = self.modules / f"{name}-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (information / "entry_points.txt").write_text(f"[graticule.handlers]\n{name} = {name}\n")

    def upload(self, name: str, content: str) -> str:
        """Put a file into the container `bronze`, and give its name there."""
        (self._containers / name).write_text(content)
        return self.announce(name)

    def announce(self, name: str) -> str:
        """Put a file where submissions are checked, and not where the handlers look for it."""
        put_source(self._storage, f"bronze/ddh/{name}")
        return f"ddh/{name}"

    def public_copies(self) -> dict[str, str]:
        """Give what the public can read: the path of the source of each run that exported one."""
        return {copy.name: copy.read_text() for copy in sorted(self._external.iterdir())}
