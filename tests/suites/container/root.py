"""A clean root of Debian, and processes in it as a container runs them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.prepare import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.suites.container.dockerfile import Image

_MIRROR: Final = "http://deb.debian.org/debian"
_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"
_MOUNTS: Final = """
mount --bind {root} {root}
mount -t proc proc {root}/proc
mount --rbind /dev {root}/dev
mount -t tmpfs tmpfs {root}/tmp
"""
_VOLUME: Final = """
mount --bind {volume} {root}/{target}
mount -o remount,bind,ro {root}
"""


class Root:
    """The file system of an image."""

    def __init__(self, folder: Path, image: Image) -> None:
        self._folder = folder
        self._image = image
        suite = image.base.partition("@")[0].removeprefix("debian:").removesuffix("-slim")
        command = ["debootstrap", "--variant=minbase", suite, str(folder), _MIRROR]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def build(self, stages: Mapping[str, Mapping[str, Path]]) -> None:
        """Run the instructions that copy and run. `stages` has the files of the stages before by their folder."""
        for stage, sources, target in self._image.copies:
            folder = self._folder / target.strip("/")
            folder.mkdir(exist_ok=True)
            for source in sources:
                origin = stages[stage][source] if stage else ROOT / source
                for file in [origin] if origin.is_file() else origin.iterdir():
                    shutil.copy(file, folder)
        shutil.copy("/etc/resolv.conf", self._folder / "etc" / "resolv.conf")
        environment = {"PATH": _PATH, "HOME": "/root"}
        if _CERTIFICATES.is_file():  # those of a proxy too, which this machine may trust
            shutil.copy(_CERTIFICATES, self._folder / "etc" / "machine.crt")
            names = ("PIP_CERT", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
            environment |= dict.fromkeys(names, "/etc/machine.crt")
        for run in self._image.runs:
            script = _MOUNTS.format(root=self._folder) + self._chroot(environment, ["sh", "-c", run])
            process = subprocess.run(
                ["unshare", "--mount", "sh", "-ec", script], check=False, capture_output=True, text=True
            )
            assert process.returncode == 0, process.stdout[-4000:] + process.stderr[-4000:]

    def command(self, words: Sequence[str], volume: Path, settings: Mapping[str, str]) -> list[str]:
        """Return the command that runs `words` as a container: read-only, as its user, with a volume and /tmp."""
        image = self._image
        user, _, group = image.user.partition(":")
        drop = ["setpriv", "--reuid", user, "--regid", group, "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
        mounts = _MOUNTS + _VOLUME
        script = mounts.format(root=self._folder, volume=volume, target=image.volume.strip("/"))
        inside = [*drop, "--inh-caps=-all", "env", "-C", image.folder, *words]
        return ["unshare", "--mount", "sh", "-ec", script + self._chroot({**image.environment, **settings}, inside)]

    def _chroot(self, environment: Mapping[str, str], words: Sequence[str]) -> str:
        variables = [f"{name}={value}" for name, value in environment.items()]
        return "exec " + shlex.join(["chroot", str(self._folder), "/usr/bin/env", "-i", *variables, *words])

    def make_volume(self, folder: Path) -> None:
        """Create a volume with the owner and the mode that the image gives its folder."""
        original = (self._folder / self._image.volume.strip("/")).stat()
        folder.mkdir(mode=original.st_mode & 0o777)
        os.chown(folder, original.st_uid, original.st_gid)
