"""Features: pages of them, and single ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response
from tipg import model

from graticule.repositories.served_tables import BYTES, Bound, Selection, ServedColumn, ServedTableRepository
from graticule.serve.features.asked import Conditions, TheConditions, chosen_geometry, chosen_properties, order_of
from graticule.serve.features.cql2 import Parameters
from graticule.serve.features.crs import RequestedCrs
from graticule.serve.features.formats import (
    JSON_TYPES,
    MEDIA_TYPES,
    Format,
    TheFormat,
    dumps,
    is_geojson,
    json_response,
    records,
    sequence,
    values_of,
    written,
)
from graticule.serve.features.geometries import DEFAULT_CRS, FeatureCrs
from graticule.serve.features.layer import COLLECTION, Layer, TheLayer
from graticule.serve.features.limits import FEATURES_BY_DEFAULT, MOST_BYTES, MOST_FEATURES, MOST_OFFSET, FilterError
from graticule.serve.features.links import GEOJSON, ITEMS, THE_COLLECTION
from graticule.serve.links import JSON, Addresses, Link

_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}, "model": model.Items}
}
_ANSWER: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}, "model": model.Item}
}

_LIMIT: Final = (
    f"How many features, up to {MOST_FEATURES}; more are not given at once, nor more than {MOST_BYTES // 1024**2} MiB."
)

# Columns of the rows that are read, beside those of the table.
ID: Final = "served_id"
SHAPE: Final = "served_shape"

router = APIRouter(tags=["Features"])


class Shown:
    """What is shown of each feature."""

    def __init__(
        self,
        layer: Layer,
        form: Format,
        properties: list[ServedColumn],
        geometry: ServedColumn | None,
        *,
        crs: FeatureCrs = DEFAULT_CRS,
        bbox_only: bool = False,
        simplify: float | None = None,
    ) -> None:
        self.layer = layer
        self.form = form
        self.properties = properties
        self.geometry = geometry
        self.crs = crs
        self._shape = _shape(layer, geometry, crs, bbox_only, simplify)
        self._read = properties if geometry is None or bbox_only else [*properties, geometry]

    def columns(self) -> list[str]:
        """Write the columns of the rows."""
        # Without options, GeoJSON would have a member `crs`, which the standard has dropped.
        shape = f"ST_AsGeoJSON({self._shape}, 9, 0)" if is_geojson(self.form) else f"ST_AsText({self._shape})"
        return [
            *map(_selected, self.properties),
            f"{self.layer.key.quoted} AS {ID}",
            f"{shape if self.geometry else 'CAST(NULL AS text)'} AS {SHAPE}",
        ]

    def selection(self, conditions: Conditions, order: list[str]) -> Selection:
        """Give the rows of these conditions."""
        return Selection(
            self.layer.schema,
            self.layer.table,
            self.columns(),
            self._read,
            order,
            conditions.sql,
            conditions.parameters.values,
        )

    def records(self, rows: list[Any], headers: Mapping[str, str]) -> Response:
        """Answer with rows in a form that is not GeoJSON."""
        names = [column.name for column in (*self.properties, *((self.geometry,) if self.geometry else ()))]
        return records(map(self._record, rows), names, self.form, headers)

    def _record(self, row: Any) -> dict[str, Any]:
        values = values_of(row, self.properties, self.form)
        return values if self.geometry is None else {**values, self.geometry.name: row[SHAPE]}

    def feature(self, row: Any, links: list[Link]) -> dict[str, Any]:
        """Give a row as a feature with links."""
        return {**self.bare_feature(row), "links": links}

    def bare_feature(self, row: Any) -> dict[str, Any]:
        """Return a row as a feature."""
        shape = row[SHAPE]
        return {
            "type": "Feature",
            "id": row[ID],
            "geometry": None if shape is None else orjson.Fragment(shape),
            "properties": values_of(row, self.properties, self.form),
        }


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a page, and where it is among all that match. It may have fewer than its limit: they were too large."""

    rows: list[Any]
    matched: int
    limit: int
    offset: int

    @property
    def end(self) -> int:
        """Where the next page begins."""
        return self.offset + len(self.rows)

    @property
    def size(self) -> int:
        """How many bytes the rows have."""
        return int(self.rows[-1][BYTES]) if self.rows else 0


def _selected(column: ServedColumn) -> str:
    """Write a column of the rows. JSON and times are texts in an answer: the one stays as it stands, and orjson writes
    a time of 62 milliseconds as one of 620."""
    is_text = column.type in JSON_TYPES or column.type.startswith("time with")
    return f"CAST({column.quoted} AS text) AS {column.quoted}" if is_text else column.quoted


async def the_shown(
    layer: TheLayer,
    form: TheFormat,
    crs: RequestedCrs,
    *,
    properties: Annotated[
        str | None, Query(description="Only these properties, with commas between them; none when empty.")
    ] = None,
    geom_column: Annotated[
        str | None, Query(alias="geom-column", description="The geometry, or `none` for features without.")
    ] = None,
    bbox_only: Annotated[bool, Query(alias="bbox-only", description="Boxes instead of shapes.")] = False,
    simplify: Annotated[
        float | None,
        Query(
            gt=0,
            le=1e6,
            allow_inf_nan=False,
            description="Simplify the shapes to this tolerance, in the unit of `crs`, which is degrees by default.",
        ),
    ] = None,
) -> Shown:
    """Read what a request wants to see of each feature."""
    chosen = chosen_properties(layer, properties), chosen_geometry(layer, geom_column)
    return Shown(layer, form, *chosen, crs=crs, bbox_only=bbox_only, simplify=simplify)


