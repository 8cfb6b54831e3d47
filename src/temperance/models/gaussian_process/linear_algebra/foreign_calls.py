"""How a compiled program calls back into Python with bare addresses.

XLA hands a foreign function one *call frame*: where the arguments and the results lie in memory,
with their types and shapes. The layouts below are those of XLA's C interface, version 0. A handler
that is a `ctypes` function reads the frame in a few microseconds and works in place:

    nothing is copied             `jax.pure_callback` copies every argument into an array of JAX
    nothing waits                 such a copy is made by the threads that run the program, and where
                                  they are few, all of them may be waiting for it
    nothing has to be compiled    the library's routines are already in memory

A foreign function called through `ctypes` runs without Python's lock, which the handler holds only
between such calls.
"""

import ctypes
import math
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p

import jax

MAJOR = 0
INTERNAL = 13  # XLA's code for an error inside
METADATA = 1  # the extension by which XLA asks which version a handler was written for
SINGLE, DOUBLE = 11, 12
ITEMSIZE = {SINGLE: 4, DOUBLE: 8}

Handler = CFUNCTYPE(c_void_p, c_void_p)
_handlers: list[object] = []  # what XLA holds the address of must outlive every program


class Buffer(Structure):
    """An array of a running program."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.dims[: self.rank])

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    def items(self, rank: int) -> range:
        """The addresses of the arrays of `rank` axes that lie behind each other in it."""
        shape, start = self.shape, self.data
        batch = len(shape) - rank
        step = math.prod(shape[batch:]) * self.itemsize
        return range(start, start + math.prod(shape[:batch]) * step, step)


class _Buffers(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", c_void_p),
        ("items", POINTER(POINTER(Buffer))),
    )


class _Version(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("major", c_int),
        ("minor", c_int),
    )


class _ErrorArguments(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("message", c_char_p),
        ("code", c_int),
    )


class _Api(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("version", _Version),
        ("internal", c_void_p),
        ("create_error", CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))),
    )


class _Metadata(Structure):
    _fields_ = (("struct_size", c_size_t), ("version", _Version))


class _Extension(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("type", c_int),
        ("next", c_void_p),
        ("metadata", POINTER(_Metadata)),
    )


class _CallFrame(Structure):
    _fields_ = (
        ("struct_size", c_size_t),
        ("extension", POINTER(_Extension)),
        ("api", POINTER(_Api)),
        ("context", c_void_p),
        ("stage", c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
    )


def register(name: str, function: Callable[[Sequence[Buffer], Sequence[Buffer]], None]) -> None:
    """Let programs on CPUs call `function(arguments, results)` by `name`."""

    def handle(address: int) -> int | None:
        frame = _CallFrame.from_address(address)
        api = frame.api.contents
        try:
            if frame.extension and frame.extension.contents.type == METADATA:
                version = frame.extension.contents.metadata.contents.version
                # Minor versions only add to what is read here, so that any of them will do.
                version.major, version.minor = MAJOR, api.version.minor
            else:
                function(_contents(frame.arguments), _contents(frame.results))
        except BaseException as error:  # noqa: BLE001 - nothing above this frame is Python
            message = f"{name}: {type(error).__name__}: {error}".encode()
            fields = (ctypes.sizeof(_ErrorArguments), None, message, INTERNAL)
            return api.create_error(_ErrorArguments(*fields))
        return None

    handler = Handler(handle)
    _handlers.append(handler)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")


def _contents(buffers: _Buffers) -> list[Buffer]:
    return [buffers.items[i].contents for i in range(buffers.size)]
