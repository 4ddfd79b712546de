"""Many small files: listed, read in order and ahead of whoever takes them, on this machine and at URLs.

::

    directory -> listing: name, size, time of each file -> pool: [bytes, ...], a batch ahead -> images: headers checked | texts
"""