TheShown = Annotated[Shown, Depends(the_shown)]


def _shape(
    layer: Layer, geometry: ServedColumn | None, crs: FeatureCrs, bbox_only: bool, simplify: float | None
) -> str:
    if geometry is None:
        return "NULL"
    shape = geometry.quoted if layer.srid == crs.srid else f"ST_Transform({geometry.quoted}, {crs.srid:d})"
    if crs.is_north_first:
        shape = f"ST_FlipCoordinates({shape})"
    if bbox_only:
        return f"ST_Envelope({shape})"
    if simplify is None:
        return shape
    tolerance = f"{simplify:.17f}"
    return f"ST_SnapToGrid(ST_SimplifyPreserveTopology({shape}, {tolerance}), {tolerance})"


@router.get(ITEMS, response_class=Response, responses=_ANSWERS)
async def items(
    request: Request,
    conditions: TheConditions,
    shown: TheShown,
    *,
    sortby: Annotated[
        str | None, Query(description="Properties to sort by, with commas between them; `-` before one turns it.")
    ] = None,
    limit: Annotated[
        int, Query(ge=1, description=_LIMIT, json_schema_extra={"maximum": MOST_FEATURES})
    ] = FEATURES_BY_DEFAULT,
    offset: Annotated[int, Query(ge=0, le=MOST_OFFSET, description="How many features to leave out.")] = 0,
) -> Response:
    """Give a page of features."""
    bound = _bound(min(limit, MOST_FEATURES))
    selection = shown.selection(conditions, order_of(shown.layer, sortby))
    async with request.app.state.pool.acquire() as connection:
        table = ServedTableRepository(connection)
        matched = await table.count(selection)
        rows = await table.page(selection, bound, offset=offset)
    page = Page(rows, matched=matched, limit=bound.rows, offset=offset)
    return await written(lambda: _answered(request, shown, page), page.size)


def _bound(rows: int) -> Bound:
    return Bound(rows, read=MOST_BYTES, written=MOST_BYTES)


@router.get(ITEMS + "/{item_id}", response_class=Response, responses=_ANSWER)
async def item(request: Request, shown: TheShown, item_id: Annotated[str, Path(max_length=100)]) -> Response:
    """Give one feature."""
    conditions = Conditions(shown.layer, Parameters(), [])
    absent = HTTPException(404, f"There is no feature {item_id!r}.")
    try:
        conditions.one_of([item_id])
    except FilterError:
        raise absent from None
    async with request.app.state.pool.acquire() as connection:
        selection = shown.selection(conditions, order_of(shown.layer, None))
        rows = await ServedTableRepository(connection).page(selection, _bound(1))
    if not rows:
        raise absent
    return await written(lambda: _answered_one(request, shown, rows[0]), rows[0][BYTES])


def _answered(request: Request, shown: Shown, page: Page) -> Response:
    to = Addresses(request)
    links = _other_pages(request, to, page, MEDIA_TYPES[shown.form])
    headers = {**_as_header(links), **shown.crs.content_crs}
    if not is_geojson(shown.form):
        return shown.records(page.rows, headers)
    collection = to.link("collection", THE_COLLECTION, JSON, "The collection")
    features = (shown.feature(row, [_link_to(to, row[ID], "self"), collection]) for row in page.rows)
    if shown.form is Format.GEOJSONSEQ:
        return sequence(features, headers)
    content = {
        "type": "FeatureCollection",
        "id": COLLECTION,
        "title": shown.layer.title,
        "numberMatched": page.matched,
        "numberReturned": len(page.rows),
        "links": [to.itself(request, GEOJSON), collection, *links],
        # One by one: a thread that writes them all at once would let no other go on meanwhile.
        "features": [orjson.Fragment(dumps(feature)) for feature in features],
    }
    return json_response(content, MEDIA_TYPES[shown.form], shown.crs.content_crs)


def _other_pages(request: Request, to: Addresses, page: Page, kind: str) -> list[Link]:
    asked = [pair for pair in request.query_params.multi_items() if pair[0] != "offset"]
    pages = []
    if page.rows and page.end < page.matched and page.end <= MOST_OFFSET:
        pages.append(to.link("next", ITEMS, kind, "The next page", [*asked, ("offset", str(page.end))]))
    if page.offset > 0:
        before = max(page.offset - page.limit, 0)
        pages.append(to.link("prev", ITEMS, kind, "The page before", [*asked, ("offset", str(before))]))
    return pages


def _as_header(links: list[Link]) -> dict[str, str]:
    """Write links for a form that has no place for them (RFC 8288)."""
    told = ", ".join(f'<{link["href"]}>; rel="{link["rel"]}"; type="{link["type"]}"' for link in links)
    return {"Link": told} if told else {}


def _answered_one(request: Request, shown: Shown, row: Any) -> Response:
    if not is_geojson(shown.form):
        return shown.records([row], shown.crs.content_crs)
    to = Addresses(request)
    links = [to.itself(request, GEOJSON), to.link("collection", THE_COLLECTION, JSON, "The collection")]
    feature = shown.feature(row, links)
    if shown.form is Format.GEOJSONSEQ:
        return sequence([feature], shown.crs.content_crs)
    return json_response(feature, MEDIA_TYPES[shown.form], shown.crs.content_crs)


def _link_to(to: Addresses, feature_id: object, rel: str) -> Link:
    return to.link(rel, f"{ITEMS}/{feature_id}", GEOJSON, "The feature")
