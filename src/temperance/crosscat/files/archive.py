"""A model as one file: a zip of plain JSON and of NumPy arrays, without pickle.

    model.json       what the file is, which arrays it holds, and everything that is not an array
    arrays/NAME.npy  one array each

The zip keeps a checksum of every member, and `model.json` the shape and type of every array: a file
that was cut short, changed or written by something else is refused before any of it is used.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from temperance import __version__
from temperance.errors import FileFormatError

FORMAT = "temperance crosscat model"
FORMAT_VERSION = 1
HEADER = "model.json"


def write_model(
    path: str | os.PathLike[str], told: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write a model, or leave what was at `path` as it was."""
    path = Path(path)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "temperance": __version__,
        "arrays": {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()},
        "told": told,
    }
    beside = path.with_name(f".tmp-{path.name}-{os.getpid()}")
    try:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr(HEADER, json.dumps(header, ensure_ascii=False))
            for name, array in arrays.items():
                with file.open(f"arrays/{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(
                        member, np.ascontiguousarray(array), allow_pickle=False
                    )
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `write_model` wrote."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as file:
            header = _header(path, file)
            arrays = {
                name: _array(path, file, name, *form) for name, form in header["arrays"].items()
            }
    except FileNotFoundError:
        raise FileFormatError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path}: is a folder, and a model is one file") from None
    # The last is how zipfile says that a member is compressed in a way it does not know.
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise FileFormatError(
            f"{path}: is damaged or was not written by save ({error}): save the model again"
        ) from error
    return header["told"], arrays


def _header(path: Path, file: zipfile.ZipFile) -> dict[str, Any]:
    foreign = f"{path}: is not a CrossCat model: wanted a file that save wrote"
    try:
        header = json.loads(file.read(HEADER))
    except KeyError:
        raise FileFormatError(foreign) from None
    except ValueError as error:
        raise FileFormatError(f"{path}: {HEADER} cannot be read ({error})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileFormatError(foreign)
    if header.get("format_version") != FORMAT_VERSION:
        raise FileFormatError(
            f"{path}: has format {header.get('format_version')!r}, written by temperance "
            f"{header.get('temperance')}; this is {__version__}, which reads {FORMAT_VERSION}"
        )
    if not isinstance(header.get("arrays"), dict) or not isinstance(header.get("told"), dict):
        raise FileFormatError(f"{path}: {HEADER} is incomplete: save the model again")
    return header


def _array(path: Path, file: zipfile.ZipFile, name: str, dtype: str, shape: list[int]) -> Any:
    try:
        with file.open(f"arrays/{name}.npy") as member:
            array = np.lib.format.read_array(member, allow_pickle=False)
            member.read()  # to the end, where the checksum is looked at
    except KeyError:
        raise FileFormatError(f"{path}: the array {name!r} is not in it: save again") from None
    except ValueError as error:
        raise FileFormatError(f"{path}: the array {name!r} cannot be read ({error})") from error
    if array.dtype.str != dtype or list(array.shape) != shape:
        raise FileFormatError(
            f"{path}: the array {name!r} is {array.dtype.str} {array.shape}, not {dtype} "
            f"{tuple(shape)}: save the model again"
        )
    return array
