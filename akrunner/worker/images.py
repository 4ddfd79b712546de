"""Columns of encoded images (`dataset(..., image=)`): TensorFlow decodes, resizes and augments them.

Each call handles one image, and several calls run at the same time.

::

    bytes -> decode (JPEG, PNG, GIF, BMP) -> fit -> uint8 [height, width, channels]      may be cached (cache=)
          -> augment, at random                  -> dtype                                again in every epoch
"""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Optional, Sequence, Tuple

from akrunner.worker import tf_data

_KEYS = ("column", "size", "channels", "fit", "dtype", "augment")
_FITS = ("stretch", "crop", "pad")
_DTYPES = ("float32", "uint8")
_CHANGES = ("flip", "shift", "brightness", "contrast")
#: changes that only move pixels: they work on bytes, which is a quarter of the work of float32
_OF_BYTES = ("flip", "shift")
#: the changes of `augment=True`, which are right for nearly all photographs
_USUAL = ("flip", "shift")
#: random numbers drawn for each image
_DRAWS = 5
_LARGEST = 1 << 16
#: the first bytes of the formats that TensorFlow decodes (JPEG, PNG, GIF, BMP, and WebP in the newest TensorFlow); and how many
#: bytes of a value that is not one of them the error shows
_JPEG, _PNG = b"\xff\xd8", b"\x89P"
_GREY_OF_FEW_BITS = [b"\x01\0", b"\x02\0", b"\x04\0"]
_BEGINS, _SHOWN = (_JPEG, _PNG, b"GI", b"BM", b"RI"), 60
_HOW = "give (height, width), True for images that are of one size already, or a dict of %s" % ", ".join(_KEYS)


