"""libstepgraph from Python, through ctypes: nothing to compile. Copy this folder into your project.

    library = stepgraph.Library()             # STEPGRAPH_LIBRARY, else the system's libstepgraph.so.0
    library.call("session_flush", session)    # any call of the C interface, by its name without prefix; raises Error with the library's words
    library.STEP_TIMING                       # any constant
    library.new("step_config", flags=0)       # any struct, its size set; where a field holds a function, one of Python's

The classes are what a host needs: Session, Pin, Arena, Step, Audit, Loop. Objects of theirs may be given to calls as they are. What each call does is
said in the C headers. stepgraph.pytorch builds on this for PyTorch.
"""
import ctypes
import os
import time
import traceback

from . import abi

TYPES = {
    "char": ctypes.c_char,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "pointer": ctypes.c_void_p,
    "text": ctypes.c_char_p,
    "word": ctypes.c_int,
    "nothing": None,
}
UINT32_MAX = 2**32 - 1


def _struct(name, fields):
    made = []
    for words in fields:
        field, kind, *length = words.split()
        made.append((field, TYPES[kind] * int(length[0]) if length else TYPES[kind]))
    return type(name, (ctypes.Structure,), {"_fields_": made})


def _function(signature, function):
    """To be called by the library. What it raises is printed and answered by a status; left to itself, ctypes answers anything, OK as well."""

    def called(*given):
        try:
            return function(*given) or 0  # None: OK
        except BaseException:
            traceback.print_exc()
            return abi.CONSTANTS["ERR_ARGUMENT"]

    return ctypes.CFUNCTYPE(*(TYPES[word] for word in signature.split()))(called)


ALLOW_ALL = sum(value for name, value in abi.CONSTANTS.items() if name.startswith("STEP_ALLOW_"))
STRUCTS = {name: _struct(name, fields) for name, fields in abi.STRUCTS.items()}


class Error(Exception):
    """A call failed or refused; the text is the library's."""

    def __init__(self, status, words):
        super().__init__(words)
        self.status = status


class Library:
    def __init__(self, path=None):
        self.entry = ctypes.CDLL(path or os.environ.get("STEPGRAPH_LIBRARY") or "libstepgraph.so.0")
        for name, words in abi.CALLS.items():
            call = getattr(self.entry, "stepgraph_" + name, None)
            if call is not None:  # An older library lacks some.
                call.restype, *call.argtypes = [TYPES[word] for word in words.split()]

    def __getattr__(self, name):
        try:
            return abi.CONSTANTS[name]
        except KeyError:
            raise AttributeError(f"no constant STEPGRAPH_{name}") from None

    @staticmethod
    def new(struct, /, **fields):
        """A struct with its size set. Strings, functions and structs that it refers to live as long as it does."""
        record = STRUCTS[struct]()
        record.size = ctypes.sizeof(record)
        record.alive = []
        for name, value in fields.items():
            if name not in (known := [field for field, *_ in record._fields_]):
                raise TypeError(f"stepgraph_{struct} has no field {name!r}: {', '.join(known[1:])}")
            if isinstance(value, str):
                record.alive.append(ctypes.create_string_buffer(os.fsencode(value)))
                value = ctypes.addressof(record.alive[-1])
            elif callable(value):
                record.alive.append(_function(abi.FUNCTIONS[f"{struct}.{name}"], value))
                value = ctypes.cast(record.alive[-1], ctypes.c_void_p)
            elif isinstance(value, ctypes.Structure):
                record.alive.append(value)
                value = ctypes.addressof(value)
            setattr(record, name, value)
        return record

    def get(self, name, *arguments):
        """Whatever a call answers."""
        return getattr(self.entry, "stepgraph_" + name)(*arguments)

    def call(self, name, *arguments):
        """A call that answers a status."""
        status = getattr(self.entry, "stepgraph_" + name)(*arguments)
        if status != 0:
            self.fail(status)

    def fail(self, status):
        raise Error(status, self.last_words() or f"status {self.get('status_name', status).decode()}")

    def last_words(self):
        info = self.new("error_info")
        self.entry.stepgraph_last_error(ctypes.byref(info))
        return info.message.decode(errors="replace")

    def filled(self, call, struct, *handles):
        """What a call fills in: library.filled("step_get_stats", "step_stats", step)."""
        record = self.new(struct)
        self.call(call, *handles, ctypes.byref(record))
        return record

    def made(self, call, *arguments):
        """The handle that a call makes."""
        handle = ctypes.c_void_p()
        self.call(call, *arguments, ctypes.byref(handle))
        return handle

    def text(self, call, *arguments):
        return self.get(call, *arguments).decode(errors="replace")


