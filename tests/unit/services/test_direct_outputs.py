"""A hand-made job is refused at submission when its inputs name outputs of an asset."""

from typing import Any

import pytest
from tests.unit.dag.compiling import compiled

from graticule.core.errors import OutputRefused
from graticule.services.direct_outputs import check_direct_outputs
