"""A guest gets what this host trusts beyond its distribution, and nothing where that is nothing."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from pytest_deploybench.providers.local import trust


def _pem(content: bytes, *, width: int = 64) -> bytes:
    """A certificate as far as this room looks into one: base64 between two lines."""
    text = base64.b64encode(content).decode()
    lines = "\n".join(text[start : start + width] for start in range(0, len(text), width))
    return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n".encode()


OWN, DISTRIBUTED, PROXY = (_pem(name * 40) for name in (b"own", b"distributed", b"proxy"))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in trust.BUNDLE_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    shipped = tmp_path / "shipped" / "mozilla"
    shipped.mkdir(parents=True)
    (shipped / "one.crt").write_bytes(DISTRIBUTED)
    bundle = tmp_path / "bundle.crt"
    bundle.write_bytes(DISTRIBUTED)
    monkeypatch.setattr(trust, "BUNDLES", (str(bundle), str(tmp_path / "another distribution's bundle")))
    monkeypatch.setattr(trust, "DISTRIBUTED", shipped.parent)
    return bundle


@pytest.mark.usefixtures("host")
def test_an_ordinary_host_adds_nothing() -> None:
    assert trust.additions() == ()


def test_what_the_administrator_added_is_found(host: Path) -> None:
    host.write_bytes(b"# a comment\n" + DISTRIBUTED + OWN)
    assert trust.additions() == (OWN,)


def test_a_bundle_named_by_a_variable_counts(host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host.write_bytes(OWN)
    (tmp_path / "proxy.pem").write_bytes(PROXY)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "proxy.pem"))
    assert set(trust.additions()) == {OWN, PROXY}


def test_the_same_certificate_in_another_form_is_the_same() -> None:
    assert trust.beyond([_pem(b"own" * 40, width=76), OWN], []) == (OWN,)


def test_without_a_folder_of_shipped_certificates_mozillas_are_the_known_ones(
    host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import certifi

    monkeypatch.setattr(trust, "DISTRIBUTED", tmp_path / "no such folder")
    host.write_bytes(Path(certifi.where()).read_bytes() + OWN)
    assert trust.additions() == (OWN,)


def test_every_variable_leads_to_the_bundle_of_the_system() -> None:
    lines = trust.environment().splitlines()
    assert len(lines) == len(trust.GUEST_VARIABLES)
    assert {line.partition("=")[2] for line in lines} == {trust.GUEST_BUNDLE}
    assert os.path.isabs(trust.GUEST_BUNDLE)  # noqa: PTH117 - a path of the guest, not of this host
