"""`CachedSchemaRegistryClient`: the registry client of `AvroProducer` and `AvroConsumer`.

Its calls are those of confluent_kafka before 1.4; `headrace.schema_registry.SchemaRegistryClient` does the work.
"""

from __future__ import annotations

import logging
import warnings
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from headrace.avro.error import ClientError
from headrace.avro.load import loads
from headrace.client.registry.schema_registry_client import SchemaRegistryClient
from headrace.errors import SchemaRegistryError
from headrace.types.registry import RegisteredSchema, Schema

__all__ = ["ACCEPT_HDR", "VALID_AUTH_PROVIDERS", "VALID_LEVELS", "VALID_METHODS", "CachedSchemaRegistryClient"]

VALID_LEVELS = ["NONE", "FULL", "FORWARD", "BACKWARD"]
VALID_METHODS = ["GET", "POST", "PUT", "DELETE"]
VALID_AUTH_PROVIDERS = ["URL", "USER_INFO", "SASL_INHERIT"]
ACCEPT_HDR = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"
_log = logging.getLogger("headrace.avro")
_SCHEMA_REFUSED = {401: "Unauthorized access. Error code:", 403: "Unauthorized access. Error code:",
                   409: "Incompatible Avro schema:", 422: "Invalid Avro schema:"}
_CHECK_REFUSED = {401: "Unauthorized access. Error code:", 403: "Unauthorized access. Error code:",
                  404: "Schema or subject not found:"}


class CachedSchemaRegistryClient:
    """Asks a Schema Registry, and keeps what it was told.

    Args:
        url: properties: `url`, `ssl.ca.location`, `ssl.certificate.location`, `ssl.key.location`, `ssl.key.password`,
            `basic.auth.credentials.source` (URL, USER_INFO or SASL_INHERIT), `basic.auth.user.info`,
            `sasl.username`, `sasl.password`, `auto.register.schemas` (True); or, as it was before, the URL.
        max_schemas_per_subject: not used.
        ca_location: path, where `url` is the URL.
        cert_location: the same.
        key_location: the same.

    Attributes:
        url: of the registry.
        auto_register_schemas: whether `AvroProducer` registers schemas.
        id_to_schema: schemas by id.
        subject_to_schema_ids: ids by subject and schema.
        subject_to_schema_versions: versions by subject and schema.

    Raises:
        TypeError: the URL is no text.
        ValueError: a property is unknown or will not do.
    """

    def __init__(
        self, url: str | dict[str, Any], max_schemas_per_subject: int = 1000, ca_location: str | None = None,
        cert_location: str | None = None, key_location: str | None = None,
    ) -> None:
        if isinstance(url, Mapping):
            conf = dict(url)
        else:
            warnings.warn("CachedSchemaRegistryClient takes a dict of properties now: url, ssl.ca.location, "
                          "ssl.certificate.location, ssl.key.location", DeprecationWarning, stacklevel=2)
            conf = {"url": url, "ssl.ca.location": ca_location, "ssl.certificate.location": cert_location,
                    "ssl.key.location": key_location}
        self.id_to_schema: dict[int, Any] = {}
        self.subject_to_schema_ids: defaultdict[str, dict[Any, int]] = defaultdict(dict)
        self.subject_to_schema_versions: defaultdict[str, dict[Any, int]] = defaultdict(dict)
        self.auto_register_schemas = conf.pop("auto.register.schemas", True)
        self.url = _without_credentials(_url(conf))
        self._conf = {"max.retries": 0, **_with_credentials(conf)}  # as it always was
        self._client = SchemaRegistryClient(self._conf)

    @cached_property
    def _client(self) -> SchemaRegistryClient:
        return SchemaRegistryClient(self._conf)

    def __enter__(self) -> CachedSchemaRegistryClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. What is asked later opens them again, as it always did."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    def register(self, subject: str, avro_schema: Any) -> int:
        """Register a schema, once.

        Args:
            subject: its name.
            avro_schema: as `loads` gives it.

        Returns:
            The schema's id.

        Raises:
            ClientError: the registry refused.
        """
        return self._id(subject, avro_schema, self._client.register_schema_full_response, _SCHEMA_REFUSED,
                        "Unable to register schema. Error code:")

    def check_registration(self, subject: str, avro_schema: Any) -> int:
        """Look up a schema, once; see `register`.

        Raises:
            ClientError: it is not registered.
        """
        return self._id(subject, avro_schema, self._client.lookup_schema, _CHECK_REFUSED,
                        "Unable to check schema registration. Error code:")

    def _id(self, subject: str, schema: Any, ask: Any, refused: dict[int, str], otherwise: str) -> int:
        known = self.subject_to_schema_ids[subject].get(schema)
        if known is not None:
            return known
        try:
            registered: RegisteredSchema = ask(subject, Schema(str(schema), "AVRO"))
        except SchemaRegistryError as error:
            code = error.http_status_code
            raise ClientError(f"{refused.get(code, otherwise)}{code} message:{error.error_message}", code) from error
        schema_id = registered.schema_id or 0
        self._keep(schema, schema_id, subject)
        return schema_id

    def delete_subject(self, subject: str) -> list[int]:
        """Delete a subject.

        Returns:
            The versions that were deleted.

        Raises:
            ClientError: the registry refused.
        """
        try:
            return self._client.delete_subject(subject)
        except SchemaRegistryError as error:
            raise ClientError(f"Unable to delete subject: {error.error_message}", error.http_status_code) from error

    def get_by_id(self, schema_id: int) -> Any:
        """The schema of an id, or None if the registry does not tell it.

        Raises:
            ClientError: what the registry has is no schema.
        """
        if schema_id not in self.id_to_schema:
            try:
                found = self._client.get_schema(schema_id)
            except SchemaRegistryError as error:
                _log.error("schema %s: %s", schema_id, error)
                return None
            try:
                self.id_to_schema[schema_id] = loads(found.schema_str or "")
            except ClientError as error:
                raise ClientError(f"Received bad schema (id {schema_id}) from registry: {error}") from error
        return self.id_to_schema[schema_id]

    def get_latest_schema(self, subject: str) -> tuple[int | None, Any, int | None]:
        """As `get_by_version`, of the latest one."""
        return self.get_by_version(subject, "latest")

    def get_by_version(self, subject: str, version: int | str) -> tuple[int | None, Any, int | None]:
        """A version of a subject; the registry is asked each time.

        Returns:
            The schema's id, the schema, the version; three times None if the registry does not tell it.

        Raises:
            ClientError: what the registry has is no schema.
        """
        self._client.clear_latest_caches()
        try:
            found = (self._client.get_latest_version(subject) if version == "latest"
                     else self._client.get_version(subject, int(version)))
        except SchemaRegistryError as error:
            _log.error("version %s of %s: %s", version, subject, error)
            return None, None, None
        schema = self.id_to_schema.get(found.schema_id or 0) or loads(found.schema.schema_str or "")
        self._keep(schema, found.schema_id or 0, subject, found.version)
        return found.schema_id, schema, found.version

    def get_version(self, subject: str, avro_schema: Any) -> int | None:
        """The version that a schema has in a subject, or None if the registry does not tell it."""
        known = self.subject_to_schema_versions[subject].get(avro_schema)
        if known is not None:
            return known
        try:
            found = self._client.lookup_schema(subject, Schema(str(avro_schema), "AVRO"))
        except SchemaRegistryError as error:
            _log.error("a schema of %s: %s", subject, error)
            return None
        self._keep(avro_schema, found.schema_id or 0, subject, found.version)
        return found.version

    def test_compatibility(self, subject: str, avro_schema: Any, version: int | str = "latest") -> bool:
        """Whether a schema is compatible with a version; False also if the registry cannot be asked."""
        try:
            return bool(self._client.test_compatibility(subject, Schema(str(avro_schema), "AVRO"), version))
        except Exception as error:
            _log.error("compatibility with %s of %s: %s", version, subject, error)
            return False

    def update_compatibility(self, level: str, subject: str | None = None) -> str:
        """Set the compatibility level of a subject, or of all.

        Args:
            level: one of `VALID_LEVELS`.
            subject: its name; None for all.

        Returns:
            The level.

        Raises:
            ClientError: there is no such level, or the registry refused.
        """
        if level not in VALID_LEVELS:
            raise ClientError(f"Invalid level specified: {level}")
        try:
            answer = self._client.set_compatibility(subject, level)
        except SchemaRegistryError as error:
            code = error.http_status_code
            raise ClientError(f"Unable to update level: {level}. Error code: {code}", code) from error
        return str(answer["compatibility"])

    def get_compatibility(self, subject: str | None = None) -> str:
        """The compatibility level of a subject, or of all.

        Raises:
            ClientError: the registry refused, or told another level than `VALID_LEVELS`.
        """
        try:
            level = self._client.get_compatibility(subject)
        except SchemaRegistryError as error:
            code = error.http_status_code
            raise ClientError(f"Unable to fetch compatibility level. Error code: {code}", code) from error
        if level not in VALID_LEVELS:
            raise ClientError("Invalid compatibility level received: "
                              f"{'No compatibility was returned' if level is None else level}")
        return str(level)

    def _keep(self, schema: Any, schema_id: int, subject: str, version: int | None = None) -> None:
        schema = self.id_to_schema.setdefault(schema_id, schema)
        self.subject_to_schema_ids[subject][schema] = schema_id
        if version:
            self.subject_to_schema_versions[subject][schema] = version


