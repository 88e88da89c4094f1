"""How servers that speak S3 are reached."""

from hudi_services.stores.options import Value

KEY = "user"
SECRET = "password"
REGION = "us-east-1"


def options_at(endpoint: str) -> dict[str, Value]:
    """Storage options for a server at this endpoint, which has buckets in the path of its URLs."""
    return {
        "endpoint": endpoint,
        "allow_http": True,
        "region": REGION,
        "access_key_id": KEY,
        "secret_access_key": SECRET,
    }
