"""Files that QGIS writes, all in one process, by the Python of the system: QGIS is not on PyPI."""

import json
import sys
from typing import Any

from qgis.core import (
    QgsApplication,
    QgsCoordinateReferenceSystem,
    QgsCoordinateTransform,
    QgsCoordinateTransformContext,
    QgsFeature,
    QgsGeometry,
    QgsRasterFileWriter,
    QgsRasterLayer,
    QgsRasterPipe,
    QgsVectorFileWriter,
    QgsVectorLayer,
    QgsWkbTypes,
)
from qgis.PyQt.QtCore import QDate, Qt

FIELDS = "field=title:string(80)&field=number:integer&field=size:double(20,9)&field=day:date"


def make_layer(columns: dict[str, list[Any]], shapes: list[str]) -> Any:
    layer = QgsVectorLayer(f"Polygon?crs=EPSG:4326&{FIELDS}", "areas", "memory")
    for title, number, size, day, wkt in zip(*columns.values(), shapes, strict=True):
        feature = QgsFeature(layer.fields())
        feature.setAttributes([title, number, size, QDate.fromString(day, Qt.ISODate)])
        feature.setGeometry(QgsGeometry.fromWkt(wkt))
        assert layer.dataProvider().addFeatures([feature])[0]
    return layer


def write_layer(layer: Any, file: str, given: dict[str, Any]) -> None:
    chosen = QgsVectorFileWriter.SaveVectorOptions()
    if (crs := given.pop("crs", None)) is not None:
        target = QgsCoordinateReferenceSystem(crs)
        chosen.ct = QgsCoordinateTransform(layer.crs(), target, QgsCoordinateTransformContext())
    if (geometry_type := given.pop("geometry_type", None)) is not None:
        chosen.overrideGeometryType = getattr(QgsWkbTypes, geometry_type)
    for name, value in given.items():
        assert hasattr(chosen, name), name
        setattr(chosen, name, value)
    code, message, *_ = QgsVectorFileWriter.writeAsVectorFormatV3(layer, file, QgsCoordinateTransformContext(), chosen)
    assert code == QgsVectorFileWriter.NoError, (file, given, message)


def write_raster(source: str, file: str, given: dict[str, Any]) -> None:
    layer, pipe = QgsRasterLayer(source, "raster"), QgsRasterPipe()
    provider = layer.dataProvider()
    assert pipe.set(provider.clone())
    if given.get("is_rendered"):
        assert pipe.set(layer.renderer().clone())
    writer = QgsRasterFileWriter(file)
    writer.setOutputFormat(given["driver"])
    writer.setCreateOptions(given["options"])
    place = (provider.xSize(), provider.ySize(), provider.extent(), provider.crs(), QgsCoordinateTransformContext())
    assert writer.writeRaster(pipe, *place) == QgsRasterFileWriter.NoError, (file, given)


if __name__ == "__main__":
    work = json.load(sys.stdin)
    application = QgsApplication([], False)
    application.initQgis()
    for source, path, how in work.get("rasters", []):
        write_raster(source, path, how)
    if "layers" in work:
        areas = make_layer(work["columns"], work["wkt"])
        for path, how in work["layers"]:
            write_layer(areas, path, how)
