"""How sources are opened after validation, and how their bytes are read."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import h5py
import numpy as np
import pytest
import rasterio
from tests.unit.handlers.raster.range_server import served
from tests.unit.handlers.raster.validating import gradient, write

from graticule.core.errors import Unavailable
from graticule.handlers.findings import Rejected
from graticule.handlers.raster.opening import gdal_environment, open_raster
from graticule.handlers.raster.rendering import readable_source
from graticule.handlers.raster.sandbox import ConversionRequest, convert_in_sandbox
from graticule.handlers.raster.source_file import file_of


def code_of(name: str) -> str:
    with pytest.raises(Rejected) as caught, gdal_environment(16), open_raster(name):
        pass
    (found,) = caught.value.findings
    return found.code


def test_only_what_its_first_bytes_tell_is_opened(tmp_path: Path) -> None:
    good = write(tmp_path / "a.vrt")
    with gdal_environment(16), open_raster(str(good)) as dataset:
        assert dataset.driver == "GTiff"
    link = f"<SimpleSource><SourceFilename>{good}</SourceFilename></SimpleSource>"
    band = f'<VRTRasterBand dataType="UInt16" band="1">{link}</VRTRasterBand>'
    for content, code in (
        (f'<VRTDataset rasterXSize="80" rasterYSize="60">{band}</VRTDataset>'.encode(), "vrt_not_accepted"),
        (b"hello, world\n", "not_a_raster"),
        (b"", "empty_file"),
        (b"II*\0", "corrupt"),
    ):
        (tmp_path / "b.tif").write_bytes(content)
        assert code_of(str(tmp_path / "b.tif")) == code
    assert code_of(str(tmp_path / "c.tif")) == code_of(str(tmp_path)) == "not_found"


def test_what_leads_to_another_file_is_opened_by_nobody(tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(b"secret" * 800)
    with h5py.File(tmp_path / "a.tif", "w") as file:
        file.create_dataset("data", (60, 80), "u1", external=[(str(tmp_path / "secret.bin"), 0, 4800)])
    assert code_of(str(tmp_path / "a.tif")) == "refers_to_other_files"
    other = str(write(tmp_path / "c.tif", gradient(1, 30, 40)))
    for domain, key in [("OVERVIEWS", "OVERVIEW_FILE"), ("OVERVIEWS", "overview_file"), ("overviews", "Overview_File")]:
        tiff = write(tmp_path / "b.tif")
        with rasterio.open(tiff, "r+") as dataset:
            dataset.update_tags(ns=domain, **{key: other})
        assert code_of(str(tiff)) == "refers_to_other_files", (domain, key)


def test_a_source_behind_an_address_is_looked_at_too(tmp_path: Path) -> None:
    with served(write(tmp_path / "a.tif")) as server, gdal_environment(16), open_raster(server.name) as dataset:
        assert dataset.driver == "GTiff"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data"] = h5py.ExternalLink("/secret", "data")
    with served(tmp_path / "a.h5") as server:
        assert code_of(server.name) == "refers_to_other_files"


@pytest.mark.parametrize("status", [0, 403, 503])
@pytest.mark.parametrize("driver", ["GTiff", "JP2OpenJPEG"])
def test_what_the_network_loses_after_the_header_damages_no_file(tmp_path: Path, driver: str, status: int) -> None:
    noise = np.random.default_rng(7).integers(0, 255, (1, 512, 512), dtype="uint8")
    options = {"tiled": True, "blockxsize": 256, "blockysize": 256} if driver == "GTiff" else {"quality": "100"}
    file = write(tmp_path / "a.tif", noise, driver=driver, **options)
    with (
        served(file) as server,
        gdal_environment(16),
        rasterio.Env(GDAL_HTTP_MAX_RETRY="0"),
        open_raster(server.name) as dataset,
    ):
        server.fail(status)
        with pytest.raises(Unavailable), readable_source(server.name):
            dataset.read()


def test_a_file_whose_end_is_missing_is_rejected_behind_an_address_too(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tif", gradient(1, 300, 400))
    os.truncate(file, file.stat().st_size - 1000)
    with (
        served(file) as server,
        gdal_environment(16),
        open_raster(server.name) as dataset,
        pytest.raises(Rejected, match="corrupt"),
        readable_source(server.name),
    ):
        dataset.read()


def test_what_cannot_be_looked_at_now_is_not_taken_for_harmless(tmp_path: Path) -> None:
    with served(tmp_path / "a.h5", status=503) as server, pytest.raises(Unavailable):
        convert_in_sandbox(ConversionRequest(name=server.name, kind="HDF5"))


class _Answering(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/endless")
            self.end_headers()
            return
        self.send_response(206)
        self.send_header("Content-Range", "bytes 0-9/100")
        self.send_header("Content-Encoding", "gzip")  # which it is not
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"0123456789" * 1000)
        except OSError:  # nobody listens any more
            pass

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def answering() -> Iterator[tuple[str, list[str]]]:
    asked = _Answering.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"/vsicurl/http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def test_no_more_is_read_of_an_answer_than_was_asked_for() -> None:
    with answering() as (address, _):
        file = file_of(f"{address}/endless")
        assert file.read(0, 14) == b"01234567890123"
        assert file.state().size == 100


class _Redirecting(BaseHTTPRequestHandler):
    """Gives us what we look at first, and redirects GDAL."""

    source: ClassVar[Path]
    elsewhere: ClassVar[str]

    def do_HEAD(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.elsewhere)
        self.end_headers()

    def do_GET(self) -> None:
        if "GDAL" in self.headers["User-Agent"]:
            return self.do_HEAD()
        data = self.source.read_bytes()
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[int(first) : int(last) + 1])
        return None

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_gdal_is_redirected_by_a_host_that_answers_us_otherwise(tmp_path: Path) -> None:
    """As the page on security admits; once GDAL can be kept from it, that is to be said there."""
    file = write(tmp_path / "a.tif")
    with served(file) as elsewhere, ThreadingHTTPServer(("127.0.0.1", 0), _Redirecting) as server:
        _Redirecting.source, _Redirecting.elsewhere = file, elsewhere.name.removeprefix("/vsicurl/")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with gdal_environment(16), open_raster(f"/vsicurl/http://127.0.0.1:{server.server_port}/a.tif") as dataset:
            assert dataset.driver == "GTiff"
        server.shutdown()


def test_a_redirect_is_not_followed() -> None:
    with answering() as (address, asked):
        with pytest.raises(Unavailable, match="status 302"):
            file_of(f"{address}/moved").read(0, 10)
        assert asked == ["/moved"]
