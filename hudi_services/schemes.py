"""The stores that a table may be in, by the scheme of its URL: a new store is a class and a row here."""

from dataclasses import dataclass

BUCKET = r"[^@:]*"
"""No bucket has an @ or a port in its name: the part of the URL before an @ is a user, and after a colon a password."""
CONTAINER_AT_ACCOUNT = r"[^@:]*(@[^@:]*)?"
"""container@account.dfs.core.windows.net: the part before the @ is no user."""
HOST = r"[^@]*"
HOST_AND_PORT = r"(\[[0-9A-Fa-f:.]*\]|[^@:\[\]]*)(:[0-9]{1,5})?"
"""A host or a name service; what follows its colon is a port when it is a number, and else a password."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How the URLs of one scheme are opened."""

    storage: str
    """The class of the storage, `module:Class`, which is loaded for the first URL and called with the URL, and with the
    StorageOptions where there are some."""
    opened_as: str
    """The name by which the class knows the store: Hadoop has several schemes for the same one."""
    authority: str = BUCKET
    """Pattern of all that may be between `scheme://` and the path: a place, and no user or password."""
    takes_options: bool = True
    """Whether there are StorageOptions for the store."""


_LOCAL = "hudi_services.stores.local:LocalStorage"
_HDFS = "hudi_services.stores.hdfs:HdfsStorage"
_OBJECTS = "hudi_services.stores.object_store:ObjectStorage"

SCHEMES: dict[str, Scheme] = {
    "": Scheme(_LOCAL, "file", takes_options=False),
    "file": Scheme(_LOCAL, "file", HOST, takes_options=False),
    "hdfs": Scheme(_HDFS, "hdfs", HOST_AND_PORT),
    "viewfs": Scheme(_HDFS, "viewfs", HOST_AND_PORT),
    "s3": Scheme(_OBJECTS, "s3"),
    "s3a": Scheme(_OBJECTS, "s3"),
    "s3n": Scheme(_OBJECTS, "s3"),
    "gs": Scheme(_OBJECTS, "gs"),
    "az": Scheme(_OBJECTS, "az"),
    "azure": Scheme(_OBJECTS, "az"),
    "wasb": Scheme(_OBJECTS, "az", CONTAINER_AT_ACCOUNT),
    "wasbs": Scheme(_OBJECTS, "az", CONTAINER_AT_ACCOUNT),
    "abfs": Scheme(_OBJECTS, "az", CONTAINER_AT_ACCOUNT),
    "abfss": Scheme(_OBJECTS, "az", CONTAINER_AT_ACCOUNT),
}
"""In lower case; "" is a path without a scheme."""
