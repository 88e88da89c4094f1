import os

# Every JVM of these tests lives for seconds: to compile thoroughly what it runs takes longer than to run it.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

os.environ["JAVA_TOOL_OPTIONS"] = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {_SHORT_LIVED}".strip()
