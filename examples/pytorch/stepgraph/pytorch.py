"""Training steps of PyTorch, recorded and replayed.

    recorder = Recorder()
    with recorder:
        x = recorder.input("x", (8, 1024), torch.int64)        # a tensor that the host fills before each step
        loss = recorder.output("loss", (), torch.float32)      # a tensor that the step fills
        ...                                                    # one step as always, which makes the optimizer's state
        recorder.keep_model(model)
        recorder.keep_optimizer(optimizer, model)
        for k in range(steps):
            recorder.step(k, feed, train_step)                 # launched, recorded or replayed

feed(k) hands over the inputs of step k: recorder.feed(x, batch). train_step(k) runs the whole step: forward, backward, clipping, update. It
keeps nothing of what it allocates: results go into outputs, and gradients go with zero_grad(set_to_none=True). What changes from step to
step it reads from inputs. It does not wait for the device. A step that breaks these rules is not replayed, and warnings say why.
"""
import contextlib
import ctypes
import gc
import warnings

import torch

from . import ALLOW_ALL, Error, Library, Loop, Pin, Session, Step
from .pytorch_memory import RELAXED, PoolMemory, own_stream

TYPES = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.uint8: "U8",
}
CODES = {
    torch.float32: "<f4",
    torch.float64: "<f8",
    torch.float16: "<f2",
    torch.bfloat16: "<i2",  # Of which the interface has no code: seen as what it is afterwards
    torch.int8: "|i1",
    torch.int16: "<i2",
    torch.int32: "<i4",
    torch.int64: "<i8",
    torch.uint8: "|u1",
}
NUMBERS = {
    torch.float32: ctypes.c_float,
    torch.float64: ctypes.c_double,
    torch.int8: ctypes.c_int8,
    torch.int16: ctypes.c_int16,
    torch.int32: ctypes.c_int32,
    torch.int64: ctypes.c_int64,
    torch.uint8: ctypes.c_uint8,
}
UNKNOWN_ERROR = 999  # Of the driver: what a step is told that the host itself broke
OUTSIDE = "a step is taken inside `with recorder:`, where PyTorch's current stream is the recorder's"


def warn(level, line):
    warnings.warn(line, RuntimeWarning, stacklevel=2)


