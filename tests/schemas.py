"""What is documented as a JSON schema, and checked by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema


def checker(schema: Any) -> Callable[[Any], None]:
    """Return what raises `jsonschema.ValidationError` of a value that does not fit. The schema is looked at once: `jsonschema.validate` does so for
    each value, which takes 20 times as long as the value does."""
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema).validate  # type: ignore[no-any-return]
