"""A command: the flags that it takes, its help, and how its flags become a request."""

import enum
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Annotated, Any

import typer

from ..errors import ConfigError
from ..jobs.services import SERVICES, job_of
from ..options import Layer, Option
from ..runs.flag import Flag, flags_of
from ..runs.request import Request
from .flags import COMMON, Flags
from .reading import ACTIONS, READERS, Given
from .service import Load, options, run_service


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command of the program."""

    name: str
    help: str
    service: str
    """The service whose request it makes; `schedule` has a flag for another one."""
    place: str = "base_path"
    """The flag that says what it works on."""
    takes: tuple[str, ...] = ()
    """Its own flags in the order of the help, by the names of fields of the request or of `Flags`."""
    helps: Mapping[str, str]
    """The help of flags that says more in this command; of `dry_run` and `apply` in each one."""
    hidden: Collection[str] = ()
    """Flags that it accepts without listing them: they have no meaning here."""
    acts: bool = True
    """Whether it changes the table when neither --dry-run nor --apply is given."""
    switch: str = "dry_run"
    """The field of the request that says whether the run may change the table; "" where none does."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that the name of the command gives."""
    keys: Mapping[str, Option[Any]] = field(default_factory=dict)
    """Options that get the value of a common flag, too."""

    @property
    def request(self) -> type[Request]:
        return SERVICES[self.service].request

    def function(self) -> Callable[..., int]:
        """What Typer reads: a function with one parameter for each flag, which runs the command."""

        def run(**values: Any) -> int:
            return self.run(values)

        parameters = [self._parameter(name) for name in (self.place, *self.takes, *COMMON)]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    def run(self, values: Mapping[str, Any]) -> int:
        """Do what the flags say, print the report, and give the exit code."""
        of_request = flags_of(self.request)
        of_flags = {name: value for name, value in values.items() if name not in of_request}
        flags = Flags(**{"base_path": values[self.place], **of_flags})
        given = {**self.fixed, **{name: value for name, value in values.items() if name in of_request}}
        service = flags.planned.value if "planned" in self.takes else self.service
        action = ACTIONS[service](flags, given) if service in ACTIONS else service
        place = flags_of(Flags)[self.place]
        names = (*place.names, place.metavar or "")
        return run_service(flags, (service, action), names[0], lambda: self._read(flags, given, service))

    def _read(self, flags: Flags, given: Given, service: str) -> tuple[Request, Load]:
        """The request, and what loads its job.

        Raises ConfigError for flags that exclude each other, and for a value, a file or a key=value that is wrong.
        """
        changes = self._changes(flags)
        given = {
            **given,
            "base_path": flags.base_path,
            "table_name": flags.table_name,
            "options": options(flags, *self._layers(flags)),
            self.switch: not changes if self.switch == "dry_run" else changes,
        }
        read, kind = READERS.get(service), SERVICES[service].request
        found = read(flags, given) if read is not None else given
        request = kind(**{one.name: found[one.name] for one in fields(kind) if one.name in found})
        return request, partial(job_of, request)

    def _changes(self, flags: Flags) -> bool:
        """Whether the run may change the table, by the one `RULE`."""
        if flags.dry_run and flags.apply:
            raise ConfigError(
                "--dry-run and --apply exclude each other",
                hint="--dry-run changes nothing, --apply does the work: give one of them",
            )
        return flags.apply or (self.acts and not flags.dry_run)

    def _layers(self, flags: Flags) -> list[Layer]:
        """The options that the command's flags give, the layer of each flag named after it."""
        named = flags_of(Flags)
        keys = {name: named[name].keys for name in (*self.takes, *COMMON) if name in named and named[name].keys}
        keys |= {name: (option,) for name, option in self.keys.items()}
        values = {name: getattr(flags, name) for name in keys}
        return [
            (named[name].names[0], {option.key: _text(values[name]) for option in chosen})
            for name, chosen in keys.items()
            if values[name] is not None
        ]

    def _parameter(self, name: str) -> inspect.Parameter:
        kind = self.request if name in flags_of(self.request) else Flags
        found: Flag = flags_of(kind)[name]
        declared = kind.__dataclass_fields__[name]
        text = self.helps.get(name, found.help)
        option = (
            typer.Option(
                *found.names,
                help=text,
                metavar=found.metavar,
                min=found.least,
                max=found.most,
                hidden=name in self.hidden,
                show_default="Default:" not in text,
            )
            if found.names
            else typer.Argument(help=text, metavar=found.metavar, show_default=False)
        )
        return inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if found.required else declared.default,
            annotation=Annotated[declared.type, option],
        )


def _text(value: object) -> str:
    return str(value.value if isinstance(value, enum.Enum) else value)
