from tests.cli.conftest import command  # noqa: F401  a fixture
