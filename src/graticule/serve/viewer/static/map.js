// A map of one TileJSON document. The page names it, and the kind of its tiles, in attributes of #map.
// `data-state` of the page tells how things stand: loading, idle (all that is in sight is drawn) or error.

import { Map as MapLibre, NavigationControl, Popup, ScaleControl } from "./maplibre/maplibre-gl.mjs";

const COLOURS = {
  light: { background: "#eceff1", fill: "#1f6fb2", line: "#0d4474" },
  dark: { background: "#14181b", fill: "#5aa9e6", line: "#b9dcf7" },
};
const WORLD = [-180, -85, 180, 85];
const MOST_FEATURES_SHOWN = 10;

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
  if (kind === "vector") tellFeatures(map, layers.map((layer) => layer.id));
}

async function read(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  throw new Error(problem.detail ?? `The server answered ${answer.status}.`);
}

// What is drawn

function source(kind, tilejson, bounds) {
  const tiles = tilejson.tiles.map(onThisHost);
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
  return names.flatMap((name) => [
    vectorLayer(name, "fill", ["==", "$type", "Polygon"], { "fill-opacity": 0.45 }),
    vectorLayer(name, "line", ["in", "$type", "Polygon", "LineString"], { "line-width": 1.25 }),
    vectorLayer(name, "circle", ["==", "$type", "Point"], { "circle-radius": 5, "circle-stroke-width": 1.25 }),
  ]);
}

function vectorLayer(name, type, filter, paint) {
  return { id: `${name} ${type}`, type, source: "asset", "source-layer": name, filter, paint };
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
  const entries = Object.entries(properties);
  if (entries.length === 0) return textElement("p", "This feature has no properties.");
  const list = document.createElement("dl");
  for (const [name, value] of entries) list.append(textElement("dt", name), textElement("dd", String(value)));
  return list;
}

function textElement(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
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
