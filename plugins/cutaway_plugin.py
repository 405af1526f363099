"""Plugins of Cutaway in Python: the structs of cutaway_plugin.h by ctypes.

    from cutaway_plugin import plugin

    mine = plugin("mine", "1.0", "Asks whether the graph has a product")

    @mine.oracle("has_product", "Fails while the graph has a product")
    def has_product(graph, host):
        return "aten.mm.default" in graph

A pass and a coloring return or report in the same way; what is raised becomes the call's failure. Cutaway runs the
file as `python3 -I` in a process with limits, and `processes` says whether it may start others.
"""
import ctypes
import runpy
import sys

ABI = 1
_OK, _YES, _FAILED = 0, 1, 2


class _Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    def bytes(self):
        return ctypes.string_at(self.data, self.size) if self.size else b""


class _Host(ctypes.Structure):
    pass


_host = ctypes.POINTER(_Host)
_str = ctypes.c_char_p
_Host._fields_ = [
    ("size", ctypes.c_size_t),
    ("emit", ctypes.CFUNCTYPE(None, _host, _str, _Text)),
    ("fail", ctypes.CFUNCTYPE(None, _host, _str)),
    ("setting", ctypes.CFUNCTYPE(_str, _host, _str)),
    ("rewrite", ctypes.CFUNCTYPE(None, _host, _str, _str, _str)),
    ("color", ctypes.CFUNCTYPE(None, _host, _str, ctypes.c_double, _str, _str)),
    ("say", ctypes.CFUNCTYPE(None, _host, _str)),
]
_Run = ctypes.CFUNCTYPE(ctypes.c_int, _host, _Text)
_RunFile = ctypes.CFUNCTYPE(ctypes.c_int, _host, _str, _Text)
_named = [("size", ctypes.c_size_t), ("name", _str), ("summary", _str)]


class _Pass(ctypes.Structure):
    _fields_ = _named + [("place", _str), ("after", _str), ("settings", _str), ("run", _Run)]


class _Importer(ctypes.Structure):
    _fields_ = _named + [("patterns", _str), ("run", _RunFile)]


class _Oracle(ctypes.Structure):
    _fields_ = _named + [("run", _Run)]


class _Coloring(ctypes.Structure):
    _fields_ = _named + [("unit", _str), ("run", _Run)]


class _Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dtype", _str), ("rank", ctypes.c_size_t),
                ("sizes", ctypes.POINTER(ctypes.c_int64)), ("data", _Text),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("memory", ctypes.c_void_p)]


_RunJudge = ctypes.CFUNCTYPE(ctypes.c_int, _host, ctypes.POINTER(_Tensor), ctypes.POINTER(_Tensor))


class _Judge(ctypes.Structure):
    _fields_ = _named + [("run", _RunJudge)]


class _Argument(ctypes.Structure):
    pass


_Argument._fields_ = [("size", ctypes.c_size_t), ("name", _str), ("kind", ctypes.c_int), ("integer", ctypes.c_int64),
                      ("real", ctypes.c_double), ("text", _str), ("tensor", ctypes.POINTER(_Tensor)),
                      ("items", ctypes.POINTER(ctypes.POINTER(_Argument)))]


class _Call(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("op", _str), ("args", ctypes.POINTER(ctypes.POINTER(_Argument))),
                ("results", ctypes.POINTER(ctypes.POINTER(_Tensor))), ("threads", ctypes.c_int)]


_RunCall = ctypes.CFUNCTYPE(ctypes.c_int, _host, ctypes.POINTER(_Call))


class _Library(ctypes.Structure):
    _fields_ = _named + [("ops", _str), ("takes", _RunCall), ("run", _RunCall)]


class _Plugin(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("abi", ctypes.c_uint32),
        ("processes", ctypes.c_uint32),
        ("name", _str),
        ("version", _str),
        ("summary", _str),
        ("rules", _str),
        ("passes", ctypes.POINTER(ctypes.POINTER(_Pass))),
        ("importers", ctypes.POINTER(ctypes.POINTER(_Importer))),
        ("oracles", ctypes.POINTER(ctypes.POINTER(_Oracle))),
        ("colorings", ctypes.POINTER(ctypes.POINTER(_Coloring))),
        ("operators", _str),
        ("judges", ctypes.POINTER(ctypes.POINTER(_Judge))),
        ("libraries", ctypes.POINTER(ctypes.POINTER(_Library))),
    ]


