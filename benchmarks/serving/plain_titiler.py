"""Plain TiTiler: its own factory, and nothing else. Run by uvicorn."""

from fastapi import FastAPI
from titiler.core.factory import TilerFactory

app = FastAPI()
app.include_router(TilerFactory().router)
