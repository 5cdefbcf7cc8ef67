// A map of one TileJSON document. The page names it, and the kind of its tiles, in attributes of #map.
// `data-state` of the page tells how things stand: loading, idle (all that is in sight is drawn) or error.

import { addProtocol, Map as MapLibre, NavigationControl, Popup, ScaleControl } from "./maplibre/maplibre-gl.mjs";

const COLOURS = {
  light: { background: "#eceff1", fill: "#1f6fb2", line: "#0d4474" },
  dark: { background: "#14181b", fill: "#5aa9e6", line: "#b9dcf7" },
};
const WORLD = [-180, -85, 180, 85];
const MOST_FEATURES_SHOWN = 10;
const MERGED_COUNT = "graticule:count"; // of a shape that stands for several features
const COUNTED = "counted"; // the protocol by which vector tiles are fetched: their headers have counts

const page = document.documentElement;
const container = document.getElementById("map");
const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const colours = () => (darkScheme.matches ? COLOURS.dark : COLOURS.light);

try {
  await show(container.dataset.kind, container.dataset.tilejson);
} catch (error) {
  fail(error);
}

async function show(kind, address) {
  const tilejson = await read(address);
  const layers = kind === "vector" ? vectorLayers(tilejson) : [{ id: "raster", type: "raster", source: "asset" }];
  const bounds = unwrapped(tilejson.data_bounds ?? tilejson.bounds);
  const map = new MapLibre({
    container,
    style: {
      version: 8,
      sources: { asset: source(kind, tilejson, bounds) },
      layers: [{ id: "background", type: "background" }, ...layers],
    },
    bounds,
    fitBoundsOptions: { padding: 24, maxZoom: 18 },
    attributionControl: false,
    locale: { "Map.Title": document.title },
  });
  addControls(map, tilejson.attribution);
  paintWith(map, layers);
  watch(map);
  if (kind === "vector") {
    tellFeatures(map, layers.map((layer) => layer.id));
    tellCounts(map, tilejson);
  }
}

async function read(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  throw new Error(problem.detail ?? `The server answered ${answer.status}.`);
}

// What is drawn

function source(kind, tilejson, bounds) {
  const tiles = tilejson.tiles.map(onThisHost).map((address) => (kind === "vector" ? counted(address) : address));
  const { minzoom = 0, maxzoom = 22 } = tilejson;
  const described = { type: kind, tiles, minzoom, maxzoom };
  // MapLibre takes the bounds of a source for a box in one world; data across the antimeridian are in two.
  if (bounds[0] >= -180 && bounds[2] <= 180) described.bounds = bounds;
  if (kind === "raster") described.tileSize = tileSize(tiles[0]);
  return described;
}

function onThisHost(address) {
  return address.replace(/^(https?:\/\/[^/]+)?(?=\/)/, location.origin);
}

// TileJSON does not tell it; the address of the tiles does.
function tileSize(address) {
  return Number(new URL(address).searchParams.get("tilesize")) || 256;
}

function unwrapped(bounds) {
  if (bounds?.length !== 4 || !bounds.every(Number.isFinite)) return WORLD;
  const [west, south, east, north] = bounds;
  const unrolled = west > east ? east + 360 : east;
  return [west, Math.max(south, WORLD[1]), unrolled, Math.min(north, WORLD[3])];
}

function vectorLayers(tilejson) {
  const names = tilejson.vector_layers?.map((layer) => layer.id) ?? ["features"];
  const [isArea, isLine, isPoint] = ["Polygon", "LineString", "Point"].map((type) => ["==", ["geometry-type"], type]);
  const isMerged = ["has", MERGED_COUNT];
  const isItself = ["!", isMerged];
  // Merged shapes are pixels: they have no outline, and look like a feature of which little more is seen.
  return names.flatMap((name) => [
    vectorLayer(name, "fill", ["all", isArea, isItself], { "fill-opacity": 0.45 }),
    vectorLayer(name, "merged fill", ["all", isArea, isMerged], { "fill-opacity": 1 }),
    vectorLayer(name, "line", ["any", isLine, ["all", isArea, isItself]], { "line-width": 1.25 }),
    vectorLayer(name, "merged circle", ["all", isPoint, isMerged], { "circle-radius": 1 }),
    vectorLayer(name, "circle", ["all", isPoint, isItself], { "circle-radius": 5, "circle-stroke-width": 1.25 }),
  ]);
}

