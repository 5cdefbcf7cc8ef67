"""Pages for people who look at a document of tiles with a browser: the document itself, and nothing from elsewhere."""

from typing import Any, Final

import jinja2
import orjson
from pydantic import BaseModel
from starlette.templating import Jinja2Templates

from graticule.core import json_codec

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ template.title }}</title></head>
<body><h1>{{ template.title }}</h1><pre>{{ response | document }}</pre></body></html>
"""
_NAMES: Final = ("tileset.html", "tilematrixsets.html", "tilematrixset.html")


def _document(value: Any) -> str:
    plain = value.model_dump(mode="json", exclude_none=True) if isinstance(value, BaseModel) else value
    return json_codec.encode(plain, option=orjson.OPT_INDENT_2).decode()


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(autoescape=True, loader=jinja2.DictLoader(dict.fromkeys(_NAMES, _PAGE)))
    environment.filters["document"] = _document
    return environment


PAGES: Final = Jinja2Templates(env=_environment())