def _encoded(text):
    return None if text is None else str(text).encode()


class Host:
    """Through which a call answers; the functions of ct_host."""

    def __init__(self, pointer):
        self._pointer, self._host = pointer, pointer.contents

    def emit(self, name, text):
        data = text if isinstance(text, bytes) else text.encode()
        held = ctypes.create_string_buffer(data, len(data))
        self._host.emit(self._pointer, _encoded(name), _Text(ctypes.cast(held, ctypes.c_void_p), len(data)))

    def setting(self, key):
        value = self._host.setting(self._pointer, _encoded(key))
        return None if value is None else value.decode()

    def rewrite(self, node, rule, why=""):
        self._host.rewrite(self._pointer, _encoded(node), _encoded(rule), _encoded(why))

    def color(self, node, number=0.0, kind=None, why=""):
        self._host.color(self._pointer, _encoded(node), number, _encoded(kind), _encoded(why))

    def say(self, sentence):
        self._host.say(self._pointer, _encoded(sentence))

    def fail(self, why):
        self._host.fail(self._pointer, _encoded(why))


_codes = {"f32": "f", "f64": "d", "i32": "i", "i64": "q", "u8": "B", "b8": "?"}


class Tensor:
    """dtype as annotations have it ("f32"), and sizes. The elements are in row-major order, but for operands of a
    library, whose strides say where they are. Of a library's result `memory` is where its elements go, or None."""

    def __init__(self, pointer):
        given = pointer.contents
        self.dtype, self.sizes = given.dtype.decode(), [given.sizes[i] for i in range(given.rank)]
        self.strides = [given.strides[i] for i in range(given.rank)] if given.strides else None
        self._text = given.data
        self.memory = self._bytes_at(given.memory) if given.memory else None

    def _bytes_at(self, address):
        return memoryview((ctypes.c_char * self._text.size).from_address(address)).cast("B")

    @property
    def data(self):
        """The elements' bytes, copied."""
        return self._text.bytes()

    @property
    def view(self):
        """The same where they lie; of an operand of a library it cannot be written to."""
        return self._bytes_at(self._text.data).toreadonly() if self._text.size else memoryview(b"")

    def values(self):
        """Of f32, f64, i32, i64, u8 and b8: a list of numbers, as they lie."""
        return self.view.cast(_codes[self.dtype]).tolist()

    def fill(self, numbers):
        """Writes a library's result, row by row, where somebody reads it."""
        if self.memory is not None:
            into = self.memory.cast(_codes[self.dtype])
            for place, number in enumerate(numbers):
                into[place] = number


def _items(pointer):
    place = 0
    while pointer and pointer[place]:
        yield pointer[place]
        place += 1


def _value(pointer):
    given = pointer.contents
    text = given.text.decode() if given.text else ""
    return (None, Tensor(given.tensor) if given.tensor else None, given.integer, given.real, bool(given.integer), text,
            text, [_value(item) for item in _items(given.items)] if given.kind == 7 else None)[given.kind]


class Call:
    """A call for a library: `op`, `args` by the names of the operator's parameters (tensors, numbers, texts, lists),
    `results`, which are tensors, and how many `threads` it may use."""

    def __init__(self, pointer):
        given = pointer.contents
        self.op, self.threads = given.op.decode(), given.threads
        self.args = {item.contents.name.decode(): _value(item) for item in _items(given.args)}
        self.results = [Tensor(item) for item in _items(given.results)]


