"""What those send who mean harm. `{canary}` is a file, and `{port}` a port on loopback, that nobody may touch."""

from typing import Any, Final

import orjson
from tests.integration.serve.running import INSIDE, TILE

EVIL: Final = "evil.example.net"
X, Y = INSIDE
BOX: Final = f"{X - 0.1},{Y - 0.1},{X + 0.1},{Y + 0.1}"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


EXPRESSIONS: Final = (
    *_lines(
        """
        b1**b1**b1**9999999
        9**9**9**9**9
        2**2**2**2**2**2**2*b1
        b1**1000000000
        b1<<9999999999
        __import__('os').system('id')
        open('/etc/passwd')
        b1.__class__
        ().__class__.__bases__
        lambda: b1
        b1 if b1 else b1
        [b1 for b1 in b1]
        exec('b1')
        evaluate('b1')
        'a'*9999999999
        sum(b1, axis=9999)
        ones(9999999)
        where(b1)
        b999999999
        b0
        b-1
        b2
        c1
        b1[0]
        b1@b1
        b1:=1
        {b1}
        b1,b1
        b1 and
        b1;drop table x
        ;
        💣
        """
    ),
    *("", " ", "\x00", "b1\x00", "(" * 500 + "b1" + ")" * 500, "b1+" * 900 + "b1", ";".join(["b1"] * 500)),
    *("-" * 1900 + "b1", "9" * 1999 + "*b1", "b1*" + "(b1*" * 300 + "b1" + ")" * 300, "x" * 5000),
)
PICTURES: Final = (
    *_lines(
        f"""
        preview.png?max_size=100000
        preview.png?width=100000&height=100000
        preview/100000x100000.png
        preview.png?max_size=-1
        preview.png?max_size=0
        preview.png?max_size=1e5
        preview.png?max_size=4096&max_size=1e9
        preview.png?width=nan
        preview/0x0.png
        preview/-1x-1.png
        preview/99999999999999999999x1.png
        bbox/{BOX}/100000x100000.png
        bbox/{BOX}.png?max_size=100000
        bbox/{BOX}.exe
        bbox/nan,nan,nan,nan.png
        bbox/-inf,-inf,inf,inf.png
        bbox/1e308,1e308,1e309,1e309.png
        bbox/1,1,1,1.png
        bbox/2,2,1,1.png
        bbox/a,b,c,d.png
        bbox/1,2,3.png
        tiles/WebMercatorQuad/60/0/0
        tiles/WebMercatorQuad/60/576460752303423488/576460752303423488.png
        tiles/WebMercatorQuad/-1/0/0
        tiles/WebMercatorQuad/1e9/0/0
        tiles/WebMercatorQuad/8/99999999/0
        tiles/WebMercatorQuad/8/-84/-117
        tiles/WebMercatorQuad/24/99999999999999999999/0
        tiles/WebMercatorQuad/8/84/117.vrt
        tiles/WebMercatorQuad/8/84/117@9999x.png
        tiles/WebMercatorQuad%00/8/84/117
        tiles/NoSuchQuad/8/84/117
        tiles/{TILE}.png?tilesize=100000
        tiles/{TILE}.png?buffer=1000000
        tiles/{TILE}.png?padding=1000000
        WebMercatorQuad/tilejson.json?minzoom=0&maxzoom=60
        WebMercatorQuad/tilejson.json?tilesize=99999999
        WebMercatorQuad/tilejson.json?tile_format=exe
        point/nan,nan
        point/inf,-inf
        point/1e999,0
        point/999,999
        point/0
        point/a,b
        statistics?max_size=100000
        statistics?histogram_bins=1000000000
        statistics?histogram_range=nan,inf
        statistics?p=1000
        statistics?categorical=maybe
        """
    ),
    *("statistics?" + "&".join(["p=1"] * 1000), "statistics?histogram_bins=" + ",".join(map(str, range(1500)))),
)
RENDERING: Final = (
    *_lines(
        """
        bidx=0
        bidx=-1
        bidx=99999
        bidx=a
        nodata=x
        rescale=1
        rescale=a,b
        rescale=nan,nan
        rescale=0,1e9999
        rescale=2,1,0
        colormap_name=nosuch
        colormap_name=../../../etc/passwd
        colormap=x
        colormap=%7B
        colormap=[]
        colormap={%22a%22:%22%23000%22}
        color_formula=gamma%20rgb%201e999
        color_formula=__import__('os')
        algorithm=nosuch
        algorithm=../x
        algorithm=hillshade&algorithm_params=[
        algorithm=cast&algorithm_params=x
        resampling=nosuch
        reproject=nosuch
        unscale=maybe
        return_mask=x
        dst_crs=
        dst_crs=EPSG:999999999
        dst_crs=EPSG:0
        dst_crs=%2Bproj%3Dlonglat
        dst_crs=GEOGCRS[%22x%22]
        dst_crs=%2Bproj%3Dpipeline%20%2Bstep%20%2Bproj%3Dhgridshift%20%2Bgrids%3D{canary}
        dst_crs={canary}
        dst_crs=file://{canary}
        dst_crs=@{canary}
        dst_crs=http://127.0.0.1:{port}/crs.xml
        dst_crs=/vsicurl/http://127.0.0.1:{port}/x
        dst_crs=https://www.opengis.net/def/crs/EPSG/0/../../4326
        """
    ),
    *("bidx=" + "9" * 400, "&".join(["bidx=1"] * 1000), "rescale=" + "1," * 3000, "colormap=" + "[" * 3000),
    *('colormap={"1":"' + "f" * 3000 + '"}', "color_formula=" + "gamma%20r%201%20" * 300),
)
CQL2: Final = (
    *_lines(
        """
        mark=1; DROP TABLE geo.shared_v0_r1
        1=1 UNION SELECT * FROM dagapp.api_clients
        mark IN (SELECT 1)
        mark = (SELECT count(*) FROM dagapp.geospatial_assets)
        pg_sleep(10) IS NULL
        pg_sleep(10) = 1
        mark = 1 OR pg_sleep(10) IS NOT NULL
        pg_read_file('/etc/passwd') = 'x'
        lo_import('/etc/passwd') > 0
        dblink('host=127.0.0.1') = 'x'
        mark' OR '1'='1
        '1'='1' --
        "mark"; SELECT 1;--" = 1
        mark=1)) OR ((1=1
        secret = 'x'
        "pg_catalog"."pg_authid" = 1
        CASE WHEN mark=1 THEN 1 END = 1
        mark::text = '1'
        $$a$$ = 'a'
        fid.mark = 1
        tableoid = 1
        ctid = '(0,1)'
        xmin = 1
        mark = mark()
        mark = 1e999
        mark LIKE
        mark BETWEEN 1
        mark IN ()
        mark = '
        mark
        =
        💣
        S_INTERSECTS(geom, POLYGON((0 0)))
        S_INTERSECTS(geom, POINT(nan nan))
        S_WITHIN(geom, mark)
        T_AFTER(mark, TIMESTAMP('x'))
        """
    ),
    *("mark=\x00", "mark='\x00'", "mark = " + "9" * 500, "(" * 500 + "mark=1" + ")" * 500),
    *(" AND ".join(["mark=1"] * 700), "NOT " * 1500 + "mark=1"),
)
FEATURES: Final = (
    *_lines(
        """
        limit=-1
        limit=1e9
        limit=a
        offset=-1
        offset=999999999999999999999999999999
        offset=1;drop
        bbox=nan,nan,nan,nan
        bbox=1,2,3
        bbox=1e999,0,0,0
        bbox=a,b,c,d
        bbox=-inf,0,inf,1
        bbox=0,0,1,1&bbox-crs=EPSG:999999999
        bbox=0,0,1,1&bbox-crs=%2Bproj%3Dlonglat
        crs={canary}
        crs=EPSG:1
        crs=http://127.0.0.1:{port}/crs
        sortby=mark;select
        sortby=(select%201)
        sortby=secret
        properties=secret
        properties=mark,pg_sleep(1)
        ids=1;drop
        ids=%00
        mark=1;drop
        mark=%00
        secret=x
        geom-column=secret
        datetime-column=mark
        geom=x
        simplify=-1
        f=exe
        f=../../x
        filter-lang=sql
        filter=mark=1&filter-lang=cql2-json
        filter=mark=1&filter-crs={canary}
        token=../../x
        """
    ),
    *("bbox=" + "1," * 2000, "sortby=" + "mark," * 500, "ids=" + ",".join(map(str, range(1500)))),
)
SEARCHES: Final = (
    *_lines(
        """
        limit=-1
        limit=a
        limit=0
        bbox=1,2,3
        bbox=nan,nan,nan,nan
        bbox=1e999,0,0,0
        bbox=3,3,1,1
        datetime=x
        datetime=2020-99-99
        datetime=%00
        token=next:';drop
        filter=;
        filter-lang=sql
        filter=pg_sleep(10)=1&filter-lang=cql2-text
        filter=pg_read_file('/etc/passwd')='x'&filter-lang=cql2-text
        intersects=x
        intersects={%22type%22:%22Point%22}
        conf={%22context%22:%22on%22}
        query={
        ids=%00
        url=http://127.0.0.1:{port}/
        """
    ),
    *("filter={" + "%22a%22:{" * 900 + "&filter-lang=cql2-json", "filter=" + "(" * 1500 + "&filter-lang=cql2-text"),
    "collections=" + "x" * 7000,
)
# What is strange, and yet can be answered: with no more than there is.
HARMLESS_SEARCHES: Final = _lines(
    """
    ids='%20OR%201=1
    collections='%20OR%20'1'='1
    collections=*
    fields=%2Bproperties
    fields=-id
    sortby=-properties.title
    sortby=;drop
    limit=10000
    filter=title%20LIKE%20'%25'
    filter=properties.title%20IS%20NOT%20NULL
    filter=1=1
    bbox=-180,-90,180,90
    """
)


