"""What each process of ours works out when it starts, and keeps: done once, by the one from which they are forked."""

from graticule.core.models import TABLES
from graticule.schema.ddl import fingerprint
from graticule.services import workflow_library

fingerprint(TABLES)
workflow_library.load([workflow_library.shipped_folder()], {})  # the handlers differ, the templates do not