function vectorLayer(name, kind, filter, paint) {
  const type = kind.replace("merged ", "");
  return { id: `${name} ${kind}`, type, source: "asset", "source-layer": name, filter, paint };
}

function paintWith(map, layers) {
  const paint = () => {
    const { background, fill, line } = colours();
    const properties = {
      fill: { "fill-color": fill },
      line: { "line-color": line },
      circle: { "circle-color": fill, "circle-stroke-color": background },
    };
    map.setPaintProperty("background", "background-color", background);
    for (const { id, type } of layers) {
      for (const [name, colour] of Object.entries(properties[type] ?? {})) map.setPaintProperty(id, name, colour);
      if (id.endsWith(" merged fill")) map.setPaintProperty(id, "fill-color", line);
    }
  };
  map.once("style.load", paint);
  darkScheme.addEventListener("change", paint);
}

// What stands around it

function addControls(map, attribution) {
  map.addControl(new NavigationControl({ visualizePitch: true }), "top-right");
  map.addControl(new ScaleControl(), "bottom-left");
  if (attribution) map.addControl(attributionControl(attribution), "bottom-right");
}

// MapLibre's own control would take the attribution for HTML; a partner wrote it, so it is shown as text.
function attributionControl(html) {
  const { body } = new DOMParser().parseFromString(html.replace(/<[^>]*>/g, ""), "text/html");
  const element = textElement("div", body.textContent);
  element.className = "maplibregl-ctrl attribution";
  return { onAdd: () => element, onRemove: () => element.remove() };
}

// What a click tells

function tellFeatures(map, layers) {
  map.on("click", (event) => {
    const features = distinct(map.queryRenderedFeatures(event.point, { layers }));
    if (features.length === 0) return;
    new Popup({ maxWidth: "min(24rem, 90vw)" })
      .setLngLat(event.lngLat)
      .setDOMContent(described(features))
      .addTo(map);
  });
  map.on("mousemove", (event) => {
    const [feature] = map.queryRenderedFeatures(event.point, { layers });
    map.getCanvas().style.cursor = feature ? "pointer" : "";
  });
}

// A polygon is found by its area and by its outline.
function distinct(features) {
  const found = new Map(features.map((feature) => [feature.id ?? JSON.stringify(feature.properties), feature]));
  return [...found.values()];
}

function described(features) {
  const box = document.createElement("div");
  box.className = "features";
  box.role = "group";
  box.ariaLabel = "Features here";
  box.tabIndex = 0; // a long list is scrolled by keyboard too
  box.append(...features.slice(0, MOST_FEATURES_SHOWN).map((feature) => propertyList(feature.properties)));
  const left = features.length - MOST_FEATURES_SHOWN;
  if (left > 0) box.append(textElement("p", `${left} more here`));
  return box;
}

function propertyList(properties) {
  if (MERGED_COUNT in properties) return textElement("p", mergedText(properties[MERGED_COUNT]));
  const entries = Object.entries(properties);
  if (entries.length === 0) return textElement("p", "This feature has no properties.");
  const list = document.createElement("dl");
  for (const [name, value] of entries) list.append(textElement("dt", name), textElement("dd", String(value)));
  return list;
}

function mergedText(count) {
  const features =
    count === 0 ? "Some features are" : count === 1 ? "1 feature is" : `${count.toLocaleString("en")} features are`;
  return `${features} merged here. Zoom in to see more.`;
}

