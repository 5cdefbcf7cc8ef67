"""A host that a partner must not reach through us."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Host(ThreadingHTTPServer):
    """It notes who comes."""

    def __init__(self) -> None:
        self.visits: list[str] = []
        super().__init__(("127.0.0.1", 0), Visit)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/secret.geojson"


class Visit(BaseHTTPRequestHandler):
    server: Host

    def do_GET(self) -> None:
        self.server.visits.append(self.path)
        self.send_error(404)

    do_HEAD = do_GET  # noqa: N815 - the name that the server looks for

    def log_message(self, *_: object) -> None:
        pass
