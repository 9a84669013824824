"""The page Devices: presence, tools as controls, answers in doubt, notifications, hostile devices, many devices."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from playwright.sync_api import expect

from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.flash import Flash
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE, Quirk
from infra.local.iot.simulator.stock_board import BoardTimes, StockBoard
from infra.local.iot.simulator.tools import SimulatedTool, ToolArgument, owner_tools, standard_tools
from tests.helpers.kho_server import KhoServer
from tests.helpers.size import sized
from tests.helpers.wait import CEILING_SECONDS, until
from tests.suites.browser.console_page import ConsolePage
from tests.suites.browser.held_calls import HeldCalls

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import BrowserContext

PROMPT: Final = BoardTimes(first_retry=0.0, poll=0.0, poll_retry=0.0, answer=CEILING_SECONDS)
MANY: Final = sized(150, full=1_000)
EVIL: Final = "<script>document.title='hit'</script><img src=x onerror=\"document.title='hit'\">\u202e\u0007"


def lamp(server: KhoServer) -> str:
    answer = server.call("device-server/devices/simulate")
    id_ = next(each["device_id"] for each in answer["devices"] if each["name"] == "Desk lamp")
    until(lambda: server.call("device-server/devices/get", device_id=id_)["connected"])
    return str(id_)


def status(server: KhoServer, id_: str) -> str:
    answer = server.call("device-server/tools/call", device_id=id_, name="self.get_device_status")
    return str(answer["content"][0]["text"])


def is_turned(server: KhoServer, *, on: bool) -> bool:
    return f'"on":{json.dumps(on)}' in status(server, lamp(server))


def fleet(server: KhoServer, ids: list[str], tools: list[SimulatedTool] | None = None, *quirks: Quirk) -> Fleet:
    return Fleet("127.0.0.1", server.mqtt_port, ids, DeviceModel(tools=tools, quirks=FIRMWARE | set(quirks)))


def test_lamp_is_switched_by_mouse(console: ConsolePage, server: KhoServer) -> None:
    """Three devices are connected by one click. Turning the lamp's switch calls its tool; its notification appears."""
    page = console.open("devices")
    page.get_by_role("button", name="Connect three simulated devices").click()
    page.get_by_role("link", name="Desk lamp").click()
    tool = page.get_by_role("form", name="lamp.set_power")
    for turned in (True, False, True):
        tool.get_by_role("switch").set_checked(turned)
        until(partial(is_turned, server, on=turned))
    tool.get_by_text("Done").wait_for()
    tool.get_by_role("button", name="Run").click()
    tool.get_by_text("Done").wait_for()
    assert '"on":true' in status(server, lamp(server))
    page.get_by_role("log").get_by_text("state_changed").first.wait_for()


def test_switch_is_turned_in_order(console: ConsolePage, server: KhoServer) -> None:
    """Of a switch that is turned twice quickly, the second call waits for the first, and the last position stays."""
    id_ = lamp(server)
    page = console.open(f"devices/{id_}")
    tool = page.get_by_role("form", name="lamp.set_power")
    held = HeldCalls(page, "tools/call")
    for turned in (True, False):
        tool.get_by_role("switch").set_checked(turned)
        until(lambda: held.waiting)
    assert held.waiting == 1
    held.release()
    until(lambda: '"on":true' in status(server, id_))
    held.release()
    tool.get_by_text("Done").wait_for()
    assert '"on":false' in status(server, id_)
    expect(tool.get_by_role("switch")).not_to_be_checked()


def test_switch_goes_back_if_the_device_did_not_take_it(console: ConsolePage, server: KhoServer) -> None:
    """A refused position is taken back. One of which it is not known whether it was taken stays."""
    page = console.open(f"devices/{lamp(server)}")
    tool = page.get_by_role("form", name="lamp.set_power")
    error = {"code": "OUT_OF_TIME", "message": "No reply.", "details": {"sent": False}}
    page.route("**/tools/call", lambda route: route.fulfill(status=504, json=error))
    tool.get_by_role("switch").click()
    tool.get_by_role("alert").wait_for()
    expect(tool.get_by_role("switch")).not_to_be_checked()
    error["details"] = {"sent": True}
    tool.get_by_role("switch").click()
    tool.locator(".doubt").wait_for()
    expect(tool.get_by_role("switch")).to_be_checked()


