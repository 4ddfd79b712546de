"""Functions of MaxCompute's SQL that neither sqlglot nor DuckDB has, or has with other arguments."""

from __future__ import annotations

#: MaxCompute's letters of a date, in which mm are months, as DuckDB's
FORMAT = (("yyyy", "%Y"), ("mm", "%m"), ("dd", "%d"), ("hh24", "%H"), ("hh", "%H"), ("mi", "%M"), ("ss", "%S"))
#: (function, how many arguments it is given) -> its name here: Hive has one of that name, which takes others
RENAMED = {
    ("isnull", 1): "odps_isnull",
    ("datediff", 3): "odps_datediff",
    ("to_date", 2): "odps_to_date",
    ("to_char", 2): "odps_to_char",
    ("datetrunc", 2): "odps_datetrunc",
    ("datepart", 2): "odps_datepart",
    ("weekday", 1): "odps_weekday",
    ("hour", 1): "odps_hour",
    ("minute", 1): "odps_minute",
    ("second", 1): "odps_second",
    ("find_in_set", 2): "odps_find_in_set",
    ("substring_index", 3): "odps_substring_index",
}
#: -> DuckDB's function, and what its first argument is
DATES = {"odps_to_date": ("strptime", "VARCHAR"), "odps_to_char": ("strftime", "TIMESTAMP")}
#: functions of MaxCompute's that neither sqlglot nor DuckDB has
MACROS = (
    "CREATE MACRO odps_unit(part) AS CASE lower(part) WHEN 'dd' THEN 'day' WHEN 'mm' THEN 'month' WHEN 'yyyy' THEN 'year' WHEN 'hh' THEN 'hour' "
    "WHEN 'mi' THEN 'minute' WHEN 'ss' THEN 'second' ELSE lower(part) END",
    "CREATE MACRO wm_concat(sep, x) AS string_agg(CAST(x AS VARCHAR), sep)",
    "CREATE MACRO getdate() AS CAST(now() AS TIMESTAMP)",
    "CREATE MACRO odps_isnull(x) AS x IS NULL",
    "CREATE MACRO odps_datediff(a, b, part) AS date_diff(odps_unit(part), CAST(b AS TIMESTAMP), CAST(a AS TIMESTAMP))",
    "CREATE MACRO dateadd(x, n, part) AS date_add(CAST(x AS TIMESTAMP), CAST(n || ' ' || odps_unit(part) AS INTERVAL))",
    "CREATE MACRO odps_datetrunc(x, part) AS date_trunc(odps_unit(part), CAST(x AS TIMESTAMP))",
    "CREATE MACRO odps_datepart(x, part) AS CAST(date_part(odps_unit(part), CAST(x AS TIMESTAMP)) AS BIGINT)",
    "CREATE MACRO odps_weekday(x) AS isodow(CAST(x AS TIMESTAMP)) - 1",
    "CREATE MACRO odps_hour(x) AS hour(CAST(x AS TIMESTAMP))",
    "CREATE MACRO odps_minute(x) AS minute(CAST(x AS TIMESTAMP))",
    "CREATE MACRO odps_second(x) AS second(CAST(x AS TIMESTAMP))",
    "CREATE MACRO lastday(x) AS CAST(last_day(CAST(x AS TIMESTAMP)) AS TIMESTAMP)",
    "CREATE MACRO keyvalue(x, k) AS ([substr(e, length(k) + 2) for e in str_split(x, ';') if starts_with(e, k || ':')])[1], "
    "(x, one, other, k) AS ([substr(e, length(k) + length(other) + 1) for e in str_split(x, one) if starts_with(e, k || other)])[1]",
    "CREATE MACRO odps_find_in_set(x, many) AS CASE WHEN x IS NOT NULL AND many IS NOT NULL THEN "
    "coalesce(list_position(str_split(many, ','), x), 0) END",
    "CREATE MACRO odps_substring_index(x, sep, n) AS CASE WHEN x IS NULL OR sep IS NULL OR n IS NULL THEN NULL WHEN n = 0 OR sep = '' THEN '' "
    "ELSE array_to_string(CASE WHEN n > 0 THEN str_split(x, sep)[:n] ELSE str_split(x, sep)[n:] END, sep) END",
    "CREATE MACRO lengthb(x) AS strlen(x)",
    "CREATE MACRO percentile(x, p) AS quantile_cont(x, p)",
    "CREATE MACRO tolower(x) AS lower(x)",
    "CREATE MACRO toupper(x) AS upper(x)",
    # MaxCompute cuts what DuckDB rounds; by its digits, as a double would not have all of them
    "CREATE MACRO odps_whole(x) AS coalesce(TRY_CAST(regexp_extract(trim(CAST(x AS VARCHAR)), '^([+-]?[0-9]+)([.][0-9]*)?$', 1) AS HUGEINT), "
    "TRY_CAST(trunc(TRY_CAST(x AS DOUBLE)) AS HUGEINT))",
)