class Recorder:
    """
    A session on a stream of PyTorch's, and a loop over it. Inside `with recorder:` that stream is PyTorch's current one.

    library: a stepgraph.Library. log(level, line): is given warnings; None: they become Python's. memory: see pytorch_memory. The rest goes into the
    loop's config.
    """

    def __init__(self, library=None, log=warn, log_level=None, memory=None, **config):
        torch.cuda.init()
        self.library = library or Library()
        self.device = torch.cuda.current_device()
        self.memory = memory or PoolMemory(self.library)
        self.stream = self.memory.stream
        levels = {} if log_level is None else {"log_level": log_level}
        self._log, self._trying = log or warn, False
        self.session = Session(self.library, log=self._hear, device=self.device, stream=self.stream.cuda_stream, **levels)
        self.pins = {}  # By name, with the tensor
        self._under = {}  # The pins of tensors that are made over them; an attribute of a tensor would be saved with it
        self._optimizers = []  # Each with its state and its groups
        with contextlib.ExitStack() as undo:
            undo.callback(self.session.close)
            self.loop = Loop(self.session, **config)
            self.memory.attach(self)
            self.random = Random(self)
            undo.pop_all()
        self._entered, self._taking = [], False  # What each `with` is to put back; whether a step is being taken
        self._replays, self._launched, self._told = set(), set(), set()  # Keys that are replayed, always launched, warned of,
        self._keeping = set()  # and whose steps leave what they allocate to variables of the host
        self._drawn, self._launches = {}, {}  # By key: how far a step takes the generator; its launches by kind
        self._step_now = None  # What run() is called for
        self._recording = (self.library.TURN_RECORD, self.library.TURN_LOOK, self.library.TURN_RERECORD)

    def _hear(self, level, line):
        if not self._trying:
            self._log(level, line)

    # ---- memory that stays where it is

    def pin(self, name, role, tensor):
        """Register a tensor under a name; it must live, where it is, as long as the recorder. role: "STATE", "CONST", "OUTPUT" and so on."""
        if not tensor.is_contiguous():
            raise ValueError(f"{name} is not contiguous")
        kind = getattr(self.library, "TYPE_" + TYPES.get(tensor.dtype, "BYTES"))
        pin = Pin(self.session, name, getattr(self.library, "ROLE_" + role), tensor.nbytes, tensor.data_ptr(), kind)
        self.pins[name] = pin, tensor
        return pin

    def keep_model(self, model):
        """Parameters and buffers, each under its name in the model."""
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            self.pin(name, "STATE", tensor)

    def keep_optimizer(self, optimizer, model):
        """
        The state of an optimizer that has made at least one step, under the names of its parameters.

        A state that optimizer.load_state_dict() has put in its place goes to where this one is before the next step.
        """
        for name, parameter in model.named_parameters():
            for key, value in optimizer.state.get(parameter, {}).items():
                if torch.is_tensor(value) and value.is_cuda:
                    self.pin(f"{name}.{key}", "STATE", value)
        self._optimizers.append([optimizer, optimizer.state, optimizer.param_groups])

    def _take_loaded(self, kept):
        """load_state_dict() makes all tensors of an optimizer anew, its learning rate too, and graphs know the old ones."""
        optimizer, state, groups = kept
        for parameter, values in state.items():
            loaded = optimizer.state.get(parameter, {})
            for name, value in values.items():
                if torch.is_tensor(value):
                    if name not in loaded:
                        raise RuntimeError(f"the optimizer's state was replaced by one without {name} for each parameter, and graphs need it")
                    loaded[name] = value.copy_(loaded[name])
        for group, before in zip(optimizer.param_groups, groups):
            for name, value in before.items():
                if torch.is_tensor(value) and name in group:
                    group[name] = value.fill_(group[name])
        kept[1:] = optimizer.state, optimizer.param_groups

    def _made(self, name, role, shape, dtype):
        count = torch.Size(shape).numel()
        if dtype not in CODES:
            raise ValueError(f"{name}: tensors over pins are of {', '.join(map(str, CODES))}, not of {dtype}")
        pin = Pin(self.session, name, role, count * dtype.itemsize, type=getattr(self.library, "TYPE_" + TYPES[dtype]))
        tensor = torch.as_tensor(_Memory(pin.address, shape, CODES[dtype]), device=f"cuda:{self.device}")
        if tensor.dtype != dtype:
            tensor = tensor.view(dtype)
        self.pins[name] = pin, tensor
        self._under[tensor] = pin
        return tensor

    def input(self, name, shape, dtype):
        """A tensor that recorder.feed() fills. All that is fed before a step travels to the device in one copy."""
        count = torch.Size(shape).numel()
        return self._made(name, self.library.ROLE_CELL if count == 1 else self.library.ROLE_FEED, shape, dtype)

    def output(self, name, shape, dtype):
        """A tensor that the step fills."""
        return self._made(name, self.library.ROLE_OUTPUT, shape, dtype)

    def feed(self, tensor, value):
        """The next value of an input: a CPU tensor of the same form, or a number for one element. It is copied before this returns."""
        pin = self._under[tensor]
        if not torch.is_tensor(value):
            if tensor.dtype not in NUMBERS:
                raise ValueError(f"{pin.name} is of {tensor.dtype}, and takes a tensor, not a number")
            number = NUMBERS[tensor.dtype](value)
            if isinstance(number.value, int) and number.value != value:
                raise ValueError(f"{pin.name} is of {tensor.dtype}, which cannot hold {value}")
            if pin.bytes != ctypes.sizeof(number):
                raise ValueError(f"{pin.name} has more than one element")
            return pin.feed(ctypes.byref(number), pin.bytes)
        if value.dtype != tensor.dtype or value.shape != tensor.shape or value.is_cuda:
            raise ValueError(f"{pin.name} takes {tuple(tensor.shape)} {tensor.dtype} on the CPU, not {tuple(value.shape)} {value.dtype}")
        value = value.contiguous()
        pin.feed(value.data_ptr(), value.nbytes)

    def commit(self, fresh):
        """
        New values of kept tensors, by name, that an out-of-place optimizer has made: copied to where the graph expects them, all in one launch.

        Answers the kept tensors: what the next step reads.
        """
        pairs = [self.pins[name] for name in fresh]
        for name, (pin, kept) in zip(fresh, pairs):
            if fresh[name].nbytes != kept.nbytes or not fresh[name].is_contiguous():
                raise ValueError(f"the new value of {name} has another form than the one that is kept")
        self.session.commit([pin for pin, _ in pairs], [tensor.data_ptr() for tensor in fresh.values()])
        return {name: kept for name, (_, kept) in zip(fresh, pairs)}

    # ---- steps

    def launch(self, feed, run, k=0):
        """A step as always: the first one, which makes what lives from then on, such as the optimizer's state. It is given back what it leaves unused."""
        if torch.cuda.current_stream() != self.stream:
            raise RuntimeError(OUTSIDE)
        feed(k)
        self.library.call("session_flush", self.session)
        run(k)
        torch.cuda.synchronize()
        self.memory.launched()

    def step(self, k, feed, run, key=0, rewind=None):
        """
        Step k, done once: launched, recorded or replayed. run(k) may be called several times for it, or not at all.

        key: which graph; steps of one key launch the same kernels. rewind(k): puts what run(k) changes in variables of the host back to where it
        was before, for a host that has any; without it, a step that leaves memory in the pool to such variables is always launched. Answers
        the turn that did it.
        """
        if not self._entered:
            raise RuntimeError(OUTSIDE)
        if self._taking:
            raise RuntimeError(f"step {k} is taken within another one")
        for kept in self._optimizers:
            if kept[0].state is not kept[1]:
                self._take_loaded(kept)
        first = self.random.offset()
        self._taking = True
        try:
            done, begun = self._replay(k, feed, key, first) if key in self._replays else (False, None)
            return self.loop.turn if done else self._step(k, feed, run, key, rewind, first, begun)
        except BaseException:
            self.loop.cancel()
            raise
        finally:
            self._step_now, self._taking = None, False

    def _replay(self, k, feed, key, first):
        """Whether the step is done; if it is not, the turn that has begun for it, if one is open."""
        turn = self.loop.begin(k, key)
        if turn.kind != self.library.TURN_REPLAY:
            self.loop.rungs[key] = turn.rung
            if turn.rung == self.library.RUNG_REPLAY and turn.kind not in self._recording:
                return False, turn
            self.loop.cancel()  # Some things come before a recording begins
            return False, None
        feed(k)
        drawn = self._drawn[key]
        if drawn:
            self.random.feed(first)
        if self.loop.end():
            return False, None  # Refused: the step is to be launched
        self.random.go_to(first + drawn)
        return True, None

    def _step(self, k, feed, run, key, rewind, first, begun):
        if torch.cuda.current_stream() != self.stream:
            raise RuntimeError(OUTSIDE)
        loop, library, random = self.loop, self.library, self.random
        self._prepare(k, run, key, rewind)
        flags = library.TURN_LAUNCH if key in self._launched else 0
        flags |= 0 if key in self._keeping else library.TURN_KEEPS_NOTHING
        again = True
        while again:
            random.go_to(first)
            random.settle()
            with self.memory.around():
                turn, begun = begun or loop.begin(k, key, flags), None
                if turn.feed:
                    feed(k)
                self._step_now = turn.step
                random.feed(first)  # Travels after the recording, for which PyTorch puts something else there
                if turn.kind in self._recording and turn.run:
                    self._record(turn, k, run)
                elif turn.run:
                    self._count(key)
                    run(k)
                    self._drawn[key] = random.offset() - first
                again = loop.end()
            if again and turn.run and rewind is not None:
                rewind(k)
        loop.rungs[key] = turn.rung
        (self._replays.add if turn.rung == library.RUNG_REPLAY else self._replays.discard)(key)
        random.go_to(first + self._drawn.get(key, 0))
        return turn

    def _prepare(self, k, run, key, rewind):
        """What the steps of a key will need, while they are not replayed yet."""
        if key in self._launched or self.loop.rungs.get(key, self.library.RUNG_NONE) != self.library.RUNG_NONE:
            return
        gc.collect()
        kept = self.memory.prepare()
        if kept:
            self._keeping.add(key)
        if kept and rewind is None:
            self._launched.add(key)
        if kept and key not in self._told:
            self._told.add(key)
            self._log(self.library.LOG_WARNING, f"a step keeps {sum(kept)} bytes of what it allocates, in {len(kept)} blocks: what lives from step "
                      "to step is kept with keep_model(), keep_optimizer() or pin(), and results go into outputs"
                      + ("; without rewind(), which puts the host's variables back, its steps are launched" if rewind is None else ""))
        if key not in self._launches and key in self._drawn and key not in self._launched:
            self.random.settle()
            self._launches[key] = self._try(run, k)
            if rewind is not None:
                rewind(k)

    def _try(self, run, k):
        """
        Record the step and throw it away, to see how many launches of each kind it makes: PyTorch has no place where all of them pass. What is wrong
        with it the loop's own recordings will say.
        """
        library, step = self.library, Step(self.session, "trial", ALLOW_ALL)
        self._trying = True
        try:
            with self.memory.around():
                step.record(lambda: self._run_recorded(k, run))
            stats = step.stats()
            counts = list(stats.nodes[: library.KINDS])
            counts[library.KIND_KERNEL] -= stats.pin_nodes
            return counts
        except (Error, RuntimeError):
            return [0] * library.KINDS
        finally:
            step.destroy()
            self._trying = False

    def _run_recorded(self, k, run):
        """What is recorded. Gradients of one that breaks off, which nobody has computed, are not there for the next try to add to."""
        before = [(tensor, tensor.grad) for _, tensor in self.pins.values() if tensor.requires_grad]
        try:
            with self.random.recorded(), self.memory.recorded():
                run(k)
        except BaseException:
            for tensor, gradient in before:
                tensor.grad = gradient
            raise

    def _record(self, turn, k, run):
        """An exception here is not the end: the step is launched then, and raises again if it is the step that is wrong."""
        try:
            self._run_recorded(k, run)
        except Exception as error:
            self.library.call("step_report", turn.step, b"a call of the host", UNKNOWN_ERROR)
            warnings.warn(f"step {k} was not recorded: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=4)

    def _count(self, key):
        """Tell the session how many launches the host makes."""
        for kind, count in enumerate(self._launches.get(key, ())):
            if count:
                self.library.get("session_count", self.session, kind, count)

    def mark(self, stage):
        """To be called in run(): what follows belongs to this stage, in reports and in what the audit says."""
        if self._step_now is not None:
            self.library.call("step_mark", self._step_now, stage.encode())

    def report(self):
        """What was done, how often and why, how long it takes, and whether the graph pays."""
        return self.loop.report()

    def __enter__(self):
        before = torch.cuda.current_stream()
        self.stream.wait_stream(before)
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.cuda.stream(self.stream))
            stack.callback(before.wait_stream, self.stream)
            stack.enter_context(self.random.in_place())
            self._entered.append(stack.pop_all())
        return self

    def __exit__(self, *raised):
        self._entered.pop().close()

    def close(self):
        """Frees graphs and pins. Tensors that input() and output() made are gone with it."""
        torch.cuda.synchronize()
        self.session.close()