def test_lamp_is_dimmed_by_keyboard(console: ConsolePage, server: KhoServer) -> None:
    id_ = lamp(server)
    page = console.open(f"devices/{id_}")
    console.tab_to("slider", "Slider")
    page.keyboard.press("End")
    console.tab_to("button", "Run lamp.set_brightness")
    page.keyboard.press("Enter")
    page.get_by_role("form", name="lamp.set_brightness").get_by_text("Done").wait_for()
    assert '"brightness":100' in status(server, id_)


def test_choice_text_and_picture(console: ConsolePage, server: KhoServer) -> None:
    """A choice and a text are controls, and a picture is shown."""
    ids = {each["name"]: each["device_id"] for each in server.call("device-server/devices/simulate")["devices"]}
    until(lambda: server.call("device-server/devices/get", device_id=ids["Thermostat"])["connected"])
    page = console.open(f"devices/{ids['Thermostat']}")
    mode = page.get_by_role("form", name="thermostat.set_mode")
    mode.get_by_role("combobox").select_option(label="cool")
    mode.get_by_role("button").click()
    text = page.get_by_role("form", name="screen.show_text")
    text.get_by_role("textbox").fill("Guten Tag")
    text.get_by_role("button").click()
    for form in (mode, text):
        form.get_by_text("Done").wait_for()
    told = status(server, ids["Thermostat"])
    assert '"mode":"cool"' in told
    assert "Guten Tag" in told
    page = console.open(f"devices/{ids['Porch camera']}")
    page.get_by_role("button", name="Run camera.take_photo").click()
    photo = page.get_by_role("img", name="The picture that the device sent")
    photo.wait_for()
    until(lambda: photo.evaluate("each => each.complete && each.naturalWidth") == 240)


def test_restart_needs_the_typed_name(console: ConsolePage, server: KhoServer) -> None:
    page = console.open(f"devices/{lamp(server)}")
    page.get_by_role("button", name="Run reboot").click()
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Run", exact=True)
    assert confirm.is_disabled()
    dialog.get_by_role("textbox").fill("Desk lamp")
    confirm.click()
    page.get_by_text("The device restarted.").wait_for()


def test_update_needs_the_typed_name(console: ConsolePage, server: KhoServer) -> None:
    """An update of the firmware is confirmed by typing the device's name, by keyboard alone."""
    with fleet(server, ["updated"], [standard_tools()[0], *owner_tools()]) as running:
        running.start()
        until(lambda: server.call("device-server/devices/get", device_id="updated")["connected"])
        version = running["updated"].firmware.version
        page = console.open("devices/updated")
        console.tab_to("textbox", "url (required)")
        page.keyboard.press("Control+A")
        page.keyboard.type("https://files.example/updated.bin")
        console.tab_to("button", "Run upgrade_firmware")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        assert dialog.get_by_role("button", name="Run", exact=True).is_disabled()
        assert console.faults() == []
        console.tab_to("textbox", "Type updated to confirm")
        page.keyboard.type("updated")
        page.keyboard.press("Enter")
        page.get_by_role("form", name="upgrade_firmware").get_by_text("Done").wait_for()
        until(lambda: running["updated"].firmware.version != version)


def test_alert_reaches_the_device_and_loses_no_text(console: ConsolePage, server: KhoServer) -> None:
    """The text of an alert survives a reload; what is typed while it is sent stays."""
    with fleet(server, ["alerted"], []) as running:
        running.start()
        until(lambda: server.call("device-server/devices/get", device_id="alerted")["connected"])
        page = console.open("devices/alerted")
        console.tab_to("textbox", "Title")
        page.keyboard.type("Door")
        console.tab_to("textbox", "Text")
        page.keyboard.type("It rings")
        page.reload()
        text = page.get_by_label("Text", exact=True)
        expect(text).to_have_value("It rings")
        held = HeldCalls(page, "devices/alert")
        console.tab_to("textbox", "Text")
        page.keyboard.press("Enter")
        until(lambda: held.waiting)
        page.keyboard.press("End")
        page.keyboard.type(" again")
        held.release()
        page.get_by_text("The alert was sent.").wait_for()
        expect(text).to_have_value(" again")
        until(lambda: [(each.status, each.message) for each in running["alerted"].alerts] == [("Door", "It rings")])


