"""`kho env`: the settings of functions in a container."""

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from infra.clients.cli.target import exit_with_error
from infra.local.container_settings import container_settings
from infra.local.data_folder import DEFAULT_DATA, DataFolderError, running_server
from infra.local.passed_socket import SCHEME
from infra.local.template import load


def env(*, output: Path = Path("env.json"), data: Path = DEFAULT_DATA) -> None:
    """Write the --env-vars file of 'sam local invoke' for the running 'kho serve'.

    Settings in this command's environment, such as KHO_QDRANT_URL, are passed on.

    Args:
        output: The file to write. Only you can read it: it contains the address of the store.
        data: The data folder of 'kho serve'.
    """
    try:
        server = running_server(data)
    except DataFolderError as error:
        exit_with_error(f"{error}. Choose another folder with --data.")
    if server is None:
        exit_with_error(f"No 'kho serve' is running on {data}. Start it, or choose its folder with --data.")
    if urlsplit(server["store_url"]).scheme == SCHEME:
        exit_with_error("No container reaches the store of this 'kho serve'. Start it with --store loopback.")
    settings = container_settings(
        load(),
        store_url=server["store_url"],
        mqtt_url=server["mqtt_url"],
        mqtt_token=server["mqtt_token"],
        data_plane_url=server["data_plane_url"],
    )
    try:
        output.touch(mode=0o600)
        output.write_text(json.dumps({"Parameters": settings}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        exit_with_error(f"{output} cannot be written: {error.strerror}. Choose another file with --output.")
    print(f"Wrote {output}.")
    if not os.environ.get("KHO_QDRANT_URL"):
        print("The embedded index belongs to the server alone: to try searches, set KHO_QDRANT_URL for both commands.")
