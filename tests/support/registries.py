"""Registries of JavaScript and of Rust on the loopback: what their clients ask of them, over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Registry:
    """What lies at each path, and what was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def add_to_npm(self, name: str, version: str, archive: bytes) -> None:
        """Offer a package with this one version; a scope's slash is asked for as %2f."""
        place = f"/files/{name}-{version}.tgz"
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
        manifest = {"name": name, "version": version, "dist": {"tarball": self.url + place, "integrity": integrity}}
        page = {"name": name, "dist-tags": {"latest": version}, "versions": {version: manifest}}
        self.files |= {place: archive, "/" + name.replace("/", "%2f"): json.dumps(page).encode()}

    def add_to_crates(self, name: str, version: str, archive: bytes) -> None:
        """Offer a crate with this one version; its name has more than three letters."""
        digest = hashlib.sha256(archive).hexdigest()
        line = {"name": name, "vers": version, "deps": [], "features": {}, "cksum": digest, "yanked": False}
        self.files |= {
            "/config.json": json.dumps({"dl": f"{self.url}/files"}).encode(),
            f"/{name[:2]}/{name[2:4]}/{name}": json.dumps(line).encode(),
            f"/files/{name}/{version}/download": archive,
        }


@contextmanager
def running_registry() -> Iterator[Registry]:
    """Serve until the block ends."""
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            body = registry.files.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Tests read `asked` instead."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        registry.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield registry
        finally:
            server.shutdown()


def tar_gz(files: dict[str, str]) -> bytes:
    """An archive of texts."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return archive.getvalue()
