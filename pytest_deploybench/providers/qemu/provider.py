"""The `qemu` provider: local virtual machines, restored from a saved state, one keeper process each."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from pytest_deploybench.model import (
    Address,
    Capacity,
    Lease,
    MachineFacts,
    MachineRequest,
    MachineSize,
    MachineState,
    ProviderOptions,
)
from pytest_deploybench.ports import Progress
from pytest_deploybench.providers.qemu import acceleration, guest, identity, image, kept, network, template
from pytest_deploybench.providers.qemu.guest import Guest, Hardware
from pytest_deploybench.providers.qemu.template import Template

_SSH_WITHIN_S = 120.0


class QemuProvider:
    """Makes machines on this host."""

    def __init__(self, options: ProviderOptions, progress: Progress) -> None:
        from platformdirs import user_cache_path, user_state_path

        self._options, self._progress = options, progress
        self._cache = user_cache_path("pytest-deploybench")
        self._machines = user_state_path("pytest-deploybench") / "qemu"
        self._guests: dict[str, Guest] = {}
        self._templates: dict[MachineSize, tuple[Hardware, Template]] = {}
        self._lock = threading.Lock()

    def create(self, request: MachineRequest) -> Lease:
        hardware, saved = self._template(request.size)
        who = identity.fresh(request.machine_id)
        lifetime_s = request.lifetime_s * saved.speed_factor
        folder = self._machines / request.machine_id
        machine = template.awaken(
            saved, hardware, folder, lambda: identity.script(who), lifetime_s=lifetime_s, purpose=request.purpose
        )
        try:
            machine.await_ssh(_SSH_WITHIN_S)
        except BaseException:
            machine.end()
            raise
        machine.close()
        self._guests[request.machine_id] = machine
        address = Address(network.LOOPBACK, machine.ssh_port, identity.USER, who.login_key.private, who.host_key.public)
        return Lease(request.machine_id, address, self._facts(hardware, saved))

    def destroy(self, machine_id: str) -> None:
        machine = self._guests.pop(machine_id, None)
        if machine is not None:
            machine.keeper.let_go()
        kept.end(self._machines / machine_id)

    def _template(self, size: MachineSize) -> tuple[Hardware, Template]:
        with self._lock:
            if size not in self._templates:
                base = image.build(self._cache, self._progress)
                hardware = Hardware(base, size, acceleration.probe(self._cache, self._progress))
                self._templates[size] = hardware, template.ensure(hardware, self._cache, self._machines, self._progress)
            return self._templates[size]

    @staticmethod
    def _facts(hardware: Hardware, saved: Template) -> MachineFacts:
        accel = hardware.acceleration
        return MachineFacts("qemu", hardware.image.digest, accel.name, saved.speed_factor, accel.reason)
