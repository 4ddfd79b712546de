"""Finds the credentials for MaxCompute and OSS.

::

    MaxCompute   the file ODPS_CONFIG_FILE_PATH names   access_id= access_key= end_point=
                                                        [tunnel_endpoint= project_name= sts_token=]
                 the environment                        ALIBABA_CLOUD_ACCESS_KEY_ID and _SECRET
                                                        (or ODPS_ACCESS_ID and ODPS_ACCESS_KEY), ODPS_ENDPOINT
                 ~/.odpscmd/odps_config.ini             as in the first file
    OSS          the environment                        OSS_ACCESS_KEY_ID and OSS_ACCESS_KEY_SECRET, or ALIBABA_CLOUD_...;
                                                        OSS_ENDPOINT
                 ~/.ossutilconfig                       accessKeyID= accessKeySecret= endpoint= [stsToken=]
                 the credentials for MaxCompute         because both belong to the same account

The key and its secret come from the first source that has either. Each other setting comes from the first source that has it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from akrunner import argument_files
from akrunner.checks import path_shown
from akrunner.errors import ConfigError

CONFIG_VARIABLE = "ODPS_CONFIG_FILE_PATH"
_LONGEST_FILE = 1 << 20
#: variables of the environment: for the key, the secret, the token
_Pair = tuple[str, str, str]
_ALIBABA: _Pair = ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN")
_ODPS_PAIRS: Sequence[_Pair] = (
    ("ODPS_STS_ACCESS_KEY_ID", "ODPS_STS_ACCESS_KEY_SECRET", "ODPS_STS_TOKEN"),
    ("ODPS_ACCESS_ID", "ODPS_ACCESS_KEY", "ODPS_STS_TOKEN"),
    _ALIBABA,
)
_OSS_PAIRS: Sequence[_Pair] = (("OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET", "OSS_SESSION_TOKEN"), _ALIBABA)
#: names in files -> what they mean; several names mean the same
_NAMES = {
    "access_id": "id",
    "accesskeyid": "id",
    "access_key": "secret",
    "accesskeysecret": "secret",
    "end_point": "endpoint",
    "endpoint": "endpoint",
    "tunnel_endpoint": "tunnel",
    "project_name": "project",
    "sts_token": "token",
    "security_token": "token",
    "ststoken": "token",
}
_OUT = "; AKRUNNER_TABLES=DIR takes the tables of this machine instead"


@dataclass(frozen=True)
class Credentials:
    """The credentials for one service.

    Attributes:
        access_id, access_key: the key and its secret.
        endpoint: URL of the service; "" (OSS only) if each URI names its own host.
        found: says, in words, where the key was found.
        token: of a temporary key; "" for none.
        tunnel: MaxCompute's endpoint for rows; "" if the service names it itself.
        project: the default project; "" for none.
    """

    access_id: str
    access_key: str = field(repr=False)
    endpoint: str
    found: str
    token: str = field(default="", repr=False)
    tunnel: str = ""
    project: str = ""

    @property
    def place(self) -> str:
        """Return the service, and where its key was found, for messages."""
        return f"{self.endpoint} (key found in {self.found})"


@dataclass(frozen=True)
class _Place:
    """The settings of one source of credentials.

    Attributes:
        found: says, in words, what source it is.
        values: setting -> its value.
        names: setting -> what it is called in this source.
    """

    found: str
    values: Mapping[str, str]
    names: Mapping[str, str]


def odps_credentials() -> Credentials | None:
    """Return the credentials for MaxCompute; None if there are none.

    Raises:
        ConfigError: a part of them is missing; the message names the part.
    """
    environ = os.environ
    places: list[_Place] = []
    named = environ.get(CONFIG_VARIABLE)
    if named:
        places.append(_of_file(os.path.expanduser(named), CONFIG_VARIABLE))
    more = {"endpoint": "ODPS_ENDPOINT", "tunnel": "ODPS_TUNNEL_ENDPOINT", "project": "ODPS_PROJECT_NAME"}
    places.append(_of_environment(_ODPS_PAIRS, more))
    usual = os.path.join(os.path.expanduser("~"), ".odpscmd", "odps_config.ini")
    if os.path.isfile(usual):
        places.append(_of_file(usual, ""))
    if not any(set(place.values) & {"id", "secret", "endpoint"} for place in places):
        if named:
            raise ConfigError(f"{CONFIG_VARIABLE}: {path_shown(named)} has no access_id=, access_key= and end_point={_OUT}")
        return None
    made = _joined("MaxCompute", places)
    if not made.endpoint:
        raise ConfigError(
            f"credentials for MaxCompute are in {made.found}, and its endpoint is missing: set ODPS_ENDPOINT, or end_point= "
            f"in a file {CONFIG_VARIABLE} names (such as http://service.cn-shanghai.maxcompute.aliyun.com/api){_OUT}"
        )
    return made


def oss_credentials() -> Credentials | None:
    """Return the credentials for OSS; None if there are none.

    Raises:
        ConfigError: a part of them is missing; the message names the part.
    """
    places = [_of_environment(_OSS_PAIRS, {"endpoint": "OSS_ENDPOINT"})]
    usual = os.path.join(os.path.expanduser("~"), ".ossutilconfig")
    if os.path.isfile(usual):
        places.append(_of_file(usual, ""))
    if any(set(place.values) & {"id", "secret"} for place in places):
        return _joined("OSS", places)
    known = odps_credentials()
    if known is None:
        return None
    endpoint = next((place.values["endpoint"] for place in places if "endpoint" in place.values), "")
    return Credentials(known.access_id, known.access_key, endpoint, known.found, known.token)


def _joined(service: str, places: Sequence[_Place]) -> Credentials:
    """Return the credentials that these sources give together; the first ones win.

    Raises:
        ConfigError: no source has a key with its secret.
    """
    keys = next((place for place in places if set(place.values) & {"id", "secret"}), None)
    if keys is None:
        only = next(place for place in places if place.values)
        raise ConfigError(
            f"{', '.join(sorted(only.names[what] for what in only.values))} of {only.found} "
            f"{'is' if len(only.values) == 1 else 'are'} set, and there is no access key for {service}: set "
            f"ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET, or name a file in {CONFIG_VARIABLE}{_OUT}"
        )
    for what, other in (("id", "secret"), ("secret", "id")):
        if what not in keys.values:
            raise ConfigError(
                f"credentials for {service} in {keys.found}: {keys.names[other]} is there, and {keys.names[what]} is "
                f"missing{_OUT}"
            )
    rest: dict[str, str] = {}
    for place in reversed(places):
        rest.update({what: place.values[what] for what in ("endpoint", "tunnel", "project") if what in place.values})
    endpoint = rest.get("endpoint", "")
    if endpoint and "://" not in endpoint:
        endpoint = "https://" + endpoint
    token = keys.values.get("token", "")
    return Credentials(
        keys.values["id"], keys.values["secret"], endpoint, keys.found, token, rest.get("tunnel", ""), rest.get("project", "")
    )


def _of_environment(pairs: Sequence[_Pair], more: Mapping[str, str]) -> _Place:
    """Return the environment's settings; the key is the first pair of variables of which one is set."""
    values: dict[str, str] = {}
    pair = next((pair for pair in pairs if os.environ.get(pair[0]) or os.environ.get(pair[1])), pairs[-1])
    names = {**dict(zip(("id", "secret", "token"), pair)), **more}
    for what, name in names.items():
        if os.environ.get(name, "").strip():
            values[what] = os.environ[name].strip()
    if not {"id", "secret"} & set(values):
        values.pop("token", None)
    return _Place("the environment", values, names)


def _of_file(path: str, parameter: str) -> _Place:
    """Return the settings in a file with lines of `name = value`.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        text = argument_files.read(path, _LONGEST_FILE).decode("utf-8", errors="replace")
    except OSError as e:
        raise ConfigError(
            f"{parameter + ': ' if parameter else ''}cannot read {path_shown(path)}: {e.strerror}{_OUT}"
        ) from None
    values: dict[str, str] = {}
    names: dict[str, str] = {"id": "access_id=", "secret": "access_key="}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        what = _NAMES.get(name.strip().lower().replace("-", "_"))
        if equals and what and value.strip():
            values[what], names[what] = value.strip(), name.strip() + "="
    return _Place(path, values, names)