def test_released_device_is_gone(console: ConsolePage, server: KhoServer) -> None:
    """A device is released once its name was typed, by keyboard alone."""
    with fleet(server, ["released"], []) as running:
        running.start()
        until(lambda: server.call("device-server/devices/get", device_id="released")["connected"])
    page = console.open("devices/released")
    console.tab_to("button", "Release the device")
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").get_by_role("button", name="Release the device").is_disabled()
    console.tab_to("textbox", "Type released to confirm")
    page.keyboard.type("released")
    page.keyboard.press("Enter")
    page.get_by_text("released was released.").wait_for()
    page.get_by_role("button", name="Claim a board").wait_for()
    assert "released" not in [each["device_id"] for each in server.call("device-server/devices/list")["devices"]]


def test_offline_device_shows_its_stored_tools(console: ConsolePage, server: KhoServer) -> None:
    """The tools of a device that is away are the stored ones, and the page says so until it is back."""
    tools = [each for each in standard_tools() if each.name == "self.get_device_status"]
    with fleet(server, ["away"], tools) as running:
        running.start()
        until(lambda: server.call("device-server/devices/get", device_id="away")["connected"])
        server.call("device-server/tools/list", device_id="away")
    until(lambda: not server.call("device-server/devices/get", device_id="away")["connected"])
    page = console.open("devices/away")
    page.get_by_text("This is the list that was stored").wait_for()
    page.get_by_role("form", name="get_device_status").wait_for()
    with fleet(server, ["away"], tools) as running:
        running.start()
        expect(page.get_by_text("This is the list that was stored")).to_have_count(0)


def test_older_notifications_load_page_by_page(console: ConsolePage, server: KhoServer) -> None:
    """Notifications beyond the first page load at the end of the list, and new ones still come."""
    with fleet(server, ["talkative"], []) as running:
        running.start()
        until(lambda: server.call("device-server/devices/get", device_id="talkative")["connected"])
        device = running["talkative"]
        for number in range(45):
            running.do(partial(device.notify, "notifications/counted", number=number))
        listed = "device-server/notifications/list"
        until(lambda: len(server.call(listed, device_id="talkative")["notifications"]) == 45)
        page = console.open("devices/talkative")
        log = page.get_by_role("log")
        shown = log.get_by_role("listitem")
        for count in (40, 45):
            until(lambda: log.evaluate("each => (each.scrollTop = each.scrollHeight)") and shown.count() >= count)  # noqa: B023
        running.do(lambda: device.notify("notifications/counted", number=45))
        expect(shown).to_have_count(46)
        expect(shown.first).to_contain_text("45")
        expect(shown.last).to_contain_text("0")


def test_new_devices_appear_in_the_list(context: BrowserContext, tmp_path: Path) -> None:
    """A list without devices shows those that appear later, and then further ones."""
    with KhoServer(tmp_path / "data") as server:
        console = ConsolePage(context, server.address)
        page = console.open("devices")
        page.get_by_text("There is no device yet.").wait_for()
        for id_ in ("first", "another"):
            with fleet(server, [id_], []) as running:
                running.start()
                page.get_by_role("link", name=id_).wait_for()
        assert (console.foreign, console.problems) == ([], [])


def test_device_page_gets_the_focus(console: ConsolePage, server: KhoServer) -> None:
    """After a link of the list, the keyboard goes on from the device's page, not from the top of the window."""
    lamp(server)
    page = console.open("devices")
    console.tab_to("link", "Desk lamp")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Desk lamp").wait_for()
    expect(page.get_by_role("main")).to_be_focused()