class _Memory:
    """Device memory, as PyTorch takes it from others."""

    def __init__(self, address, shape, code):
        self.__cuda_array_interface__ = {"version": 3, "data": (address, False), "shape": tuple(shape), "typestr": code, "strides": None}


class Random:
    """
    PyTorch's random numbers in a recorded step.

    A kernel that is launched is given the generator's seed and offset by value. A kernel that is recorded reads them from two words on the device,
    which PyTorch makes for a generator that is registered with a graph of PyTorch's own. Here they are made in a pool of their own, which tells
    where they lie, and are cells: each step is fed the seed and the offset that a launched step would begin with, and draws the same numbers.

    PyTorch lets such kernels be recorded only while it records itself, so an empty recording of PyTorch's runs beside ours. From 2.13 on
    it looks at the very recording that a kernel goes to: there these words cannot be had, and a step that draws is refused by PyTorch, and
    launched.
    """

    _sides = {}  # By device: the stream of such recordings

    def __init__(self, recorder):
        self.recorder, self.cells, self.searched, self.beside = recorder, None, False, []
        self.default = torch.cuda.default_generators[recorder.device]
        self.generator = torch.Generator("cuda")
        if recorder.device not in self._sides:
            self._sides[recorder.device] = own_stream(recorder.session)
        self.side = self._sides[recorder.device]
        self.exchange = recorder.session.symbol("cuThreadExchangeStreamCaptureMode", 10010, ctypes.c_void_p)
        self.synchronize = recorder.session.symbol("cuStreamSynchronize", 2000, ctypes.c_void_p)
        self.anchor = torch.cuda.CUDAGraph(keep_graph=True)  # Keeps the words alive
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # That registering does nothing is found out below
            blocks = recorder.memory.blocks_of(lambda: self.anchor.register_generator_state(self.generator))
        if len(blocks) == 2:
            self._find(blocks)
        self.searched = True

    def _find(self, blocks):
        """Which of the two is the seed: a recording of PyTorch's begins by filling them."""
        library, session = self.recorder.library, self.recorder.session
        pins = [Pin(session, f"random {i}", library.ROLE_CELL, 8, address, library.TYPE_U64) for i, address in enumerate(blocks)]
        self.generator.manual_seed(0x5EED)
        with self.current(), self.recorded():
            pass
        torch.cuda.synchronize()
        values = [int.from_bytes(pin.read(), "little") for pin in pins]
        if sorted(values) == [0, 0x5EED]:
            self.cells = pins if values[1] == 0 else pins[::-1]

    @contextlib.contextmanager
    def current(self):
        """The generator of this recorder is PyTorch's default one."""
        before = self.default.graphsafe_get_state()
        self.default.graphsafe_set_state(self.generator)
        try:
            yield
        finally:
            self.default.graphsafe_set_state(before)

    @contextlib.contextmanager
    def in_place(self):
        """The same, and it goes on with the numbers of the default one, which goes on with those of this one afterwards."""
        self.generator.set_state(self.default.get_state())
        try:
            with self.current():
                yield
        finally:
            self.default.set_state(self.generator.get_state())

    @contextlib.contextmanager
    def recorded(self):
        """Lets kernels that draw be recorded, by an empty recording of PyTorch's on another stream."""
        if self.cells is None and self.searched:
            yield
            return
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.stream(self.side):
            try:
                graph.capture_begin(capture_error_mode="relaxed")  # Nothing that goes wrong in ours breaks this one
            except BaseException:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(graph))  # Where PyTorch destroys a graph that could not begin, it ends the process
                raise
        self.beside.append(graph)
        try:
            yield
        finally:
            with torch.cuda.stream(self.side), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # That it is empty
                graph.capture_end()
            self._wait()

    def _wait(self):
        """For the filling of the words. While this thread records, it may not wait for another stream without asking to."""
        mode = ctypes.c_int(RELAXED)
        self.exchange(ctypes.byref(mode))
        self.synchronize(self.side.cuda_stream)
        self.exchange(ctypes.byref(mode))

    # ---- what a step does

    def offset(self):
        return self.generator.get_offset()

    def go_to(self, offset):
        self.generator.set_offset(offset)
        self.beside.clear()

    def settle(self):
        """Before a recording may begin: PyTorch fills the words when it does, and not before the steps so far have read them."""
        self.side.wait_stream(self.recorder.stream)

    def feed(self, offset):
        if self.cells is not None:
            seed_cell, offset_cell = self.cells
            seed_cell.feed(ctypes.byref(ctypes.c_uint64(self.generator.initial_seed())), 8)
            offset_cell.feed(ctypes.byref(ctypes.c_uint64(offset)), 8)