class Handle:
    """An object of the library's, to be given to calls as it is. session: what it belongs to, whose functions the library may call."""

    def __init__(self, library, handle, session=None):
        self.library, self._as_parameter_, self.session = library, handle, session

    def gone(self):
        """From now on it is NULL, which calls refuse."""
        self._as_parameter_ = None


class Session(Handle):
    """A device, a stream, a registry of pins. log(level, line) is given the lines up to log_level, warnings if it is not set."""

    def __init__(self, library, log=None, **config):
        if log is not None:
            config["log"] = lambda user, level, line: log(level, line.decode(errors="replace"))
            config.setdefault("log_level", library.LOG_WARNING)
        self.config = library.new("session_config", **config)
        self.pins, self.steps, self.loops, self.arenas = [], [], [], []
        super().__init__(library, library.made("session_open", ctypes.byref(self.config)))

    @property
    def stream(self):
        return self.library.get("session_stream", self)

    def info(self):
        return self.library.filled("session_get_info", "session_info", self)

    def wait(self):
        self.library.call("session_wait", self)

    def commit(self, pins, addresses):
        """Copy the new value of each pin from where it is to where the graph expects it, all in one launch."""
        count = len(pins)
        handles = (ctypes.c_void_p * count)(*(pin._as_parameter_ for pin in pins))
        self.library.call("pin_commit_many", self, count, handles, (ctypes.c_uint64 * count)(*addresses))

    def symbol(self, name, version, *argument_types):
        """An entry point of the driver; its result is 0 or a code."""
        address = self.library.get("session_symbol", self, name.encode(), version)
        if not address:
            raise Error(0, f"the driver has no {name}")
        return ctypes.CFUNCTYPE(ctypes.c_int, *argument_types)(address)

    def unread(self, *entries):
        """Bytes of arguments that no kernel reads, instead of those said before: (kernels, argument or None for any, its bytes, offset, bytes) each."""
        given = (STRUCTS["unread"] * len(entries))()
        patterns = [ctypes.create_string_buffer(entry[0].encode()) for entry in entries]
        for record, pattern, (_, argument, argument_bytes, offset, count) in zip(given, patterns, entries):
            record.pattern, record.argument = ctypes.addressof(pattern), UINT32_MAX if argument is None else argument
            record.argument_bytes, record.offset, record.bytes = argument_bytes, offset, count
        self.library.call("session_set_unread", self, given, len(entries))

    def record(self, name, enqueue, flags=0):
        """A READY step: what enqueue() enqueues. A refusal raises an Error with the audit's text."""
        step = Step(self, name, flags)
        try:
            step.record(enqueue)
        except BaseException:
            step.destroy()
            raise
        return step

    def compare(self, a, b):
        """Recordings of step k against recordings of step k + 1: a list of each, in the order of recording."""
        given = [(ctypes.c_void_p * len(steps))(*(step._as_parameter_ for step in steps)) for steps in (a, b)]
        began = time.perf_counter_ns()
        handle = self.library.made("audit_compare_many", len(a), given[0], len(b), given[1])
        return Audit(self.library, handle, (time.perf_counter_ns() - began) / 1000)

    def close(self):
        """With all that belongs to it. Nothing of it can be used afterwards; to close it once more does nothing."""
        for members, destroy, use in (
            (self.loops, "loop_destroy", self.library.get),
            (self.steps, "step_destroy", self.library.get),
            (self.arenas, "arena_destroy", self.library.call),
            (self.pins, "pin_destroy", self.library.call),
        ):
            while members:
                use(destroy, members[-1])
                members.pop().gone()
        self.library.call("session_close", self)
        self.gone()