def polygon(corners: int) -> dict[str, Any]:
    """Give a feature that has so many corners in a small place."""
    ring = [[X + each * 1e-9, Y + each % 2 * 1e-9] for each in range(corners)]
    return {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}}


SEARCH_BODIES: Final = (
    *(
        orjson.dumps(each)
        for each in (
            {"conf": {"nohydrate": True, "search_path": "public"}},
            {"conf": {"base_url": f"http://{EVIL}"}},
            {"filter": {"op": "pg_sleep", "args": [10]}, "filter-lang": "cql2-json"},
            {"filter": {"op": "=", "args": [{"property": "x'; SELECT pg_sleep(10); --"}]}, "filter-lang": "cql2-json"},
            {"filter": {"op": "like", "args": ["(a+)+$" * 500, "a" * 5000]}, "filter-lang": "x"},
            {"limit": -1},
            {"limit": "1; DROP TABLE pgstac.items"},
            {"ids": ["x" * 5000]},
            {"ids": [str(each) for each in range(5000)]},
            {"bbox": [float(each) for each in range(1000)]},
            {"intersects": polygon(4)},
            {"token": "next:shared:' OR 1=1"},
            {"sortby": [{"field": "x'; SELECT 1; --", "direction": "up"}]},
            {"url": "http://127.0.0.1/"},
        )
    ),
    *(b'{"ids": ["\\ud800"]}', b'{"collections": ["\\u0000"]}', b'{"datetime": "\\udfff"}'),
    b'{"filter": {"op": "=", "args": [{"property": "\\ud800"}, "\\udfff"]}}',
)


