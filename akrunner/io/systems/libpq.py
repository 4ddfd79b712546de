"""What libpq, which connects to PostgreSQL, is told by a URL and by environment variables; as of its version 18.

An option whose variable is not here would be the submitter's alone: a machine of Flink would connect without it, perhaps to a server
that the submitter would not trust.
"""

from __future__ import annotations

from collections.abc import Mapping

#: options that a URL may have -> the variable that stands for each in the environment, "" if there is none:
#: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS. Those that are secrets (sslpassword=) are not here
OPTIONS = {
    "sslmode": "PGSSLMODE", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "sslrootcert": "PGSSLROOTCERT", "sslcrl": "PGSSLCRL",
    "connect_timeout": "PGCONNECT_TIMEOUT", "application_name": "PGAPPNAME", "options": "PGOPTIONS", "target_session_attrs": "PGTARGETSESSIONATTRS",
    "passfile": "PGPASSFILE", "service": "PGSERVICE", "gssencmode": "PGGSSENCMODE", "channel_binding": "PGCHANNELBINDING", "keepalives": "",
    "keepalives_idle": "", "keepalives_interval": "", "keepalives_count": "", "tcp_user_timeout": "", "hostaddr": "PGHOSTADDR", "host": "PGHOST",
    "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE", "load_balance_hosts": "PGLOADBALANCEHOSTS", "require_auth": "PGREQUIREAUTH",
    "requirepeer": "PGREQUIREPEER", "sslcertmode": "PGSSLCERTMODE", "sslcompression": "PGSSLCOMPRESSION", "sslcrldir": "PGSSLCRLDIR",
    "sslnegotiation": "PGSSLNEGOTIATION", "sslsni": "PGSSLSNI", "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
    "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION", "min_protocol_version": "PGMINPROTOCOLVERSION",
    "max_protocol_version": "PGMAXPROTOCOLVERSION", "gssdelegation": "PGGSSDELEGATION", "gsslib": "PGGSSLIB", "krbsrvname": "PGKRBSRVNAME",
    "client_encoding": "PGCLIENTENCODING",
}  # fmt: skip
#: variables that set a parameter of the session, for which there is no option
SESSION = {"PGDATESTYLE": "datestyle", "PGGEQO": "geqo"}


def options_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options that variables stand for: option -> value."""
    told = {option: environment.get(variable, "") for option, variable in OPTIONS.items() if variable}
    if not told["sslmode"] and environment.get("PGREQUIRESSL", "").startswith("1"):
        told["sslmode"] = "require"
    return {option: value for option, value in told.items() if value}


def session_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that variables set for the session: parameter -> value."""
    told = {parameter: environment.get(variable, "") for variable, parameter in SESSION.items()}
    return {parameter: value for parameter, value in told.items() if value and value.lower() != "default"}
