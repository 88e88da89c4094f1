"""The services: what each takes, and which function of this package carries it out.

A front end gives a request to `job_of`. Functions are loaded when they are asked for: a wrong flag is told before Arrow
is loaded, and no service loads the modules of another one.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..runs.report import Report
from ..runs.request import (
    AdviseRequest,
    ArchiveRequest,
    CleanRequest,
    ClusteringRequest,
    CompactionRequest,
    DoctorRequest,
    FleetRequest,
    IndexDropRequest,
    IndexRequest,
    LookupRequest,
    Mode,
    OrphanFilesRequest,
    RecoverRequest,
    Request,
    RescaleRequest,
    RollbackRequest,
    TableReportRequest,
    UndoRequest,
    ValidateRequest,
    WriteOperation,
    WriteRequest,
)


@dataclass(frozen=True, slots=True)
class Service:
    """One service; the fields of the `request` are what it takes."""

    request: type[Request]
    module: str
    function: str = ""
    """The function of the module; "" for the one with the module's name."""
    by_action: Mapping[str, str] = field(default_factory=dict)
    """Other functions, by the action of the request."""
    is_retried: bool = False
    """Whether the operator may ask for further attempts after an error that may pass."""


_BY_MODE = {mode.value: mode.name.lower() for mode in Mode}
_SERVICES = (
    Service(ClusteringRequest, "clustering", by_action=_BY_MODE, is_retried=True),
    Service(CompactionRequest, "compaction", by_action=_BY_MODE, is_retried=True),
    Service(CleanRequest, "clean", is_retried=True),
    Service(ArchiveRequest, "archive", is_retried=True),
    Service(IndexRequest, "index_bootstrap", is_retried=True),
    Service(RescaleRequest, "index_rescale", is_retried=True),
    Service(IndexDropRequest, "index_drop"),
    Service(LookupRequest, "index_lookup"),
    Service(AdviseRequest, "advise"),
    Service(RollbackRequest, "rollback"),
    Service(UndoRequest, "undo"),
    Service(RecoverRequest, "recover"),
    Service(OrphanFilesRequest, "orphan_files", "manage_orphan_files", is_retried=True),
    Service(ValidateRequest, "validate"),
    Service(DoctorRequest, "doctor"),
    Service(TableReportRequest, "table_report"),
    Service(FleetRequest, "fleet", is_retried=True),
    Service(WriteRequest, "writing", "write_files", {WriteOperation.DELETE_PARTITION.value: "delete_partitions"}),
)
SERVICES: Mapping[str, Service] = {one.request.service: one for one in _SERVICES}
"""By the name in the report."""


def job_of(request: Request) -> Callable[..., Report]:
    """The function that carries out the request, which is its first argument."""
    service = SERVICES[request.service]
    module = importlib.import_module(f".{service.module}", __package__)
    job: Callable[..., Report] = getattr(
        module, service.by_action.get(request.action, service.function or service.module)
    )
    return job
