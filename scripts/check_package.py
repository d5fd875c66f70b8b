"""Check a built wheel and sdist: they hold what they must, and nothing else.

python scripts/check_package.py dist
"""

import sys
import tarfile
import zipfile
from pathlib import Path

IN_WHEEL = (
    "rewind/py.typed",
    "rewind/pricing/prices.jsonl",
    "rewind/gateway/hooks/python/sitecustomize.py",
    ".dist-info/licenses/LICENSE",
    ".dist-info/licenses/src/rewind/pricing/prices.LICENSE",
    ".dist-info/entry_points.txt",
)
IN_SDIST = (
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "Makefile",
    "requirements/constraints.txt",
    "tests/conftest.py",
)
NEVER = ("node_modules", "__pycache__", ".venv", ".agents", "shared/traffic")


def main(folder: Path) -> int:
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = archive.namelist()
    with tarfile.open(sdist) as archive:
        in_sdist = archive.getnames()
    faults = [f"{wheel.name} lacks {name}" for name in IN_WHEEL if not _holds(in_wheel, name)]
    faults += [f"{sdist.name} lacks {name}" for name in IN_SDIST if not _holds(in_sdist, name)]
    faults += [f"{wheel.name} holds {name}" for name in in_wheel if not name.startswith(("rewind/", "llm_rewind-"))]
    faults += [f"{name} is packed" for name in (*in_wheel, *in_sdist) if any(part in name for part in NEVER)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{wheel.name}: {len(in_wheel)} files · {sdist.name}: {len(in_sdist)} files")
    return bool(faults)


def _holds(names: list[str], wanted: str) -> bool:
    return any(name.endswith(wanted) for name in names)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
