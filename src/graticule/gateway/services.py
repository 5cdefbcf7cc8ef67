"""What the routes work with, taken from the application that they belong to."""

from typing import Annotated, cast

from fastapi import Depends, Request

from graticule.config import Settings
from graticule.services.asset_reading import AssetReader
from graticule.services.job_reading import JobReader
from graticule.services.layer_metadata import LayerMetadataService
from graticule.services.operator_reading import OperatorReader
from graticule.services.platforms import PlatformService
from graticule.services.statistics import StatisticsService


def _settings(request: Request) -> Settings:
    return cast("Settings", request.app.state.settings)


def _assets(request: Request) -> AssetReader:
    return cast("AssetReader", request.app.state.assets)


def _metadata(request: Request) -> LayerMetadataService:
    return cast("LayerMetadataService", request.app.state.metadata)


def _platforms(request: Request) -> PlatformService:
    return cast("PlatformService", request.app.state.platforms)


def _jobs(request: Request) -> JobReader:
    return cast("JobReader", request.app.state.job_reader)


def _statistics(request: Request) -> StatisticsService:
    return cast("StatisticsService", request.app.state.statistics)


def _operator_reader(request: Request) -> OperatorReader:
    return cast("OperatorReader", request.app.state.operator_reader)


TheSettings = Annotated[Settings, Depends(_settings)]
Assets = Annotated[AssetReader, Depends(_assets)]
Metadata = Annotated[LayerMetadataService, Depends(_metadata)]
Platforms = Annotated[PlatformService, Depends(_platforms)]
Jobs = Annotated[JobReader, Depends(_jobs)]
Statistics = Annotated[StatisticsService, Depends(_statistics)]
ForOperators = Annotated[OperatorReader, Depends(_operator_reader)]
