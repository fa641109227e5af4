"""What this host trusts beyond its distribution, so that guests can work behind the same intercepting proxy.

Read-only: this file looks at the host's certificate bundles and returns values.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterable
from pathlib import Path

BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # SUSE
)
BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS")
DISTRIBUTED = Path("/usr/share/ca-certificates")
"""Where Debian keeps what it ships, apart from what the administrator added."""

GUEST_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
GUEST_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "JULIA_SSL_CA_ROOTS_PATH",
)
"""For tools that bring their own bundle and would not look at the system's."""

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def additions() -> tuple[bytes, ...]:
    """The certificates (PEM, sorted) in this host's bundles that are not the distribution's own; often none."""
    bundles = {*BUNDLES, *filter(None, map(os.environ.get, BUNDLE_VARIABLES))}
    return beyond(_certificates(map(Path, sorted(bundles))), _certificates(_distributed()))


def beyond(trusted: Iterable[bytes], distributed: Iterable[bytes]) -> tuple[bytes, ...]:
    """The certificates of `trusted` that are not in `distributed`, in one canonical form and order."""
    known = {_der(pem) for pem in distributed}
    extra = {_der(pem) for pem in trusted} - known
    return tuple(ssl.DER_cert_to_PEM_cert(der).encode() for der in sorted(extra))


def environment() -> str:
    """Lines for the guest's `/etc/environment` that lead every tool to the system's bundle."""
    return "".join(f"{name}={GUEST_BUNDLE}\n" for name in GUEST_VARIABLES)


def _distributed() -> Iterable[Path]:
    if DISTRIBUTED.is_dir():
        return DISTRIBUTED.rglob("*.crt")
    import certifi

    return [Path(certifi.where())]


def _certificates(files: Iterable[Path]) -> list[bytes]:
    return [pem for file in files if file.is_file() for pem in _PEM.findall(file.read_bytes())]


def _der(pem: bytes) -> bytes:
    return ssl.PEM_cert_to_DER_cert(pem.decode("ascii"))