def _url(conf: Mapping[str, Any]) -> str:
    url = conf.get("url", "")
    if not isinstance(url, str):
        raise TypeError(f"URL must be of type str, not {type(url).__name__}")
    if not url.startswith(("http", "mock://")):
        raise ValueError(f"Invalid URL provided for Schema Registry: {url!r}")
    return url.rstrip("/")


def _without_credentials(url: str) -> str:
    """A URL that may be shown, and that says nothing against other credentials."""
    address = urlsplit(url)
    return urlunsplit(address._replace(netloc=address.netloc.rpartition("@")[2]))


def _with_credentials(conf: dict[str, Any]) -> dict[str, Any]:
    """Properties of `SchemaRegistryClient`, which has one for user and password."""
    source = str(conf.pop("basic.auth.credentials.source", "URL")).upper()
    if source not in VALID_AUTH_PROVIDERS:
        raise ValueError(f"schema.registry.basic.auth.credentials.source must be one of {VALID_AUTH_PROVIDERS}")
    mechanism, user, password = (conf.pop(f"sasl.{name}", "") for name in ("mechanism", "username", "password"))
    if source == "SASL_INHERIT":
        if str(mechanism).upper() == "GSSAPI":
            raise ValueError("SASL_INHERIT does not support SASL mechanism GSSAPI")
        conf["basic.auth.user.info"] = f"{user}:{password}"
    elif source == "URL":
        conf.pop("basic.auth.user.info", None)
    if source != "URL":  # those of the URL are not meant
        conf["url"] = _without_credentials(conf["url"])
    if bool(conf.get("ssl.certificate.location")) != bool(conf.get("ssl.key.location")):
        raise ValueError("Both schema.registry.ssl.certificate.location and schema.registry.ssl.key.location "
                         "must be set")
    return {name: value for name, value in conf.items() if value is not None}