def _shape(coordinates: bytes) -> bytes:
    geometry = b'{"type":"Polygon","coordinates":' + coordinates + b"}"
    return b'{"type":"Feature","properties":{},"geometry":' + geometry + b"}"


# Bodies of which no route can make anything, or should not.
BODIES: Final = (
    *(b"", b"\x00\xff\xfe", b'{"type":', b"[]", b"null", b'{"a":' * 20_000 + b"1" + b"}" * 20_000),
    *(b"[" * 100_000 + b"]" * 100_000, b'{"x":"' + b"x" * 2_000_000 + b'"}', orjson.dumps(polygon(20_000))),
    _shape(b"[[[NaN,NaN],[1,1],[2,2],[NaN,NaN]]]"),
    _shape(b"[[[1e308,1e308],[2e308,0],[0,0],[1e308,1e308]]]"),
    b'{"type":"Feature","properties":{},"geometry":{"$ref":"file:///etc/passwd"}}',
    b'{"type":"Feature","properties":1,"geometry":{"type":"Polygon","coordinates":"x"}}',
    b'{"type":"Feature","properties":1,"geometry":{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}}',
)
HEADERS: Final[tuple[dict[str, str], ...]] = (
    {"host": EVIL},
    {"host": f'{EVIL}" onload=x'},
    {"host": ""},
    {"host": "["},
    {"x-forwarded-host": EVIL, "x-forwarded-proto": "gopher", "x-forwarded-prefix": f"//{EVIL}"},
    {"forwarded": f"host={EVIL};proto=gopher", "x-forwarded-for": f"{EVIL}, 127.0.0.1", "x-real-ip": EVIL},
    {"x-original-url": "/metrics", "x-rewrite-url": "/metrics", "x-http-method-override": "DELETE"},
    {"if-none-match": ",".join(f'"{each}"' for each in range(50_000))},
    {"if-none-match": "*" * 100_000},
    {"if-none-match": 'W/"'},
    {"range": "bytes=0-99999999999999", "if-range": "x"},
    {"accept": "text/html;q=nan, */*;q=1e999, " + "a/b," * 5000},
    {"accept": "\xff\xfe"},
    {"accept-encoding": "br;q=x," * 5000},
    {"accept-language": "../../x"},
    {"x-api-key": "x" * 100_000},
    {"x-api-key": "\xff\x00"},
    {"authorization": "Bearer " + "a." * 50_000},
    {"x-request-id": f"{EVIL}\r\nX-Evil: 1"},
    {"origin": f"http://{EVIL}", "access-control-request-method": "DELETE"},
    {"content-length": "-1"},
    {"transfer-encoding": "chunked, identity", "content-length": "5"},
    {"cookie": "version=0; " * 5000},
)