class Images(object):
    """The checked value of `image=`; see `BatchTaskConfig.dataset`.

    Attributes:
        column: the column of encoded images.
        size: (height, width), or None if the images need no resizing.
        channels: 1, 3 or 4.
        fit: "stretch", "crop" or "pad".
        dtype: "float32" or "uint8".
        augment: tuple of words and functions.
    """

    def __init__(self, asked: Any, schema: List[Dict[str, Any]], ignored: Sequence[str] = ()) -> None:
        """Check what `image=` asks for.

        Args:
            asked: the value of `image=`.
            schema: the columns of the table.
            ignored: the names of columns that are not read.
        Raises:
            ValueError: it is not a valid value, or there is no such column.
        """
        given = asked if isinstance(asked, dict) else {} if asked is True else {"size": asked}
        unknown = sorted(str(key) for key in given if key not in _KEYS)
        if unknown:
            raise ValueError("image=: there is no %r; %s" % (unknown[0], _HOW))
        self.size = _size(given.get("size"))
        self.channels = _one_of("channels", given.get("channels", 3), (1, 3, 4))
        self.fit = _one_of("fit", given.get("fit", "stretch"), _FITS)
        self.dtype = _one_of("dtype", given.get("dtype", "float32"), _DTYPES)
        self.augment = _augment(given.get("augment"))
        self.column = _column(given.get("column"), [column for column in schema if column["name"] not in ignored])

    @property
    def _refusal(self) -> str:
        return (
            "image=: a value of column %s is no encoded image (JPEG, PNG, GIF, BMP); another column is named in a dict, with "
            "the key column. It begins with" % self.column
        )

    @property
    def _moving(self) -> str:
        return (
            "image=: a value of column %s is a moving WEBP, which TensorFlow does not decode: akrunner pack --resize makes a "
            "PNG of its first picture" % self.column
        )

    def bytes_each(self) -> Optional[int]:
        """Return the bytes of a decoded image; None if its size is unknown before it is decoded."""
        return self.size[0] * self.size[1] * self.channels if self.size else None

    def of_decoding(self) -> Tuple[str, ...]:
        """Return what `decoded` does, in the words of the input doctor."""
        return ("images", "decodes", "resizes") if self.size else ("images", "decodes")

    def of_finishing(self) -> Tuple[str, ...]:
        """Return what `finished` does, in the words of the input doctor.

        Flips are not named: mirroring images takes no longer than batching them.
        """
        does = ["images"] + (["floats"] if self.dtype == "float32" else [])
        return tuple(does + (["augments"] if any(change != "flip" for change in self.augment) else []))

    # -- inside tf.data

    def as_written(self, function: tf_data.F) -> tf_data.F:
        """Do as `tf_data.as_written`, unless the images are augmented by a function of the script's, which AutoGraph translates."""
        return function if any(map(callable, self.augment)) else tf_data.as_written(function)

    @tf_data.as_written
    def decoded(self, columns: Dict[str, Any]) -> Dict[str, Any]:
        """Return a row's columns with uint8 pixels in place of the encoded image."""
        columns = dict(columns)
        columns[self.column] = self._pixels(columns[self.column])
        return columns

    def finished(self, columns: Dict[str, Any], draws: Any = None) -> Dict[str, Any]:
        """Return the columns with the pixels augmented and converted to `dtype`.

        Args:
            draws: random numbers from 0 to 1 for the changes; None: they are drawn here, without a seed.
        """
        import tensorflow as tf

        columns = dict(columns)
        pixels = columns[self.column]
        draws = tf.random.uniform([_DRAWS]) if self.augment and draws is None else draws
        for change in self.augment:
            if change not in _OF_BYTES:
                pixels = tf.image.convert_image_dtype(pixels, tf.float32)
            if callable(change):
                pixels = change(pixels)
            else:
                shape = pixels.shape
                pixels = _changed(tf, change, pixels, draws)
                pixels.set_shape(shape)
        dtype = tf.as_dtype(self.dtype)
        columns[self.column] = tf.image.convert_image_dtype(pixels, dtype, saturate=dtype == tf.uint8)
        return columns

    def batch(self, columns: Dict[str, Any]) -> Dict[str, Any]:
        """Decode and finish the images of a whole batch, one after another, for streams that must not be read ahead."""
        import tensorflow as tf

        columns = dict(columns)

        @self.as_written
        def one(data: Any) -> Any:
            return self.finished({self.column: self._pixels(data)})[self.column]

        columns[self.column] = tf.map_fn(one, columns[self.column], dtype=tf.as_dtype(self.dtype))
        return columns

    @tf_data.as_written
    def _pixels(self, data: Any) -> Any:
        import tensorflow as tf

        def read() -> Any:
            known = tf.reduce_any(tf.equal(tf.strings.substr(data, 0, 2), tf.constant(_BEGINS)))
            with tf.control_dependencies([tf.debugging.Assert(known, [self._refusal, tf.strings.substr(data, 0, _SHOWN)])]):
                encoded = tf.identity(data)
            pixels = self._read(tf, encoded)
            # decode_image sets no shape, because some formats have moving images
            pixels.set_shape([None, None, self.channels])
            return self._fitted(tf, pixels)

        if self.size is None:
            return read()
        shape = list(self.size) + [self.channels]
        # an empty value is a row of padding (uneven="pad"), or a null whose default is b""
        pixels = tf.cond(tf.equal(tf.strings.length(data), 0), lambda: tf.zeros(shape, tf.uint8), read)
        pixels.set_shape(shape)
        return pixels

    def _read(self, tf: Any, encoded: Any) -> Any:
        """Return uint8 [height, width, channels] of an image of any format.

        TensorFlow converts between numbers of channels for JPEG and PNG only; for the other formats it is done here.
        """
        wanted = self.channels
        begins = tf.strings.substr(encoded, 0, 2)

        def read(there: int, asked: Optional[int] = None) -> Any:
            asked = there if asked is None else asked
            return _as(tf, tf.image.decode_image(encoded, channels=asked, expand_animations=False), there, wanted)

        def webp() -> Any:
            # TensorFlow's decoder writes beyond its memory when it decodes a moving WebP
            header = tf.strings.substr(encoded + b"\0" * 21, 12, 9)
            extended = tf.equal(tf.strings.substr(header, 0, 4), b"VP8X")
            flags = tf.cast(tf.io.decode_raw(tf.strings.substr(header, 8, 1), tf.uint8)[0], tf.int32)
            moving = tf.logical_and(extended, tf.equal(tf.math.floormod(flags // 2, 2), 1))
            with tf.control_dependencies([tf.debugging.Assert(tf.logical_not(moving), [self._moving])]):
                whole = tf.identity(encoded)
            # channels=0: the decoder returns the channels that the file has, or nothing
            pixels = tf.image.decode_image(whole, channels=0, expand_animations=False)
            return tf.cond(
                tf.equal(tf.shape(pixels)[2], 4), lambda: _as(tf, pixels, 4, wanted), lambda: _as(tf, pixels, 3, wanted)
            )

        def others() -> Any:
            # the byte in which a BMP has the bits of a pixel; the value may be shorter, so zeros are appended
            bits = tf.strings.substr(encoded + b"\0" * 29, 28, 1)
            bmp = tf.equal(begins, b"BM")
            known = [
                (tf.logical_and(bmp, tf.equal(bits, b"\x20")), lambda: read(4)),
                # newer versions of TensorFlow do not accept channels=1 for a BMP
                (tf.logical_and(bmp, tf.equal(bits, b"\x08")), lambda: read(1, asked=0)),
            ]
            if hasattr(getattr(tf, "raw_ops", None), "DecodeWebP"):
                known.append((tf.equal(begins, b"RI"), webp))
            return tf.case(known, default=lambda: read(3), exclusive=True)

        def png() -> Any:
            pixels = read(wanted)
            if wanted < 4:
                return pixels
            # for grey PNGs of 1, 2 and 4 bits TensorFlow scales the fourth channel to that many bits and not to 8
            few = tf.reduce_any(tf.equal(tf.strings.substr(encoded + b"\0" * 26, 24, 2), tf.constant(_GREY_OF_FEW_BITS)))
            return tf.cond(
                few,
                lambda: tf.concat([pixels[:, :, :3], 255 * tf.cast(pixels[:, :, 3:] > 0, tf.uint8)], 2),
                lambda: pixels,
            )

        def jpeg() -> Any:
            if wanted != 1:
                return read(3)
            # TensorFlow does not convert a JPEG with four channels (CMYK) to grey
            inks = tf.equal(tf.image.extract_jpeg_shape(encoded)[2], 4)
            return tf.cond(inks, lambda: read(3), lambda: read(1))

        def usual() -> Any:
            return tf.cond(tf.equal(begins, _PNG), png, jpeg)

        return tf.cond(tf.reduce_any(tf.equal(begins, tf.constant([_JPEG, _PNG]))), usual, others)

    def _fitted(self, tf: Any, pixels: Any) -> Any:
        if self.size is None:
            return pixels
        # tf.image.resize of TensorFlow 1 aligns the corners differently
        resize = tf.compat.v2.image.resize
        height, width = self.size
        if self.fit == "stretch":
            fitted = resize(pixels, self.size)
        elif self.fit == "pad":
            fitted = tf.compat.v2.image.resize_with_pad(pixels, height, width)
        else:
            there = tf.cast(tf.shape(pixels)[:2], tf.float32)
            scale = tf.reduce_max(tf.constant([float(height), float(width)]) / there)
            larger = tf.maximum(tf.cast(tf.round(there * scale), tf.int32), tf.constant([height, width]))
            fitted = tf.image.resize_with_crop_or_pad(resize(pixels, larger), height, width)
        return tf.cast(tf.clip_by_value(tf.round(fitted), 0.0, 255.0), tf.uint8)


def _as(tf: Any, pixels: Any, there: int, wanted: int) -> Any:
    """Convert pixels to another number of channels. A fourth channel that is added makes all pixels opaque.

    Args:
        there, wanted: the number of channels before and after: 1, 3 or 4.
    """
    if there == wanted:
        return pixels
    colours = pixels[:, :, :3] if there > 1 else tf.tile(pixels[:, :, :1], [1, 1, 3])
    if wanted == 1:
        return tf.image.rgb_to_grayscale(tf.reshape(colours, tf.concat([tf.shape(pixels)[:2], [3]], 0)))
    if wanted == 3:
        return colours
    return tf.concat([colours, tf.fill(tf.concat([tf.shape(pixels)[:2], [1]], 0), tf.constant(255, tf.uint8))], 2)


def seeded_draws(tf: Any, seed: int) -> Any:
    """Return an endless dataset of the random numbers for `finished`; the same seed gives the same numbers."""
    kind = tf.data.Dataset.random if hasattr(tf.data.Dataset, "random") else tf.data.experimental.RandomDataset
    return kind(seed).map(
        tf_data.as_written(lambda value: tf.random.stateless_uniform([_DRAWS], seed=tf.stack([value, value])))
    )


def _changed(tf: Any, change: Any, pixels: Any, draws: Any) -> Any:
    """Apply one of the named changes to pixels, at random.

    Args:
        change: one of `_CHANGES`.
        pixels: numbers from 0 to 1; bytes for changes of `_OF_BYTES`.
        draws: the random numbers for this image.
    """
    if change == "flip":
        return tf.cond(draws[0] < 0.5, lambda: tf.reverse(pixels, [1]), lambda: pixels)
    if change == "shift":
        size = tf.shape(pixels)
        return tf.gather(tf.gather(pixels, _shifted(tf, size[0], draws[1])), _shifted(tf, size[1], draws[2]), axis=1)
    if change == "brightness":
        return tf.clip_by_value(pixels + 0.4 * (draws[3] - 0.5), 0.0, 1.0)
    mean = tf.reduce_mean(pixels, [0, 1], keepdims=True)
    return tf.clip_by_value((pixels - mean) * (0.75 + 0.5 * draws[4]) + mean, 0.0, 1.0)


def _shifted(tf: Any, length: Any, draw: Any) -> Any:
    """Return indices of lines of pixels, all moved by at most an eighth of the length; new lines mirror those at the edge."""
    most = length // 8
    lines = tf.range(length) + tf.cast(draw * tf.cast(2 * most + 1, tf.float32), tf.int32) - most
    return length - 1 - tf.abs(length - 1 - tf.abs(lines))


def _size(size: Any) -> Optional[Tuple[int, int]]:
    if size is None:
        return None
    try:
        height, width = (operator.index(side) for side in size)
    except (TypeError, ValueError):
        raise ValueError("image=%.100r: %s" % (size, _HOW)) from None
    if isinstance(size, (str, bytes)) or any(isinstance(side, bool) for side in size):
        raise ValueError("image=%.100r: %s" % (size, _HOW))
    if not (1 <= height <= _LARGEST and 1 <= width <= _LARGEST):
        raise ValueError("image=%r: a side has 1 to %d pixels" % ((height, width), _LARGEST))
    return height, width


def _one_of(name: str, value: Any, known: Sequence[Any]) -> Any:
    # not `value in known`: that holds for True in (1, 3, 4), and fails for an array
    if not any(type(value) is type(one) and value == one for one in known):
        raise ValueError("image={%r: %.100r}: give one of %s" % (name, value, ", ".join(map(repr, known))))
    return value


def _augment(asked: Any) -> Tuple[Any, ...]:
    if asked is None or asked is False:
        return ()
    if asked is True:
        return _USUAL
    changes = [asked] if isinstance(asked, str) or callable(asked) else asked
    if not isinstance(changes, (list, tuple)):
        changes = [changes]
    for change in changes:
        if not callable(change) and not (isinstance(change, str) and change in _CHANGES):
            raise ValueError(
                "image={'augment': %.100r}: give True, a function of one image (float32 from 0 to 1), or a list of those and "
                "of %s" % (change, ", ".join(map(repr, _CHANGES)))
            )
    return tuple(changes)


def _column(asked: Any, schema: List[Dict[str, Any]]) -> str:
    scalars = [column["name"] for column in schema if column["kind"] == "bytes" and column["shape"] == []]
    if asked is not None:
        if not isinstance(asked, str) or asked not in scalars:
            raise ValueError(
                "image={'column': %.100r}: it is no column of encoded images that is read; those of bytes: %s"
                % (asked, ", ".join(scalars) or "none")
            )
        return asked
    if "image" in scalars:
        return "image"
    # columns of text are of kind bytes, too
    binary: List[str] = [c["name"] for c in schema if c["name"] in scalars and "binary" in str(c.get("type")).lower()]
    if len(binary) != 1:
        raise ValueError(
            "image=: which column has the encoded images? Say image={'column': ...}; columns of bytes: %s"
            % (", ".join(scalars) or "none")
        )
    return binary[0]
