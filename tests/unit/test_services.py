"""The table of services: every row has its functions, and the Python API takes what the requests take."""

import importlib
import inspect
import typing
from dataclasses import MISSING, fields
from typing import Any

import pyarrow as pa
import pytest

from hudi_services.api.many_tables import run_fleet
from hudi_services.api.table import Table
from hudi_services.engine import Engine
from hudi_services.jobs.services import SERVICES, Service, job_of
from hudi_services.options import resolve
from hudi_services.runs.flag import flags_of
from hudi_services.runs.report import Report
from hudi_services.runs.request import (
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
from hudi_services.storage import Storage

METHODS: dict[str, type[Request]] = {
    "plan_clustering": ClusteringRequest,
    "execute_clustering": ClusteringRequest,
    "cluster": ClusteringRequest,
    "plan_compaction": CompactionRequest,
    "execute_compaction": CompactionRequest,
    "compact": CompactionRequest,
    "clean": CleanRequest,
    "archive": ArchiveRequest,
    "validate": ValidateRequest,
    "recover": RecoverRequest,
    "rollback": RollbackRequest,
    "undo": UndoRequest,
    "build_index": IndexRequest,
    "rescale_index": RescaleRequest,
    "drop_index": IndexDropRequest,
    "look_up": LookupRequest,
    "doctor": DoctorRequest,
    "advise": AdviseRequest,
    "report": TableReportRequest,
    **dict.fromkeys(("insert", "upsert", "delete", "bulk_insert", "insert_overwrite"), WriteRequest),
    **dict.fromkeys(("insert_overwrite_table", "delete_partitions"), WriteRequest),
}
OF_CALLS = {"self", "options", "engine", "rows", "keys", "partitions", "time_limit", "file_groups", "predicates"}
"""Arguments that are no field of the request as they are."""
OTHER_DEFAULTS = {("cluster", "publish_late"): "as the command line, where --publish late is the default"}
NOT_IN_PYTHON = {
    "spark_master": "a session of the caller's, or `engine`",
    "spark_memory": "the same",
    "max_processing_millis": "for runs that a scheduler starts again",
}
"""Flags of requests that no method takes."""
OF_ROLLBACK = "completed"
"""A request to undo has this field, too, and no use for it."""


def functions(service: Service) -> list[Any]:
    module = importlib.import_module(f"hudi_services.jobs.{service.module}")
    default = {service.function} if service.function else set() if service.by_action else {service.module}
    return [getattr(module, name) for name in {*default, *service.by_action.values()}]


@pytest.mark.parametrize("name", SERVICES)
def test_every_job_takes_its_request(name: str) -> None:
    service = SERVICES[name]
    assert service.request.service == name
    for job in functions(service):
        hints = typing.get_type_hints(job)
        first, *others = inspect.signature(job).parameters
        assert issubclass(service.request, hints[first]) and hints["return"] is Report
        assert set(others) <= {"storage", "engine"}
        assert all({"storage": Storage, "engine": Engine}[other] in typing.get_args(hints[other]) for other in others)


def test_the_action_chooses_the_function() -> None:
    common: dict[str, Any] = {"base_path": "/t", "options": resolve([])}
    for mode in Mode:
        for kind in (ClusteringRequest, CompactionRequest):
            assert job_of(kind(mode=mode, **common)).__name__ == mode.name.lower()
    for operation in WriteOperation:
        expected = "write_files" if operation.needs_rows else "delete_partitions"
        assert job_of(WriteRequest(operation=operation, **common)).__name__ == expected
    assert job_of(LookupRequest(keys=pa.array([]), **common)).__name__ == "index_lookup"


def test_the_methods_of_a_table_take_what_the_requests_take() -> None:
    signatures = {
        name: inspect.signature(one).parameters
        for name, one in vars(Table).items()
        if inspect.isfunction(one) and not name.startswith("_")
    }
    assert {name for name, parameters in signatures.items() if "options" in parameters} == set(METHODS)
    for name, kind in METHODS.items():
        declared = {one.name: one for one in fields(kind)}
        for argument, parameter in signatures[name].items():
            if argument not in OF_CALLS:
                field = declared[argument]
                default = inspect.Parameter.empty if field.default is MISSING else field.default
                assert parameter.annotation == field.type, (name, argument)
                assert parameter.default == default or (name, argument) in OTHER_DEFAULTS
    for kind in set(METHODS.values()):
        taken = {argument for name, of in METHODS.items() if of is kind for argument in signatures[name]}
        others = {*NOT_IN_PYTHON, *([OF_ROLLBACK] if kind is UndoRequest else [])}
        assert set(flags_of(kind)) - others <= taken, kind
    assert {one.request for one in SERVICES.values()} - set(METHODS.values()) == {OrphanFilesRequest, FleetRequest}


def test_the_function_for_many_tables_takes_what_its_request_takes() -> None:
    parameters = inspect.signature(run_fleet).parameters
    given = {one.name: one for one in fields(FleetRequest)}
    for name in (*flags_of(FleetRequest), "apply", "retries"):
        if name not in NOT_IN_PYTHON:
            assert (parameters[name].annotation, parameters[name].default) == (given[name].type, given[name].default)
