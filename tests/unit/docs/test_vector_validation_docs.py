"""docs/reference/vector_validation.md: its codes, limits and lists are those of the code."""

import json

from tests.unit.docs.pages import blocks, code, page, table

from graticule.core.validation import MOST_FACT_BYTES, ValidationReport
from graticule.handlers import zip_archive
from graticule.handlers.vector import validation
from graticule.handlers.vector.examining import chunks, report, scanning
from graticule.handlers.vector.preparing import complexity, wkb
from graticule.handlers.vector.rejecting import HOW_TO_FIX, Code, severity_of
from graticule.handlers.vector.sources import (
    archive,
    choosing,
    filegdb,
    geopackage,
    geoparquet,
    ogr,
    opening,
    topojson,
    xml_source,
)
from graticule.handlers.vector.sources.options import SourceOptions
from graticule.handlers.vector.sources.source import HEAD_BYTES, MAX_BYTES, TABLE_ENDINGS, Kind

PAGE = page("vector_validation.md")


def test_every_code_is_told() -> None:
    told = {code(row[0]): (row[1], row[3]) for row in table(PAGE, "| code | severity |")}
    assert told == {each.value: (severity_of(each).value, HOW_TO_FIX[each]) for each in Code}


def test_the_report_is_one() -> None:
    (shown,) = (ValidationReport.model_validate_json(block) for block in blocks(PAGE, "json"))
    (finding,) = shown.findings
    assert finding.how_to_fix == HOW_TO_FIX[Code(finding.code)]
    assert json.dumps(shown.facts) != "{}"


def test_the_formats_and_options() -> None:
    assert all(f" {ending}" in PAGE for ending in (*TABLE_ENDINGS, *archive.SHAPEFILE_PARTS))
    assert {code(row[2]) for row in table(PAGE, "| format | as |")} == {kind.value for kind in Kind}
    told = {name.strip("` ") for row in table(PAGE, "| option | for |") for name in row[0].split(",")}
    assert told == {*SourceOptions.model_fields, "target_crs"}


def test_the_limits() -> None:
    told = {row[0]: row[1] for row in table(PAGE, "| limit | value |")}
    parquet = f"features of a Parquet file, each with {geoparquet.ROW_BYTES} bytes more than its values"
    free = f"{zip_archive.FREE_BYTES // 1024**2} MiB are always allowed"
    assert told == {
        "fields": f"{opening.MOST_FIELDS:,}",
        "layers that become one table": f"{choosing.MAX_MERGED}",
        "characters of a field's name": f"{report.LONGEST_FIELD:,}",
        "levels of a geometry collection": f"{wkb.DEEPEST}",
        "a KML or TopoJSON file": f"{MAX_BYTES[Kind.KML] // 1024**2} MiB",
        "the .tab file of a MapInfo table": f"{HEAD_BYTES // 1024} KiB",
        "points of a TopoJSON file": f"{topojson.MAX_POINTS:,}",
        "levels of XML elements": f"{xml_source.MAX_DEPTH}",
        "a tag or comment of XML": f"{xml_source.MAX_TOKEN_BYTES // 1024**2} MiB",
        "attributes of an XML element": f"{xml_source.MAX_ATTRIBUTES:,}",
        "distinct elements and attributes below the features of GML": f"{xml_source.MAX_FIELDS:,} of each layer, "
        f"{xml_source.MAX_PATHS:,} of all",
        "names of extended data in KML": f"{xml_source.MAX_FIELDS:,}",
        "folders of KML, and layers of GML": f"{xml_source.MAX_LAYERS:,}",
        "the start and end angle of an arc in GML": f"±{xml_source.MAX_ANGLE} degrees",
        "a feature": f"{ogr.BATCH_BYTES // 1024**2} MiB",
        "crossings and touches of the edges of an invalid polygon": f"{complexity.MAX_MEETINGS:,}, and in a whole file "
        f"{complexity.MAX_MEETINGS_IN_FILE:,} and one more for each vertex",
        "vertices of an invalid geometry": f"{complexity.MAX_REPAIRED_VERTICES:,}",
        "pairs of parts of an invalid geometry whose boxes overlap": f"{complexity.MAX_PART_PAIRS:,}",
        "CRSs that a GeoPackage defines": f"{geopackage.MAX_DEFINITIONS:,}",
        "descriptions of the fields of a File Geodatabase's table": f"{filegdb.MAX_HEADER_BYTES // 1024**2} MiB",
        "files in an archive": f"{zip_archive.MAX_ENTRIES:,}",
        "what is unpacked": f"{zip_archive.MAX_BYTES // 1024**3} GiB, and {zip_archive.MAX_RATIO} times the archive's "
        f"size; {free}",
        parquet: f"{zip_archive.MAX_RATIO} times the file's size; {free}",
        "memory of the task": f"{validation.MEMORY_LIMIT_MB} MiB",
    }


def test_the_numbers() -> None:
    text = " ".join(PAGE.split())
    for said in (
        f"up to {scanning.MOST_EXAMPLES} examples",
        f"after {report.LONGEST_TOLD} characters",
        f"{report.MOST_TOLD} columns and {report.MOST_LAYERS_TOLD} layers",
        f"at most {MOST_FACT_BYTES // 1024} KiB",
        f"more than {chunks.ROWS_PER_CHUNK:,} features",
        f"at most {chunks.MOST_CHUNKS:,} of them",
    ):
        assert said in text, said
