"""Apache Hudi table services in Python, on PySpark."""

__version__ = "0.1.0"