function textElement(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

// How many of how many features are shown

const countsOfTiles = new Map();
const MAX_COUNTED_TILES = 2000;

function counted(address) {
  return `${COUNTED}://${address}`;
}

addProtocol(COUNTED, async ({ url }, { signal }) => {
  const address = url.slice(COUNTED.length + 3);
  const answer = await fetch(address, { signal });
  if (!answer.ok) throw Object.assign(new Error(`The server answered ${answer.status}.`), { status: answer.status });
  const [z, x, y] = /\/(\d+)\/(\d+)\/(\d+)(?:\.\w+)?(?:\?|$)/.exec(address)?.slice(1).map(Number) ?? [];
  const count = (name, otherwise = 0) => Number(answer.headers.get(`Graticule-Features-${name}`) ?? otherwise);
  const isCounted = answer.headers.has("Graticule-Features-Shown");
  const total = count("Total", isCounted ? Infinity : 0); // left out where there are too many to be counted
  countsOfTiles.delete(`${z}/${x}/${y}`);
  countsOfTiles.set(`${z}/${x}/${y}`, { z, x, y, shown: count("Shown"), merged: count("Merged"), total });
  if (countsOfTiles.size > MAX_COUNTED_TILES) countsOfTiles.delete(countsOfTiles.keys().next().value);
  return { data: await answer.arrayBuffer() };
});

function tellCounts(map, { minzoom = 0, maxzoom = 22, feature_count: all = Infinity }) {
  const element = document.getElementById("counts");
  map.on("idle", () => {
    const zoom = Math.min(Math.max(Math.floor(map.getZoom()), minzoom), maxzoom);
    const tiles = [...countsOfTiles.values()].filter((tile) => tile.z === zoom && isInSight(tile, map.getBounds()));
    const sum = (name) => tiles.reduce((before, tile) => before + tile[name], 0);
    const [merged, total] = [sum("merged"), Math.min(sum("total"), all)]; // those on an edge are in two tiles
    const hidden = sum("total") - sum("shown") - merged;
    element.textContent = countText(Math.max(total - merged - hidden, 0), merged, hidden, total);
    element.hidden = merged + hidden === 0 || map.getZoom() < minzoom;
  });
}

function isInSight({ z, x, y }, bounds) {
  const size = 2 ** z;
  const row = (latitude) => (0.5 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / (2 * Math.PI)) * size;
  const [west, east] = [bounds.getWest(), bounds.getEast()].map((longitude) => (longitude / 360 + 0.5) * size);
  const worlds = Math.floor((east - x) / size) - Math.ceil((west - x - 1) / size) + 1; // that show it
  return worlds > 0 && row(bounds.getNorth()) < y + 1 && row(bounds.getSouth()) > y;
}

function countText(shown, merged, hidden, total) {
  const [one, two, three, four] = [shown, total, merged, hidden].map((count) => count.toLocaleString("en"));
  if (hidden === Infinity) return "Only some of the features in view are shown. Zoom in to see more.";
  const others = [
    merged && (merged === 1 ? "1 is merged into a shape" : `${three} are merged into shapes`),
    hidden && `${four} ${hidden === 1 ? "is" : "are"} not shown`,
  ].filter(Boolean);
  return `${one} of ${two} features in view are shown individually; ${others.join(", ")}. Zoom in to see more.`;
}

// How things stand

function watch(map) {
  let failed = false;
  map.on("movestart", () => {
    if (!failed) page.dataset.state = "loading";
  });
  map.on("idle", () => {
    if (!failed) page.dataset.state = "idle";
  });
  map.on("error", ({ error }) => {
    failed = true;
    fail(error);
  });
}

function fail(error) {
  const message = document.getElementById("message");
  message.textContent = `The map cannot be shown whole: ${error?.message ?? error}`;
  message.hidden = false;
  page.dataset.state = "error";
}
