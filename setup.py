"""What pyproject.toml cannot say: on the package's page there is no file beside README.md, so its links and pictures lead to where the sources are."""

import re
from pathlib import Path

from setuptools import setup

here = Path(__file__).parent
source = re.search(r'^Source = "(.*)"$', (here / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE).group(1)
readme = (here / "README.md").read_text(encoding="utf-8")
# a picture is fetched by the page, and a link leads to the page about a file
readme = re.sub(r"(!\[[^\]]*\]\()(?![a-z]+:)", rf"\g<1>{source}/raw/main/", readme)
setup(
    long_description=re.sub(r"\]\((?![a-z]+:|#)", f"]({source}/blob/main/", readme),
    long_description_content_type="text/markdown",
)