class Plugin:
    def __init__(self, name, version, summary, rules=None, processes=0, operators=None):
        self._operators = _encoded(operators)
        self._texts = [_encoded(name), _encoded(version), _encoded(summary), _encoded(rules)]
        self._processes = processes
        self._lists = {"passes": [], "importers": [], "oracles": [], "colorings": [], "judges": [],
                       "libraries": []}

    def _add(self, key, struct, run, name, summary, middle, *calls):
        def guarded(call):
            def answer(pointer, *given):
                host = Host(pointer)
                try:
                    return call(host, *given)
                except BaseException as error:  # nothing may pass through C
                    host.fail("%s: %s" % (type(error).__name__, error))
                    return _FAILED

            return run(answer)

        texts = [_encoded(text) for text in [name, summary, *middle]]
        self._lists[key].append(struct(ctypes.sizeof(struct), *texts, *[guarded(call) for call in calls]))

    def transform(self, name, summary, place="post_grad_custom_post_pass", after=None, settings=None):
        """A pass: the function gets (graph, host) and returns the new text, or None for no change."""

        def add(function):
            def call(host, text):
                made = function(text.bytes().decode(), host)
                if made is not None:
                    host.emit("graph", made)
                return _OK

            self._add("passes", _Pass, _Run, name, summary, [place, after, settings], call)
            return function

        return add

    def importer(self, name, summary, patterns):
        """The function gets (file name, bytes, host) and emits graphs, or returns one."""

        def add(function):
            def call(host, file, data):
                made = function((file or b"").decode(), data.bytes(), host)
                if made is not None:
                    host.emit("main", made)
                return _OK

            self._add("importers", _Importer, _RunFile, name, summary, [patterns], call)
            return function

        return add

    def oracle(self, name, summary):
        """The function gets (graph, host) and returns whether the graph fails."""

        def add(function):
            def call(host, text):
                return _YES if function(text.bytes().decode(), host) else _OK

            self._add("oracles", _Oracle, _Run, name, summary, [], call)
            return function

        return add

    def coloring(self, name, summary, unit=None):
        """The function gets (graph, host) and calls host.color."""

        def add(function):
            def call(host, text):
                function(text.bytes().decode(), host)
                return _OK

            self._add("colorings", _Coloring, _Run, name, summary, [unit], call)
            return function

        return add

    def judge(self, name, summary):
        """The function gets (actual, expected, host) and returns whether the one may stand for the other."""

        def add(function):
            def call(host, actual, expected):
                return _YES if function(Tensor(actual), Tensor(expected), host) else _OK

            self._add("judges", _Judge, _RunJudge, name, summary, [], call)
            return function

        return add

    def library(self, name, summary, ops, takes):
        """The function gets (call, host) and fills call.results; takes(call, host) returns None, or why it does not
        compute the call."""

        def add(function):
            def asked(host, call):
                why = takes(Call(call), host)
                if why is None:
                    return _YES
                host.say(why)
                return _OK

            def run(host, call):
                function(Call(call), host)
                return _OK

            self._add("libraries", _Library, _RunCall, name, summary, [ops], asked, run)
            return function

        return add

    def _struct(self):
        made = _Plugin(ctypes.sizeof(_Plugin), ABI, self._processes, *self._texts)
        made.operators = self._operators
        for key, items in self._lists.items():
            kind = dict(_Plugin._fields_)[key]._type_
            array = (kind * (len(items) + 1))(*[ctypes.pointer(item) for item in items])
            setattr(made, key, ctypes.cast(array, ctypes.POINTER(kind)))
            self._lists[key].append(array)  # lives as long as the plugin
        return made


_made = []


def plugin(name, version, summary, rules=None, processes=0, operators=None):
    _made.append(Plugin(name, version, summary, rules, processes, operators))
    return _made[-1]


def _serve(file, library, source, sink, processes):
    """In the plugin's process, started by cutaway-plugin-host."""
    sys.modules["cutaway_plugin"] = sys.modules["__main__"]
    host = ctypes.CDLL(library)
    if int(processes) == 0 and not host.cutaway_refuse_processes():
        raise SystemExit("processes cannot be refused here")
    try:
        runpy.run_path(file)
        if len(_made) != 1:
            raise ValueError("the file makes %d plugins, and is to make one" % len(_made))
    except BaseException as error:
        why = ("it cannot be loaded: %s: %s" % (type(error).__name__, error)).encode()
        parts = [b"failed", why]
        texts = b"".join(len(part).to_bytes(8, sys.byteorder) + part for part in parts)
        body = len(parts).to_bytes(8, sys.byteorder) + texts
        with open(int(sink), "wb") as out:
            out.write(len(body).to_bytes(8, sys.byteorder) + body)
        return 1
    struct = _made[0]._struct()
    return host.cutaway_serve_plugin(ctypes.byref(struct), int(source), int(sink))


if __name__ == "__main__":
    sys.exit(_serve(*sys.argv[1:]))