class Pin(Handle):
    """Named device memory with a stable address; the library's own, or at the address that is given."""

    def __init__(self, session, name, role, extent, address=0, type=0):
        library = session.library
        config = library.new("pin_config", name=name, role=role, bytes=extent, address=address, type=type)
        super().__init__(library, library.made("pin_create", session, ctypes.byref(config)), session)
        self.name, self.bytes = name, extent
        self.address = library.get("pin_address", self)
        self._feed = library.entry.stepgraph_pin_feed
        session.pins.append(self)

    def feed(self, address, count):
        """The next value, from host memory. It is copied before this returns."""
        status = self._feed(self._as_parameter_, address, count)
        if status != 0:
            self.library.fail(status)

    def feed_bytes(self, data):
        data = bytes(data)  # The length of an array is not that of its bytes.
        self.feed(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))

    def write(self, data):
        """In stream order, and not as a part of a step: a parameter's first value, a checkpoint. data: as many bytes as the pin has."""
        data = bytes(data)
        self.library.call("pin_write", self, data, len(data))

    def read(self):
        """What it holds once all that is queued has run."""
        data = ctypes.create_string_buffer(self.bytes)
        self.library.call("pin_read", self, data, self.bytes)
        return data.raw


class Arena(Handle):
    """Device memory for a host's allocator, whose blocks stay valid for a graph."""

    def __init__(self, session, name, extent, quarantine=0):
        library = session.library
        config = library.new("arena_config", name=name, bytes=extent, quarantine_bytes=quarantine)
        super().__init__(library, library.made("arena_create", session, ctypes.byref(config)), session)
        session.arenas.append(self)

    def allocate(self, extent):
        address = ctypes.c_uint64()
        self.library.call("arena_alloc", self, extent, None, ctypes.byref(address))
        return address.value

    def free(self, address):
        self.library.call("arena_free", self, address)


class Step(Handle):
    def __init__(self, session, name, flags):
        library = session.library
        self.name, self.end_us = name, 0.0
        config = library.new("step_config", name=name, flags=flags)
        super().__init__(library, library.made("step_begin", session, ctypes.byref(config)), session)
        session.steps.append(self)

    def record(self, enqueue):
        library = self.library
        library.call("step_prepare", self)
        library.call("step_capture", self)
        failure = None
        try:
            enqueue()
        except BaseException as error:  # The stream must be given back whatever happened.
            failure = error
        began = time.perf_counter_ns()
        status = library.get("step_end", self)
        self.end_us = (time.perf_counter_ns() - began) / 1000
        words = library.last_words()
        if failure is not None:
            library.get("step_reset", self)  # Half a step is not to be replayed.
            broke = f"; the library says: {words}" if status == library.ERR_CAPTURE else ""
            try:
                if not isinstance(failure, Exception):  # An interrupt, and no fault of the step
                    raise failure
                raise RuntimeError(f"step {self.name!r} was not recorded to its end: {type(failure).__name__}: {failure}{broke}") from failure
            finally:
                del failure  # It knows this call, which would keep it, and with it all that the step held
        if status == library.ERR_REFUSED:
            words = self.audit().text
        if status != 0:
            raise Error(status, words)

    def replay(self):
        self.library.call("step_replay", self)

    def destroy(self):
        if self in self.session.steps:  # Not gone with it
            self.library.get("step_destroy", self)
            self.session.steps.remove(self)
            self.gone()

    def stats(self):
        return self.library.filled("step_get_stats", "step_stats", self)

    def audit(self):
        return Audit(self.library, self.library.made("audit_step", self))


