"""MaxCompute's SQL functions that neither sqlglot nor DuckDB has, or that they have with other arguments."""

from __future__ import annotations

import re

#: MaxCompute's letters in the format of a date -> DuckDB's; mm are months
FORMAT = (("yyyy", "%Y"), ("mm", "%m"), ("dd", "%d"), ("hh24", "%H"), ("hh", "%H"), ("mi", "%M"), ("ss", "%S"), ("ff3", "%g"))
#: (function, number of arguments) -> its name here, because Hive has a function of that name with other arguments
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
    ("substr", 2): "odps_substr",
    ("substr", 3): "odps_substr",
    ("substring", 2): "odps_substr",
    ("substring", 3): "odps_substr",
    ("instr", 3): "odps_instr",
    ("instr", 4): "odps_instr",
    ("split", 2): "odps_split",
    ("split", 3): "odps_split",
    ("split_part", 4): "odps_split_part",
    ("lpad", 3): "odps_lpad",
    ("rpad", 3): "odps_rpad",
    ("ceil", 1): "odps_ceil",
    ("floor", 1): "odps_floor",
    ("percentile", 2): "odps_percentile",
    ("percentile_approx", 2): "odps_percentile",
    ("date_add", 2): "odps_date_add",
    ("date_sub", 2): "odps_date_sub",
    ("add_months", 2): "odps_add_months",
    ("last_day", 1): "odps_last_day",
    ("quarter", 1): "odps_quarter",
    ("weekofyear", 1): "odps_weekofyear",
    ("dayofweek", 1): "odps_dayofweek",
    ("dayofyear", 1): "odps_dayofyear",
    ("unix_timestamp", 0): "odps_unix_timestamp",
    ("unix_timestamp", 1): "odps_unix_timestamp",
    ("unix_timestamp", 2): "odps_unix_timestamp_of",
    ("from_unixtime", 1): "odps_from_unixtime",
    ("from_unixtime", 2): "odps_from_unixtime_as",
    ("date_format", 2): "odps_date_format",
    ("isdate", 2): "odps_isdate",
    ("next_day", 2): "odps_next_day",
    ("slice", 3): "odps_slice",
    ("get_json_object", 2): "odps_json",
    ("sign", 1): "odps_sign",
    ("url_encode", 1): "odps_url_encode",
    ("url_decode", 1): "odps_url_decode",
    ("trunc", 1): "odps_trunc",
    ("trunc", 2): "odps_trunc",
    ("regexp_substr", 2): "odps_regexp_substr",
    # takes a list, or a map
    ("size", 1): "cardinality",
}
#: function -> DuckDB's function, and the type of its first argument
DATES = {
    "odps_to_date": ("strptime", "VARCHAR"),
    "odps_to_char": ("strftime", "TIMESTAMP"),
    "odps_isdate": ("odps_is_date", "VARCHAR"),
    "odps_date_format": ("strftime", "TIMESTAMP"),
    "odps_from_unixtime_as": ("odps_unix_text", "BIGINT"),
    "odps_unix_timestamp_of": ("odps_unix_of", "VARCHAR"),
}
#: letters in the formats of date_format and from_unixtime -> DuckDB's; upper and lower case differ
JAVA_FORMAT = (
    ("yyyy", "%Y"),
    ("MM", "%m"),
    ("dd", "%d"),
    ("HH", "%H"),
    ("hh", "%I"),
    ("mm", "%M"),
    ("ss", "%S"),
    ("SSS", "%g"),
)
JAVA_DATES = ("odps_date_format", "odps_from_unixtime_as", "odps_unix_timestamp_of")
#: functions of MaxCompute that this machine does not have -> what to write instead
ABSENT = {
    "from_json": "get_json_object(x, '$.a') takes one value out of a JSON text",
    "crc32": "md5(x) is",
    "str_to_map": "split(x, ',') takes a text apart",
    "json_tuple": "get_json_object(x, '$.a') takes each value out of a JSON text",
    "parse_url": "regexp_extract(x, '^[a-z]+://([^/]+)', 1) is the host",
    "inline": "LATERAL VIEW EXPLODE(x) v AS one gives the structs, and one.a their fields",
    "hash": "its numbers would be others than MaxCompute's; md5(x) gives the same text in both",
}
#: sqlglot's names of comparisons -> (our names, the signs)
COMPARED = {
    "EQ": ("eq", "="),
    "NEQ": ("ne", "<>"),
    "GT": ("gt", ">"),
    "GTE": ("ge", ">="),
    "LT": ("lt", "<"),
    "LTE": ("le", "<="),
    "NullSafeEQ": ("same", "IS NOT DISTINCT FROM"),
}
#: functions of MaxCompute that neither sqlglot nor DuckDB has; each follows the functions it calls
_STATEMENTS = (
    "CREATE MACRO odps_unit(part) AS CASE lower(part) WHEN 'dd' THEN 'day' WHEN 'mm' THEN 'month' WHEN 'yyyy' THEN 'year' "
    "WHEN 'hh' THEN 'hour' WHEN 'mi' THEN 'minute' WHEN 'ss' THEN 'second' ELSE lower(part) END",
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
    "(x, one, other, k) AS ([substr(e, length(k) + length(other) + 1) for e in str_split(x, one) if starts_with(e, k || "
    "other)])[1]",
    "CREATE MACRO odps_find_in_set(x, many) AS CASE WHEN x IS NOT NULL AND many IS NOT NULL THEN "
    "coalesce(list_position(str_split(many, ','), x), 0) END",
    "CREATE MACRO odps_substring_index(x, sep, n) AS CASE WHEN x IS NULL OR sep IS NULL OR n IS NULL THEN NULL WHEN n = 0 OR "
    "sep = '' THEN '' ELSE array_to_string(CASE WHEN n > 0 THEN str_split(x, sep)[:n] ELSE str_split(x, sep)[n:] END, sep) END",
    "CREATE MACRO lengthb(x) AS strlen(x)",
    "CREATE MACRO odps_percentile(x, p) AS quantile_cont(CAST(x AS DOUBLE), p)",
    "CREATE MACRO tolower(x) AS lower(x)",
    "CREATE MACRO toupper(x) AS upper(x)",
    # MaxCompute truncates where DuckDB rounds; this works on the digits, because a double would not hold all of them
    "CREATE MACRO odps_whole(x) AS coalesce(TRY_CAST(regexp_extract(trim(CAST(x AS VARCHAR)), '^([+-]?[0-9]+)([.][0-9]*)?$', "
    "1) AS HUGEINT), TRY_CAST(trunc(TRY_CAST(x AS DOUBLE)) AS HUGEINT))",
    # a text used with a number becomes a DOUBLE, or null if it is no number
    "CREATE MACRO odps_number(x VARCHAR) AS TRY_CAST(x AS DOUBLE), (x) AS x",
    *(
        f"CREATE MACRO odps_{name}(a VARCHAR, b DOUBLE) AS TRY_CAST(a AS DOUBLE) {sign} b, "
        f"(a DOUBLE, b VARCHAR) AS a {sign} TRY_CAST(b AS DOUBLE), (a, b) AS a {sign} b"
        for name, sign in COMPARED.values()
    ),
    "CREATE MACRO odps_random(seed, x) AS (hash(x, seed) % 4503599627370496) / 4503599627370496",
    "CREATE MACRO odps_substr(x, n) AS CASE WHEN n = 0 OR -n > length(x) THEN left(x, 0) ELSE substr(x, n) END, "
    "(x, n, many) AS CASE WHEN n = 0 OR -n > length(x) OR many <= 0 THEN left(x, 0) ELSE substr(x, n, many) END",
    "CREATE MACRO odps_nth(x, y, n, nth) AS CASE WHEN x IS NULL OR y IS NULL THEN NULL "
    "WHEN n <= 0 THEN error('instr: the place to begin at must be 1 or more') "
    "ELSE coalesce([i for i in range(n, length(x) + 1) if substr(x, i, length(y)) = y][nth], 0) END",
    "CREATE MACRO odps_instr(x, y, n) AS odps_nth(x, y, n, 1), (x, y, n, nth) AS odps_nth(x, y, n, nth)",
    "CREATE MACRO odps_filled(found) AS found[:coalesce(list_max([i for i in range(1, len(found) + 1) if found[i] <> '']), 0)]",
    "CREATE MACRO odps_split(x, y) AS CASE WHEN x = '' THEN [''] ELSE odps_filled(str_split_regex(x, y)) END, "
    "(x, y, trimmed) AS CASE WHEN trimmed AND x <> '' THEN odps_filled(str_split_regex(x, y)) ELSE str_split_regex(x, y) END",
    "CREATE MACRO odps_split_part(x, sep, n, m) AS CASE WHEN len(str_split(x, sep)[n:m]) = 0 THEN left(x, 0) "
    "ELSE list_reduce(str_split(x, sep)[n:m], lambda one, other: one || sep || other) END",
    "CREATE MACRO odps_lpad(x, n, y) AS lpad(CAST(x AS VARCHAR), CAST(n AS INTEGER), y)",
    "CREATE MACRO odps_rpad(x, n, y) AS rpad(CAST(x AS VARCHAR), CAST(n AS INTEGER), y)",
    "CREATE MACRO odps_real(x BIGINT) AS CAST(x AS DOUBLE), (x VARCHAR) AS TRY_CAST(x AS DOUBLE), (x) AS x",
    "CREATE MACRO odps_ceil(x) AS CAST(ceil(x) AS BIGINT)",
    "CREATE MACRO odps_floor(x) AS CAST(floor(x) AS BIGINT)",
    "CREATE MACRO pmod(a, b) AS ((a % b) + b) % b",
    "CREATE MACRO odps_date_add(x, n) AS CAST(x AS DATE) + CAST(n AS INTEGER)",
    "CREATE MACRO odps_date_sub(x, n) AS CAST(x AS DATE) - CAST(n AS INTEGER)",
    "CREATE MACRO odps_add_months(x, n) AS strftime(CAST(x AS TIMESTAMP) + to_months(CAST(n AS INTEGER)), '%Y-%m-%d')",
    "CREATE MACRO odps_last_day(x) AS last_day(CAST(x AS TIMESTAMP))",
    "CREATE MACRO odps_day_number(day) AS CASE WHEN length(day) >= 2 AND (length(day) <= 3 OR lower(day) IN ('monday', "
    "'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday')) THEN list_position(['mon', 'tue', 'wed', 'thu', "
    "'fri', 'sat', 'sun'], [one for one in ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] if starts_with(one, "
    "left(lower(day), 3))][1]) END",
    "CREATE MACRO odps_next_day(x, day) AS strftime(TRY_CAST(x AS DATE) + CAST((odps_day_number(day) - isodow(TRY_CAST(x AS "
    "DATE)) + 6) % 7 + 1 AS INTEGER), '%Y-%m-%d')",
    "CREATE MACRO odps_trunc(x) AS trunc(CAST(x AS DOUBLE)), (x, n) AS trunc(CAST(x AS DOUBLE), CAST(n AS INTEGER))",
    "CREATE MACRO odps_sign(x) AS CAST(sign(CAST(x AS DOUBLE)) AS DOUBLE)",
    # as HTML forms are encoded: a blank becomes +
    "CREATE MACRO odps_url_encode(x) AS replace(replace(replace(url_encode(x), '%20', '+'), '~', '%7E'), '%2A', '*')",
    "CREATE MACRO odps_url_decode(x) AS url_decode(replace(x, '+', '%20'))",
    # a text that is no JSON gives null
    "CREATE MACRO odps_json(x, path) AS CASE WHEN json_valid(x) THEN json_extract_string(x, path) END",
    "CREATE MACRO odps_regexp_substr(x, y) AS nullif(regexp_extract(x, y), '')",
    "CREATE MACRO odps_slice(x, first, many) AS CASE WHEN x IS NULL OR first IS NULL OR many IS NULL THEN NULL "
    "WHEN first = 0 OR many < 0 THEN error('slice: the first is 1, or -1 from the end, and not 0; how many is no negative "
    "number') WHEN first < -len(x) OR many = 0 THEN x[1:0] WHEN first < 0 THEN x[len(x) + first + 1:least(len(x) + first + "
    "many, len(x))] ELSE x[first:first + many - 1] END",
    "CREATE MACRO odps_quarter(x) AS quarter(CAST(x AS TIMESTAMP))",
    "CREATE MACRO odps_weekofyear(x) AS weekofyear(CAST(x AS TIMESTAMP))",
    "CREATE MACRO odps_dayofweek(x) AS dayofweek(CAST(x AS TIMESTAMP)) + 1",
    "CREATE MACRO odps_dayofyear(x) AS dayofyear(CAST(x AS TIMESTAMP))",
    "CREATE MACRO odps_unix_timestamp() AS CAST(floor(epoch(now())) AS BIGINT), "
    "(x) AS CAST(floor(epoch(CAST(CAST(x AS TIMESTAMP) AS TIMESTAMPTZ))) AS BIGINT)",
    "CREATE MACRO odps_from_unixtime(x) AS CAST(to_timestamp(x) AS TIMESTAMP)",
    "CREATE MACRO odps_unix_text(x, form) AS strftime(CAST(to_timestamp(x) AS TIMESTAMP), form)",
    "CREATE MACRO odps_unix_of(x, form) AS CAST(floor(epoch(CAST(strptime(x, form) AS TIMESTAMPTZ))) AS BIGINT)",
    "CREATE MACRO odps_at(x, i VARCHAR) AS x[i], (x, i) AS CASE WHEN starts_with(typeof(x), 'MAP(') THEN x[i] ELSE x[i + 1] END",
    "CREATE MACRO odps_is_date(x, form) AS try_strptime(x, form) IS NOT NULL",
)
#: function -> the statement that makes it
MACROS = {macro.split("(")[0].split()[-1]: macro for macro in _STATEMENTS}
_WORD = re.compile(r"\w+")


def macros_for(query: str) -> dict[str, str]:
    """Return the functions above that a query in DuckDB's dialect may call, and those that they call.

    All of them are not made at once because that takes DuckDB longer than most queries.

    Returns:
        function -> the statement that makes it, in an order in which they can be made.
    """
    words = set(_WORD.findall(query.lower()))
    found: dict[str, str] = {}
    for name, macro in reversed(MACROS.items()):
        if name in words:
            found[name] = macro
            words.update(_WORD.findall(macro.lower()))
    return dict(reversed(found.items()))
