"""A Python package index on the loopback, over real HTTP, that can be told to misbehave."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Index:
    """Files by project and name, and what was asked for."""

    url: str = ""
    projects: dict[str, dict[str, bytes]] = field(default_factory=dict)
    html: bool = False
    """Answer in the older of the two forms."""
    asked: list[str] = field(default_factory=list)
    before_half: Callable[[int], None] | None = None
    """Called with the number of the download, from 1, when half of the file was sent; raising cuts the connection."""

    def downloads(self) -> int:
        return sum(path.startswith("/files/") for path in self.asked)


@contextmanager
def running_index() -> Iterator[Index]:
    """Serve until the block ends; `url` is what pip's `index-url` would be."""
    index = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(self.path)
            _, kind, project, *rest = self.path.split("/")
            files = index.projects.get(project)
            if files is None:
                self.send_error(404)
            elif kind == "simple":
                self._answer(*_page(project, files, index.html))
            else:
                self._answer("application/octet-stream", files[rest[0]])

        def _answer(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if index.before_half and self.path.startswith("/files/"):
                try:
                    index.before_half(index.downloads())
                except ConnectionError:
                    return
            self.wfile.write(body[len(body) // 2 :])

        def log_message(self, *_: object) -> None:
            """Tests read `asked` instead."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        index.url = f"http://127.0.0.1:{server.server_port}/simple/"
        try:
            yield index
        finally:
            server.shutdown()


def _page(project: str, files: dict[str, bytes], html: bool) -> tuple[str, bytes]:
    if html:
        links = "".join(f'<a href="/files/{project}/{name}">{name}</a>' for name in files)
        return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
    listed = [
        {"filename": name, "url": f"/files/{project}/{name}", "hashes": {"sha256": hashlib.sha256(data).hexdigest()}}
        for name, data in files.items()
    ]
    page = {"meta": {"api-version": "1.0"}, "name": project, "files": listed}
    return "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()
