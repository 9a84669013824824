"""The camera of a board: it sends photos with a question to the address that `initialize` gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from infra.local.iot.simulator.board_http import NoAnswer, post
from infra.local.iot.simulator.tools import SimulatedTool, SimulatedToolError, ToolArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.local.iot.simulator.board_http import Trace

TOOL_NAME: Final = "self.camera.take_photo"
_BOUNDARY: Final = "----ESP32_CAMERA_BOUNDARY"
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera that always sees the same."""

    photo: bytes
    address: str
    client_id: str
    seconds: float = 30.0
    """The time to wait for an answer."""
    trace: Trace = lambda _line: None

    def explain(self, vision: Mapping[str, Any], question: str) -> str:
        """Send the photo with a question. Return the body of the answer, or raise the tool's error."""
        url, token = vision.get("url"), vision.get("token")
        if not url:
            raise SimulatedToolError("Image explain URL or token is not set")
        headers = {"Device-Id": self.address, "Client-Id": self.client_id}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        headers["Content-Type"] = f"multipart/form-data; boundary={_BOUNDARY}"
        try:
            answer = post(str(url), headers, self._form(question), seconds=self.seconds, trace=self.trace)
        except NoAnswer:
            raise SimulatedToolError("Failed to connect to explain URL") from None
        if answer.status != _OK:
            raise SimulatedToolError("Failed to upload photo")
        return answer.body.decode(errors="replace")

    def tool(self, vision: Callable[[], Mapping[str, Any]]) -> SimulatedTool:
        """Return the tool that takes a photo; `vision` returns what the last `initialize` offered."""
        return SimulatedTool(
            TOOL_NAME,
            "Take a photo and explain it. The question is what to look for. Answers a JSON object.",
            lambda _state, arguments: self.explain(vision(), str(arguments["question"])),
            (ToolArgument("question", "string"),),
            blocks=True,
        )

    def _form(self, question: str) -> list[bytes]:
        """Return the form in the chunks of the firmware, which does not escape the question."""
        return [
            f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="question"\r\n\r\n{question}\r\n'.encode(),
            f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="camera.jpg"\r\n'
            "Content-Type: image/jpeg\r\n\r\n".encode(),
            self.photo,
            f"\r\n--{_BOUNDARY}--\r\n".encode(),
        ]
