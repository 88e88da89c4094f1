"""Hudi's lock providers, held in the JVM of a peer, as its LockManager makes and asks them."""

import itertools
from collections.abc import Mapping
from pathlib import Path

from .peer import Peer

AWS_PACKAGE = "org.apache.hudi.aws.transaction.lock"
S3_CLIENT = f"{AWS_PACKAGE}.S3StorageLockClient"
# 7 megabytes with the parts of the AWS SDK that they need.
_AWS_JARS = (
    "org.apache.hudi:hudi-aws:0.15.0?transitive=false",
    "com.amazonaws:dynamodb-lock-client:1.2.0?exclude=software.amazon.awssdk:netty-nio-client",
)
_OF_DYNAMODB = (f"{AWS_PACKAGE}.DynamoDBBasedLockProvider", "org.apache.hudi.config.DynamoDbBasedLockConfig")

_OPEN = """
gateway = spark.sparkContext._gateway
properties = jvm.org.apache.hudi.common.config.TypedProperties()
for key, value in {**options, "hoodie.base.path": path}.items():
    properties.setProperty(key, value)
hadoop = spark.sparkContext._jsc.hadoopConfiguration()
kind = jvm.org.apache.hudi.common.util.ReflectionUtils.getClass(options["hoodie.write.lock.provider"])
arguments = gateway.new_array(jvm.java.lang.Object, 2)
arguments[0] = jvm.org.apache.hudi.common.config.LockConfiguration(properties)
arguments[1] = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(hadoop)
(maker,) = [
    one
    for one in kind.getConstructors()
    for types in [[of.getName() for of in one.getParameterTypes()]]
    if len(types) == 2 and types[1].endswith("StorageConfiguration")
]
spark.__dict__.setdefault("_locks", {})[name] = maker.newInstance(arguments)
"""
_TRY = "result = bool(spark._locks[name].tryLock(millis, jvm.java.util.concurrent.TimeUnit.MILLISECONDS))"
_UNLOCK = "spark._locks[name].unlock()"
_CLOSE = "spark._locks.pop(name).close()"
# What a hang or the end of the process would do: nobody renews the lock, and nobody gives it back.
_DIE = """
def field(of, name):
    found = of.getClass().getDeclaredField(name)
    found.setAccessible(True)
    return found.get(of)
lock = spark._locks[name]
if lock.getClass().getSimpleName() == "StorageBasedLockProvider":
    assert field(lock, "heartbeatManager").stopHeartbeat(True)
else:
    beating = field(field(lock, "client"), "backgroundThread").get()
    beating.interrupt()
    beating.join(5000)
    assert not beating.isAlive()
"""
# Adds to a number in a file, of which one process only may be the keeper at a time.
_COUNT = """
import random, time
draw, lock = random.Random(seed), spark._locks[name]
for _ in range(times):
    assert lock.tryLock(60000, jvm.java.util.concurrent.TimeUnit.MILLISECONDS)
    with open(file) as now:
        before = int(now.read())
    time.sleep(draw.choice((0.01, 0.05, 0.8)))
    with open(file, "w") as then:
        then.write(str(before + 1))
    lock.unlock()
    time.sleep(draw.random() * 1.2)
"""
# Hudi looks for classes where the bundle is; it remembers which it has found.
_REMEMBER = """
known = jvm.java.lang.Class.forName("org.apache.hudi.common.util.ReflectionUtils").getDeclaredField("CLAZZ_CACHE")
known.setAccessible(True)
for name in names:
    known.get(None).put(name, loader.loadClass(name.rpartition(".")[2] if not is_packaged else name))
"""
_COMPILE = f"""
compiler = jvm.org.codehaus.janino.SimpleCompiler()
compiler.cook(java)
loader, is_packaged = compiler.getClassLoader(), False
{_REMEMBER}
"""
_DOWNLOAD = f"""
import fcntl, tempfile
# As in peer_server: Ivy writes into its folder as if it were alone.
with open(tempfile.gettempdir() + "/hudi_services-ivy.lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    for jar in jars if not hasattr(spark, "_has_aws_jars") else ():
        spark.sql("ADD JAR ivy://" + jar)
spark._has_aws_jars = True
loader, is_packaged = spark._jsparkSession.sharedState().jarClassLoader(), True
for key, value in system.items():
    jvm.java.lang.System.setProperty(key, value)
{_REMEMBER}
"""

_names = itertools.count()


def give_s3_client(peer: Peer) -> None:
    """Let StorageBasedLockProvider find our stand-in for its client of S3."""
    source = (Path(__file__).parent / "S3StorageLockClient.java").read_text()
    peer.eval(_COMPILE, java=source, names=[S3_CLIENT])


def give_dynamodb(peer: Peer, region: str, credentials: Mapping[str, str]) -> None:
    """Let Hudi 0.15.0 find its provider for DynamoDB, which has a jar of its own."""
    assert peer.version == "0.15.0", "hudi-aws of later releases is not to be had"
    system = {"aws.region": region, "aws.accessKeyId": credentials["aws_access_key_id"]}
    system["aws.secretAccessKey"] = credentials["aws_secret_access_key"]
    peer.eval(_DOWNLOAD, jars=_AWS_JARS, names=_OF_DYNAMODB, system=system)


class HudiLock:
    """The lock provider that `options` name, of the table at `base_path`."""

    def __init__(self, peer: Peer, base_path: str, options: Mapping[str, str]) -> None:
        self._peer = peer
        self._name = str(next(_names))
        peer.eval(_OPEN, name=self._name, path=base_path, options=dict(options))

    def take(self, millis: int = 100) -> bool:
        """Wait for the lock; whether it is held."""
        return bool(self._peer.eval(_TRY, name=self._name, millis=millis))

    def give_back(self) -> None:
        self._peer.eval(_UNLOCK, name=self._name)

    def close(self) -> None:
        self._peer.eval(_CLOSE, name=self._name)

    def die(self) -> None:
        """Renew the lock no more."""
        self._peer.eval(_DIE, name=self._name)

    def count(self, file: Path, times: int, seed: int) -> None:
        """Add one to the number in the file, under the lock, so many times."""
        self._peer.eval(_COUNT, name=self._name, file=str(file), times=times, seed=seed)
