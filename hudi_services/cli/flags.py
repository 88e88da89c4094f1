"""The flags that all commands take, or several of them.

Each command's own flags are in its module. One rule says for all commands what changes the table: `RULE`.
"""

import copy
import enum
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, get_args

import typer

from ..errors import ConfigError

RULE = """\
Every command takes --dry-run and --apply. With --dry-run a command never changes the table: it says what it would do.
With --apply it does its work. Both together are an error. Without either of them:

\b
  schedule, execute, compact, clean   do their work
  archive, index-bootstrap            do their work
  write                               does its work
  rollback, undo                      do their work, on the instant that you name
  recover, validate, orphan-files     only look, and say what they would do
  index-lookup                        only reads, with any flag
"""
"""For `hudi-services --help`; README.md and docs/commands.md say the same."""


class Format(str, enum.Enum):
    TABLE = "table"
    JSON = "json"


BasePath: TypeAlias = Annotated[
    str, typer.Option("--base-path", "-sp", metavar="PATH", help="The table's folder: a local path or a URL.")
]
TableName: TypeAlias = Annotated[
    str | None,
    typer.Option("--table-name", "-tn", metavar="NAME", help="Stop with exit code 2 when the table has another name."),
]
DryRun: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Change nothing, and say what would be done. The command does so without this flag, too."
    ),
]
Apply: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="Do the work. The command does so without this flag, too.")
]
Props: TypeAlias = Annotated[
    str | None, typer.Option("--props", metavar="FILE", help="Properties file: a local path or a URL.")
]
HoodieConf: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--hoodie-conf",
        metavar="KEY=VALUE",
        help="One property; it counts more than those of files. May be repeated.",
    ),
]
ConfFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--conf-file",
        metavar="FILE",
        help="Properties file that all other flags override. Default: $HUDI_CONF_DIR/hudi-defaults.conf and "
        "/etc/hudi/conf/hudi-defaults.conf, where they exist.",
    ),
]
OutputFormat: TypeAlias = Annotated[
    Format, typer.Option("--format", help="Form of the report on stdout: tables to read, or one JSON document.")
]
ReportFile: TypeAlias = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Also write the JSON report to this file.")
]
LockWait: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--lock-wait",
        min=0,
        max=604_800,
        metavar="SECONDS",
        help="Wait at most SECONDS for the table's lock, and for another run or writer that must end first "
        "(hoodie.write.lock.wait_time_ms). Default: 60.",
    ),
]
FailIfIdle: TypeAlias = Annotated[
    bool, typer.Option("--fail-if-idle", help="Exit with code 3, not 0, when there is nothing to do.")
]
Verbose: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Log each step; show all rows of lists, all options in force, and the tracebacks of errors."
    ),
]
Retry: TypeAlias = Annotated[
    int,
    typer.Option(
        "--retry", "-rt", min=0, metavar="N", help="Try again, up to N times, when the store or the lock fails."
    ),
]
Parallelism: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--parallelism",
        "-pl",
        min=1,
        max=1_000_000,
        metavar="N",
        help="Run at most N tasks at once (hoodie.clustering.max.parallelism). Default: one for each core of Spark.",
    ),
]
SparkMaster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--spark-master", "-ms", metavar="URL", help="Spark's master. Default: that of spark-submit, or local[*]."
    ),
]
SparkMemory: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--spark-memory", "-sm", metavar="SIZE", help="Memory of Spark's driver and of each executor, such as 4g."
    ),
]


@dataclass(frozen=True, kw_only=True)
class ServiceFlags:
    """The flags of every command. In the help the first of them comes first, and the others come last.

    A command changes the help of a flag by `helps`, and accepts the flags in `hidden` without listing them: in this
    command they have no meaning.
    """

    acts: ClassVar[bool] = False
    """Whether the command changes the table when neither --dry-run nor --apply is given."""
    helps: ClassVar[Mapping[str, str]] = {}
    hidden: ClassVar[tuple[str, ...]] = ()

    base_path: BasePath
    dry_run: DryRun = False
    apply: Apply = False
    table_name: TableName = None
    props: Props = None
    hoodie_conf: HoodieConf = None
    conf_file: ConfFile = None
    lock_wait: LockWait = None
    output_format: OutputFormat = Format.TABLE
    report_file: ReportFile = None
    fail_if_idle: FailIfIdle = False
    verbose: Verbose = False

    @property
    def changes(self) -> bool:
        """Whether the run may change the table, by the one `RULE`. Raises ConfigError for --dry-run with --apply."""
        if self.dry_run and self.apply:
            raise ConfigError(
                "--dry-run and --apply exclude each other",
                hint="--dry-run changes nothing, --apply does the work: give one of them",
            )
        return self.apply or (self.acts and not self.dry_run)


F = TypeVar("F", bound=ServiceFlags)


def command(kind: type[F]) -> Callable[[Callable[[F], int]], Callable[..., int]]:
    """Turn a function of flags into one that Typer can read, with one parameter for each flag."""
    own = [one for one in fields(kind) if one not in fields(ServiceFlags)]
    first, *common = fields(ServiceFlags)
    order = [one.name for one in (first, *own, *common)]

    def decorate(body: Callable[[F], int]) -> Callable[..., int]:
        def run(**values: Any) -> int:
            return body(kind(**values))

        known = inspect.signature(kind).parameters
        parameters = [_of_command(kind, known[name]) for name in order]
        run.__doc__ = body.__doc__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _of_command(kind: type[ServiceFlags], parameter: inspect.Parameter) -> inspect.Parameter:
    """The flag as this command lists it."""
    values, option = get_args(parameter.annotation)
    option = copy.copy(option)
    option.help = kind.helps.get(parameter.name, option.help)
    option.hidden = parameter.name in kind.hidden
    return parameter.replace(annotation=Annotated[values, option])