def test_doubt_looks_unlike_failure(console: ConsolePage, server: KhoServer) -> None:
    """A call that may have happened looks different from one that failed."""
    tools = [each for each in standard_tools() if each.name in ("self.get_device_status", "self.test.fail")]
    for id_, quirk in (("doubtful", Quirk.VANISH), ("failing", Quirk.SUBSCRIBES)):
        with fleet(server, [id_], tools, quirk) as running:
            running.start()
            until(lambda: server.call("device-server/devices/get", device_id=id_)["connected"])  # noqa: B023
            page = console.open(f"devices/{id_}")
            if id_ == "doubtful":
                page.get_by_role("button", name="Run get_device_status").click()
                page.locator(".doubt").get_by_text("It is not known whether it happened.").wait_for()
                assert page.locator(".error-box").count() == 0
            else:
                page.get_by_role("button", name="Run test.fail").click()
                page.locator(".error-box").first.wait_for()
                assert page.locator(".doubt").count() == 0


def test_hostile_device_does_nothing(console: ConsolePage, server: KhoServer) -> None:
    """Names, descriptions, schemas and answers of a device are text."""
    argument = ToolArgument("a" + EVIL, "string", default=EVIL)
    tools = [SimulatedTool("self.evil", EVIL, lambda *_: EVIL, (argument,))]
    with fleet(server, ["hostile"], tools) as running:
        running.start()
        until(lambda: server.call("device-server/devices/get", device_id="hostile")["connected"])
        running.do(lambda: running["hostile"].notify("notifications/" + EVIL, text=EVIL))
        page = console.open("devices/hostile")
        page.get_by_role("button", name="Run evil").click()
        page.get_by_text("Done").wait_for()
        page.get_by_role("log").get_by_text("<script>").first.wait_for()
        assert page.locator("main script, main img").count() == 0
        assert "\u202e" not in page.locator("main").inner_text()
        assert page.title() == "Devices · Kho"


class WrongDefault(ToolArgument):
    """An argument whose schema contradicts itself."""

    def schema(self) -> dict[str, Any]:
        """Return a list of texts with a text as its default."""
        return {"type": "array", "items": {"type": "string"}, "default": self.default}


def test_schema_that_contradicts_itself_leaves_a_form(console: ConsolePage, server: KhoServer) -> None:
    """A default of another type is left out, and a property may have the name of one that all objects have."""
    arguments = (WrongDefault("lines", "array", default="x"), WrongDefault("constructor", "array", default="x"))
    tools = [SimulatedTool("self.contradict", "Contradict.", lambda *_: "done", arguments)]
    with fleet(server, ["contradicting"], tools) as running:
        running.start()
        until(lambda: server.call("device-server/devices/get", device_id="contradicting")["connected"])
        page = console.open("devices/contradicting")
        for name in ("lines", "constructor"):
            expect(page.get_by_role("textbox", name=name)).to_have_value("")


def test_fifty_one_tools_are_filtered(console: ConsolePage, server: KhoServer) -> None:
    with fleet(server, ["w" * 100]) as running:
        running.start()
        until(lambda: server.call("device-server/devices/get", device_id="w" * 100)["connected"])
        page = console.open("devices/" + "w" * 100)
        page.get_by_text("53 tools").wait_for()
        assert page.locator("details.tool[open]").count() == 0
        assert console.faults() == []
        page.get_by_label("Filter the tools").fill("relay_17")
        page.get_by_text("1 tool", exact=True).wait_for()
        page.locator("details.tool summary").click()
        page.get_by_role("form", name="relay_17.set").get_by_role("switch").first.wait_for()


@pytest.mark.stress
def test_many_devices_load_page_by_page(console: ConsolePage, server: KhoServer) -> None:
    """A list of a thousand devices loads page by page, to its last device."""
    ids = [f"many-{number:04}" for number in range(MANY)]
    with fleet(server, ids, []) as running:
        running.start()
        page = console.open("devices")
        until(lambda: page.locator(".device-card").count() >= 100)

        def is_at_the_end() -> bool:
            page.mouse.wheel(0, 200_000)
            page.keyboard.press("End")
            return bool(page.get_by_role("link", name=ids[-1]).count())

        until(is_at_the_end)


