"""Arithmetic in `$((...))`, `((...))` and `let`: whole numbers of 64 bits, as in bash.

::

    i + 1, a ? b : c, i++, x = y * 2    a number; `assign` gets the assigned values
    10#08, 0x1f, 010                    8, 31, 8
    a name whose value is unknown       Unsure
    08, 1 / 0, 1 +                      Wrong: bash ends the command there
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+#[0-9A-Za-z]+|0[xX][0-9A-Fa-f]+|\d+(?![\w#]))|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&^|]=|[-+*/%<>=!~&^|?:(),])|(?P<bad>\S))"
)
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_ASSIGNS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="))


class Unsure(Exception):
    """The value is unknown without running the script."""


class Wrong(Exception):
    """Bash reports an error. Attributes: args: the reason."""


def names(text: str) -> list[str]:
    """Return the names of the variables to which an expression may assign."""
    found = re.findall(r"([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&^|]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)", text)
    return [one or other for one, other in found]


def number(text: str) -> int:
    """Parse a number as bash does: 010 is eight.

    Raises:
        Wrong: it has a digit that its base does not have.
        Unsure: it is too large, or its base is.
    """
    base, sign, digits = text.partition("#")
    radix = int(base) if sign else 16 if text[:2] in ("0x", "0X") else 8 if text[0] == "0" else 10
    if not 2 <= radix <= 36:
        raise Unsure
    try:
        return _fitting(int(digits if sign else text, radix) if radix != 16 or sign else int(text, 16))
    except ValueError:
        raise Wrong(f"{text} begins with 0 and is no octal number: write 10#{text}" if radix == 8 else text) from None


def _fitting(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise Unsure
    return value


class Sums:
    """Evaluates expressions in which everything has been expanded.

    Args:
        value: returns the value of a variable; "" counts as 0, None is an unknown value.
        assign: gives a variable a value.
    """

    def __init__(self, value: Callable[[str], str | None], assign: Callable[[str, str], None]) -> None:
        self._value = value
        self._assign = assign
        self._tokens: list[str] = []
        self._at = 0
        #: not 0 while the parser is in a part that is parsed but not evaluated, such as the one after `0 &&`
        self._skipped = 0

    def reckon(self, text: str) -> int:
        """Evaluate an expression. Raises: Unsure: its value is unknown; Wrong: bash reports an error."""
        found = [match for match in _TOKEN.finditer(text) if match[0].strip()]
        bad = next((match["bad"] for match in found if match["bad"]), "")
        if bad:
            raise Unsure
        self._tokens, self._at = [match[0].strip() for match in found], 0
        if not self._tokens:
            return 0
        value = self._comma()
        if self._at < len(self._tokens):
            raise Wrong(f"`{text.strip()}` is no sum")
        return value

    def _sees(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _takes(self, *signs: str) -> str:
        found = self._sees()
        if found and found in signs:
            self._at += 1
            return found
        return ""

    def _comma(self) -> int:
        value = self._assigned()
        while self._takes(","):
            value = self._assigned()
        return value

    def _assigned(self) -> int:
        name = self._sees()
        sign = self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else ""
        if not re.match(r"[A-Za-z_]", name) or sign not in _ASSIGNS:
            return self._choice()
        self._at += 2
        if sign == "=":
            return self._store(name, self._assigned())
        # take the variable's value first: the right side may change it
        left = self._named(name)
        right = self._assigned()
        return self._store(name, 0 if self._skipped else _worked(left, sign[:-1], right))

    def _store(self, name: str, value: int) -> int:
        if not self._skipped:
            self._assign(name, str(value))
        return value

    def _choice(self) -> int:
        value = self._level(0)
        if not self._takes("?"):
            return value
        first = self._maybe(bool(value), self._comma)
        if not self._takes(":"):
            raise Wrong("a `:` is missing")
        second = self._maybe(not value, self._choice)
        return first if value else second

    def _maybe(self, done: bool, read: Callable[[], int]) -> int:
        self._skipped += not done
        try:
            return read()
        finally:
            self._skipped -= not done

    def _level(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._power()
        value = self._level(level + 1)
        while True:
            sign = self._takes(*_LEVELS[level])
            if not sign:
                return value
            if sign in ("&&", "||"):
                left = bool(value)
                right = self._maybe(left == (sign == "&&"), lambda: self._level(level + 1))
                value = int((left and bool(right)) if sign == "&&" else (left or bool(right)))
                continue
            right = self._level(level + 1)
            value = 0 if self._skipped else _worked(value, sign, right)

    def _power(self) -> int:
        value = self._unary()
        if not self._takes("**"):
            return value
        right = self._power()
        if right < 0:
            # bash reports this even in a part that it does not evaluate
            raise Wrong("the exponent is less than 0")
        if self._skipped:
            return 0
        if right > 64 and abs(value) > 1:
            raise Unsure
        return _fitting(value**right)

    def _unary(self) -> int:
        sign = self._takes("!", "~", "+", "-", "++", "--")
        if not sign:
            return self._last()
        if sign in ("++", "--"):
            name = self._sees()
            if not re.match(r"[A-Za-z_]", name):
                raise Unsure
            self._at += 1
            return self._store(name, self._named(name) + (1 if sign == "++" else -1))
        value = self._unary()
        return {"!": int(not value), "~": ~value, "+": value, "-": -value}[sign]

    def _last(self) -> int:
        token = self._sees()
        if self._takes("("):
            value = self._comma()
            if not self._takes(")"):
                raise Wrong("a ) is missing")
            return value
        if re.match(r"\d", token):
            self._at += 1
            return number(token)
        if not re.match(r"[A-Za-z_]", token):
            raise Wrong(f"a number is missing in front of `{token}`" if token else "a number is missing at the end")
        self._at += 1
        value = self._named(token)
        sign = self._takes("++", "--")
        if sign:
            self._store(token, value + (1 if sign == "++" else -1))
        return value

    def _named(self, name: str) -> int:
        if self._skipped:
            return 0
        text = self._value(name)
        if text is None:
            raise Unsure
        match = re.fullmatch(r"\s*([-+]?)(\d[\w#]*)\s*", text)
        if match is None:
            if text.strip():
                # the value is an expression itself
                raise Wrong(f"{name} holds a sum that sets a variable") if names(text) else Unsure
            return 0
        return number(match[2]) * (-1 if match[1] == "-" else 1)


def _worked(left: int, sign: str, right: int) -> int:
    if sign in ("/", "%"):
        if not right:
            raise Wrong("it divides by 0")
        # as in C, division rounds towards zero
        cut = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return _fitting(cut if sign == "/" else left - cut * right)
    if sign in ("<<", ">>") and not 0 <= right < 64:
        raise Unsure
    return _fitting(int(_WORKS[sign](left, right)))


_WORKS: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}
