"""A store prepared, and what can be recorded on this machine."""

import os
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.gateway.clients import NEVER_RECORDED, ClientCheck, check_clients
from rewind.providers.hosts import LLM_HOSTS, HostRules
from rewind.providers.outside import outside_hosts
from rewind.settings import PROJECT_FOLDER, Settings
from rewind.store.files import prepare_home


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A prepared store, and the clients of this machine."""

    settings: Settings
    clients: tuple[ClientCheck, ...]
    certificate: Path | None
    """Of the lasting certificate authority, where one was asked for."""
    never_recorded: tuple[str, ...] = NEVER_RECORDED
    """What no gateway can record, whatever is installed."""


def make_project_store(folder: Path) -> Path:
    """The store of that project."""
    home = folder / PROJECT_FOLDER
    prepare_home(home)
    ignore = home / ".gitignore"
    if not ignore.exists():
        # Sessions hold prompts and answers; they are shared on purpose or not at all.
        ignore.write_text("*\n")
    return home


def set_up(settings: Settings, *, with_ca: bool = False) -> Setup:
    """Prepare the store of these settings; calling it again does no harm."""
    prepare_home(settings.home)
    return Setup(
        settings=settings, clients=check_clients(os.environ), certificate=_make_authority(settings) if with_ca else None
    )


def _make_authority(settings: Settings) -> Path:
    # Lazily: certificates need a library that takes long to load, and only --ca makes one.
    from rewind.gateway.certificates import create_persistent, persistent_certificate

    create_persistent(settings.home, HostRules((*LLM_HOSTS, *outside_hosts(), *settings.hosts), settings.all_hosts))
    return persistent_certificate(settings.home)
