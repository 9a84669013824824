"""The commands of `kho devices`."""

from typing import Final

from cyclopts import App

from infra.clients.cli.devices.alert import alert
from infra.clients.cli.devices.call import call, list_, watch
from infra.clients.cli.devices.claim import claim, release
from infra.clients.cli.devices.firmware import firmware
from infra.clients.cli.devices.register import register, revoke, rotate
from infra.clients.cli.devices.simulate import simulate
from infra.clients.cli.devices.webhook import webhook

devices: Final = App(name="devices", help="Devices: ESP32 boards whose tools agents call.")
for each in (claim, release, alert, register, revoke, rotate, call, watch, simulate):
    devices.command(each)
devices.command(list_, name="list")
devices.command(firmware)
devices.command(webhook)