class Audit:
    """A report, copied: a summary, its findings as dictionaries, its text. A handle that is borrowed is left alone."""

    def __init__(self, library, handle, taken_us=0.0, borrowed=False):
        self.taken_us = taken_us
        summary = library.filled("audit_get_summary", "audit_summary", handle)
        self.summary = {name: getattr(summary, name) for name, _ in summary._fields_ if name != "size"}
        self.text = library.text("audit_text", handle)
        prefix = "FINDING_"
        kinds = {value: name[len(prefix) :] for name, value in abi.CONSTANTS.items() if name.startswith(prefix)}
        self.findings = []
        for index in range(summary.kept):
            finding = library.new("finding")
            library.call("audit_get", handle, index, ctypes.byref(finding))
            found = {name: getattr(finding, name) for name, _ in finding._fields_ if name != "size"}
            for name, value in found.items():
                if isinstance(value, bytes):
                    found[name] = value.decode(errors="replace")
            found["kind"] = kinds[finding.kind]
            self.findings.append(found)
        if not borrowed:
            library.get("audit_destroy", handle)

    @property
    def faults(self):
        return [finding for finding in self.findings if finding["fault"]]

    @property
    def accused(self):
        """Faults, and what is in doubt."""
        return [finding for finding in self.findings if finding["fault"] or finding["doubtful"]]

    def of(self, kind):
        return [finding for finding in self.faults if finding["kind"] == kind]


class Loop(Handle):
    """
    Decides for each step how it is done. After begin() the fields of loop.turn say what to do; after end(), whether to do it again:

        again = True
        while again:
            turn = loop.begin(k)
            if turn.feed: ...    # hand over the inputs of step k
            if turn.run: ...     # enqueue step k
            again = loop.end()

    Where one of these raises, cancel() gives the turn up; until then the stream may be recording.
    """

    def __init__(self, session, **config):
        library = session.library
        self.config = library.new("loop_config", **config)
        super().__init__(library, library.made("loop_create", session, ctypes.byref(self.config)), session)
        self.turn = library.new("turn")
        self._turn = ctypes.byref(self.turn)
        self.rungs = {}  # By key, for a host that notes them: how its steps were done when that was last looked at
        self._begin, self._end = library.entry.stepgraph_loop_begin, library.entry.stepgraph_loop_end
        session.loops.append(self)

    def begin(self, k, key=0, flags=0):
        turn = self.turn
        turn.key, turn.flags = key, flags
        status = self._begin(self._as_parameter_, k, self._turn)
        if status != 0:
            self.library.fail(status)
        return turn

    def end(self):
        status = self._end(self._as_parameter_, self._turn)
        if status != 0:
            self.library.fail(status)
        return self.turn.again

    def cancel(self):
        self.library.call("loop_cancel", self)

    def drop(self, key, why=None):
        """Forget the graph of a key and what was decided against it; it is recorded anew."""
        self.library.call("loop_drop", self, key, why and why.encode())
        self.turn.rung = self.library.RUNG_NONE
        self.rungs.clear()

    def stats(self):
        return self.library.filled("loop_get_stats", "loop_stats", self)

    def verdict(self, key=0):
        return self.library.filled("loop_get_verdict", "verdict", self, key)

    def audit(self, key=0):
        """The comparison of the two recordings, or why one was refused; None if there is none yet."""
        handle = self.library.get("loop_audit", self, key)
        return Audit(self.library, handle, borrowed=True) if handle else None

    def relaxed(self, key=0):
        """What relaxing the graph of a key found and did; None if it was not relaxed."""
        handle = self.library.get("loop_relax", self, key)
        return self.library.text("relax_text", handle) if handle else None

    def report(self, form=1):
        """A text for people, or with library.REPORT_JSON the same as data."""
        text = ctypes.c_char_p()
        self.library.call("loop_report", self, form, ctypes.byref(text))
        return text.value.decode(errors="replace")
