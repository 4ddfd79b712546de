"""Starting projects, which `akrunner init` writes: a script, a job file, a small table, a page that explains them, and a test.

::

    templates: which there are ──► files/NAME/: script, job file, README, test, as they stand  ──┐
                               └─► data: rows, texts and images, made from a seed              ──┴─► writing: all files, or none
"""
