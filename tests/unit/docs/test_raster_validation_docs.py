"""docs/reference/raster_validation.md: its codes, limits and lists are those of the code."""

import json

from tests.unit.docs.pages import blocks, code, codes, page, table

from graticule.core.validation import MOST_FACT_BYTES
from graticule.handlers import zip_archive
from graticule.handlers.findings import Finding
from graticule.handlers.raster import conversion, examination, inspection, sampling, sandbox, tiff_layout, validation
from graticule.handlers.raster.file_kinds import ACCEPTED
from graticule.handlers.raster.selection import SourceSelection
from graticule.handlers.raster.validation_codes import HOW_TO_FIX, Code, severity_of

PAGE = page("raster_validation.md")
MEBIBYTE = 1024 * 1024


def test_every_code_is_told() -> None:
    told = {code(row[0]): (row[1], row[3]) for row in table(PAGE, "| code | severity |")}
    assert told == {each.value: (severity_of(each).value, HOW_TO_FIX[each]) for each in Code}


def test_the_report_is_one() -> None:
    (report,) = (json.loads(block) for block in blocks(PAGE, "json"))
    (shown,) = map(Finding.model_validate, report["findings"])
    assert shown.how_to_fix == HOW_TO_FIX[Code(shown.code)]


def test_the_limits() -> None:
    told = {row[0]: row[1] for row in table(PAGE, "| limit | value |")}
    assert told == {
        "pixels on a side": f"{examination.LONGEST_SIDE:,}",
        "bands": f"{inspection.MAX_BANDS:,}",
        "pixels of a band, also after a warp": f"{examination.MAX_PIXELS // 10**9} billion, and "
        f"{examination.MAX_PIXELS_PER_BYTE:,} for each byte of data; "
        f"{examination.MAX_SPARSE_PIXELS // 10**6} million are always allowed",
        "pixels without compression": f"{examination.MOST_RAW_BYTES // 1024**3} GiB",
        "a block, of all bands if they are interleaved by pixel": f"{examination.MAX_BLOCK_BYTES // MEBIBYTE} MiB",
        "the same in tiles of 512 x 512 pixels": f"{examination.MAX_TILE_BYTES // MEBIBYTE} MiB",
        "a bomb": f"over {examination.BOMB_ABOVE_BYTES // 1024**3} GiB of pixels, "
        f"and over {examination.BOMB_RATIO} times the size of the file",
        "pixels of a file that is converted": f"{conversion.MAX_RAW_BYTES // 1024**3} GiB",
        "files in an archive": f"{zip_archive.MAX_ENTRIES:,}",
        "what is unpacked": f"{zip_archive.MAX_BYTES // 1024**3} GiB, and {zip_archive.MAX_RATIO} times the archive's "
        f"size; {zip_archive.FREE_BYTES // 1024**2} MiB are always allowed",
        "memory of the task": f"{validation.MEMORY_LIMIT_MB} MiB",
        "memory of a conversion": f"{sandbox.MEMORY_BYTES // MEBIBYTE} MiB",
    }


def test_the_options() -> None:
    told = {name.strip(" `)") for row in table(PAGE, "| option | for |") for name in row[0].split("(or")}
    assert told == {*SourceSelection.model_fields, "subdataset"}


def test_the_numbers_and_names() -> None:
    text = " ".join(PAGE.split())
    for said in (
        f"up to {sampling.MOST_BLOCKS} blocks",
        f"up to {sampling.MOST_STORED_BYTES // MEBIBYTE} MiB of stored bytes",
        f"a raster of up to {sampling.READ_AS_A_WHOLE_BELOW // MEBIBYTE} MiB",
        f"more than {tiff_layout.MOST_LOOKED_AT:,} blocks",
        f"at most {sampling.SCANNED_BELOW // MEBIBYTE} MiB and it takes at most {sampling.SCAN_SECONDS:g} s",
        f"{inspection.MOST_BANDS_TOLD} bands and {inspection.MOST_OVERVIEWS_TOLD} overviews",
        f"a description has {inspection.LONGEST_DESCRIPTION} characters, a unit {inspection.LONGEST_UNIT}",
        f"a tag {inspection.LONGEST_TEXT}, and a WKT of more than {inspection.LONGEST_WKT}",
        f"more than {MOST_FACT_BYTES // 1024} KiB",
    ):
        assert said in text, said
    assert set(inspection.TAGS_TOLD) <= set(codes(PAGE))
    assert set(examination.DTYPES) <= set(codes(PAGE))
    assert all(kind.name in PAGE for kind in ACCEPTED)