def test_code_that_no_board_shows_is_refused(console: ConsolePage) -> None:
    page = console.open("devices")
    page.get_by_role("button", name="Claim a board").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Code").fill("000000")
    dialog.get_by_label("Name").fill("Kitchen")
    dialog.get_by_role("button", name="Claim", exact=True).click()
    dialog.get_by_text("No board shows this code.").wait_for()


def test_board_is_claimed_by_the_code_that_it_shows(console: ConsolePage, server: KhoServer, tmp_path: Path) -> None:
    """A stock board shows a code; it belongs to the tenant once the code was entered, by keyboard alone."""
    board = StockBoard(Flash(tmp_path / "flash"), f"{server.address}/ota/", times=PROMPT)
    activation = board.check_in()
    assert activation
    page = console.open("devices")
    console.tab_to("button", "Claim a board")
    page.keyboard.press("Enter")
    for name, text in (("Code", activation.code), ("Name", "Kitchen shelf")):
        console.tab_to("textbox", name)
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Kitchen shelf").wait_for()
    page.get_by_text("Kitchen shelf is yours.").wait_for()
    assert board.check_in() is None
    assert server.call("device-server/devices/get", device_id=page.url.rsplit("/", 1)[1])["name"] == "Kitchen shelf"


def test_operator_sets_firmware_and_stops_it(console: ConsolePage, server: KhoServer) -> None:
    """Firmware of a kind of board is set, refused at a wrong address, and stopped."""
    page = console.open("devices")
    page.get_by_text("For operators").click()
    section = page.get_by_role("region", name="Firmware")
    section.get_by_text("No firmware is set.").wait_for()
    for name, text in (
        ("Kind of board", "shelf-board"),
        ("Version", "2.4.3"),
        ("Address of the image", "http://x.example/a"),
    ):
        section.get_by_label(name).fill(text)
    section.get_by_role("button", name="Set firmware").click()
    section.get_by_role("alert").wait_for()
    assert server.call("device-server/firmware/list")["firmware"] == []
    section.get_by_label("Address of the image").fill("https://files.example/shelf-2.4.3.bin")
    section.get_by_role("button", name="Set firmware").click()
    section.get_by_text("shelf-board 2.4.3").wait_for()
    assert [each["board"] for each in server.call("device-server/firmware/list")["firmware"]] == ["shelf-board"]
    assert console.faults() == []
    section.get_by_role("button", name="Stop shelf-board").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    section.get_by_text("No firmware is set.").wait_for()
    assert server.call("device-server/firmware/list")["firmware"] == []


def test_operator_sets_a_webhook_and_removes_it(console: ConsolePage, server: KhoServer) -> None:
    """A webhook is refused at an address that is not public; its secret is shown once; it is removed."""
    page = console.open("devices")
    page.get_by_text("For operators").click()
    section = page.get_by_role("region", name="Webhook")
    section.get_by_label("Address").fill("https://127.0.0.1/kho")
    section.get_by_role("button", name="Set webhook").click()
    section.get_by_role("alert").wait_for()
    section.get_by_label("Address").fill("https://hooks.invalid/kho")
    section.get_by_label("presence").uncheck()
    section.get_by_role("button", name="Set webhook").click()
    section.get_by_text("whsec_").wait_for()
    stored = server.call("device-server/webhooks/get")
    assert (stored["url"], stored["events"]) == ("https://hooks.invalid/kho", ["notification", "firmware"])
    assert console.faults() == []
    page.reload()
    page.get_by_text("For operators").click()
    section.get_by_text("https://hooks.invalid/kho").wait_for()
    assert section.get_by_text("whsec_").count() == 0
    section.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    section.get_by_text("No address is set.").wait_for()
    assert "url" not in server.call("device-server/webhooks/get")


def test_pages_are_accessible_with_content(console: ConsolePage, server: KhoServer) -> None:
    for address in (f"devices/{lamp(server)}", "devices"):
        console.open(address).locator("main .card, main .tool").first.wait_for()
        assert console.faults() == [], address
