"""The handshake and the tool lists of devices, each without the client of calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.devices.handshake import DeviceHello, Handshake
from shared.devices.registry import RegisteredDevice, devices_table
from shared.devices.rpc import RpcClient
from shared.devices.sessions import SessionStore
from shared.devices.tool_lists import ToolLists
from shared.rpc.errors import KhoError
from tests.helpers.clock import Clock
from tests.helpers.device_board import BoardTransport, DeviceBoard


@pytest.fixture
def device(tenant: str) -> RegisteredDevice:
    return RegisteredDevice("board", tenant, "", "direct", "")


@pytest.fixture
def board(device: RegisteredDevice) -> DeviceBoard:
    return DeviceBoard(device.id, Clock(), connected=True)


def rpc(board: DeviceBoard) -> RpcClient:
    return RpcClient(BoardTransport(board), board.clock)


def test_handshake_stores_a_session_and_its_tools_once(device: RegisteredDevice, board: DeviceBoard) -> None:
    """A second handshake on the connection sends nothing, and each change of a session is reported."""
    client = rpc(board)
    lists = ToolLists(devices_table(), client)
    changed: list[RegisteredDevice] = []
    handshake = Handshake(devices_table(), client, lists, lambda _: None, changed.append)
    handshake.start_session(device, board.clock() + 12)
    session = SessionStore(devices_table(), device.tenant_id, device.id).read().session
    assert session
    assert changed == [device]
    catalogue = lists.stored(device, session)
    assert catalogue
    assert len(catalogue.tools) == 3
    handshake.start_session(device, board.clock() + 12)
    assert list(board.builds) == [session.id]
    handshake.start_session(device, board.clock() + 12, DeviceHello("hello", session.started_at))
    renamed = SessionStore(devices_table(), device.tenant_id, device.id).read().session
    assert renamed == replace(session, id="hello")
    assert changed == [device, device]


def test_handshake_with_a_silent_device_leaves_no_claim(device: RegisteredDevice, board: DeviceBoard) -> None:
    board.connected = False
    handshake = Handshake(devices_table(), rpc(board), ToolLists(devices_table(), rpc(board)), lambda _: None)
    with pytest.raises(KhoError) as refusal:
        handshake.start_session(device, board.clock() + 12)
    assert refusal.value.code == "DEVICE_OFFLINE"
    assert SessionStore(devices_table(), device.tenant_id, device.id).claim("another", 1)


def test_tool_list_belongs_to_the_session_that_read_it(device: RegisteredDevice, board: DeviceBoard) -> None:
    """Every process finds the stored list, and none takes it for another session's."""
    lists = ToolLists(devices_table(), rpc(board))
    Handshake(devices_table(), rpc(board), lists, lambda _: None).start_session(device, board.clock() + 12)
    session = SessionStore(devices_table(), device.tenant_id, device.id).read().session
    assert session
    elsewhere = ToolLists(devices_table(), rpc(board))
    assert elsewhere.stored(device, session) == lists.stored(device, session)
    assert elsewhere.stored(device, replace(session, handshake="another")) is None
