"""What the routes work with, taken from the application that they belong to."""

from typing import Annotated

from fastapi import Depends

from graticule.config import Settings
from graticule.http.parts import part
from graticule.services.asset_reading import AssetReader
from graticule.services.job_reading import JobReader
from graticule.services.layer_metadata import LayerMetadataService
from graticule.services.operator_reading import OperatorReader
from graticule.services.platforms import PlatformService
from graticule.services.statistics import StatisticsService

TheSettings = Annotated[Settings, Depends(part("settings"))]
Assets = Annotated[AssetReader, Depends(part("assets"))]
Metadata = Annotated[LayerMetadataService, Depends(part("metadata"))]
Platforms = Annotated[PlatformService, Depends(part("platforms"))]
Jobs = Annotated[JobReader, Depends(part("job_reader"))]
Statistics = Annotated[StatisticsService, Depends(part("statistics"))]
ForOperators = Annotated[OperatorReader, Depends(part("operator_reader"))]
