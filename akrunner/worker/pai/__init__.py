"""PAI's modules, as its scripts import them: `common_io`, `paiio`, `pai`. This directory is on the module path of tasks whose job has tables."""
