"""The `kho` command."""

from typing import Any, Final

from cyclopts import App

from infra.clients.cli.option_environment import OPTION_ENVIRONMENT
from shared.platform.version import VERSION


class LazyApp(App):
    """An app that imports a command when it is run, and all of them for its help, which shows their descriptions."""

    def help_print(self, *arguments: Any, **options: Any) -> None:
        """Print the help page."""
        self.resolved_commands()
        super().help_print(*arguments, **options)


app: Final = LazyApp(
    version=VERSION,
    name="kho",
    help="A backend for AI agents: documents, memory, experiences, knowledge and devices.",
    config=OPTION_ENVIRONMENT,
)
app.command("infra.clients.cli.keys:keys", name="keys")
app.command("infra.clients.cli.grants:grants", name="grants")
app.command("infra.clients.cli.devices.app:devices", name="devices")
app.command("infra.clients.cli.doctor.command:doctor", name="doctor")
app.command("infra.clients.cli.memory:memory", name="memory")
app.command("infra.clients.cli.tenants:tenant", name="tenant")
app.command("infra.clients.cli.reindex:reindex", name="reindex")
app.command("infra.clients.cli.migrate:migrate", name="migrate")
app.command("infra.clients.cli.qdrant:qdrant", name="qdrant")
app.command("infra.clients.cli.serve:serve", name="serve")
app.command("infra.clients.cli.mcp:mcp", name="mcp")
app.command("infra.clients.cli.hook:hook", name="hook")
app.command("infra.clients.cli.env:env", name="env")
app.command("infra.clients.cli.prepare:prepare", name="prepare")
app.command("infra.clients.cli.generate:generate", name="generate")


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
