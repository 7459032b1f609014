"""Modules whose names change after they are bound, in every way that we know: what a kernel sees is what Python makes of it.

CASES: the files of each, by its name; `k` in kernel.py is the kernel. A case is in EXACT where the value itself is to be read; in any
other it may be left open.
"""

from __future__ import annotations

HEAD = "import triton\nimport triton.language as tl\n"
ACT = "@triton.jit\ndef act(x):\n    return x + GAIN\n"
KERNEL = HEAD + "from helpers import act\n@triton.jit\ndef k(p):\n    tl.store(p, act(tl.load(p)))\n"


def _gain(text: str) -> dict[str, str]:
    """`GAIN` is made by the text, before the helper that adds it."""
    return {"helpers.py": HEAD + text + "\n" + ACT, "kernel.py": KERNEL}


def _late(text: str, constant: str = "GAIN = tl.constexpr(11.0)") -> dict[str, str]:
    """What is done behind the helper."""
    return {"helpers.py": f"{HEAD}{constant}\n{ACT}{text}\n", "kernel.py": KERNEL}


D = "D = {'a': 11.0}\n"
G = "GAIN = tl.constexpr(D['a'])"
L = "L = [11.0]\n"
GL = "GAIN = tl.constexpr(L[-1])"

EXACT: dict[str, dict[str, str]] = {
    "kernel that is launched elsewhere": {
        **_late("@triton.jit\ndef other(p):\n    x = GAIN\n    x = x.to(tl.float16)\n    tl.store(p, x)"),
        "host.py": "import helpers\nhelpers.other[(1,)](None)\n",
    },
    "filled in a loop": _gain(f"{D}for n in ('a',):\n    D[n] = 12.0\n{G}"),
    "filled in a while loop": _gain(f"{D}i = 0\nwhile i < 3:\n    D['a'] = 12.0 + i\n    i += 1\n{G}"),
    "loop with else and break": _gain(
        f"{D}for n in range(4):\n    if n == 2:\n        break\n    D['a'] += n\nelse:\n    D['a'] = 0.0\n{G}"
    ),
    "loop variable": _gain("for V in (1.0, 12.0):\n    pass\nGAIN = tl.constexpr(V)"),
    "another name of its own module": _late(
        "import sys\ndef f():\n    m = sys.modules[__name__]\n    m.__class__ = type('M', (type(m),), {})\n    m.OTHER = 12.0\nf()"
    ),
    "importers that only read": {
        "consts.py": "import triton\nL = [triton.Config({}, num_warps=w) for w in (2, 4)]\n",
        "read.py": "from consts import L\nM = list(filter(None, L)) + [x for x in L]\n",
        "helpers.py": HEAD
        + "import triton, read\nfrom consts import L\n@triton.heuristics({'B': lambda a: 1})\n@triton.autotune(L, key=[])\n"
        + "@triton.jit\ndef other(B: tl.constexpr):\n    pass\nGAIN = tl.constexpr(float(len(L)))\n" + ACT,
        "kernel.py": KERNEL,
    },
    "what the installed Triton takes": _gain(
        "import inspect\nP = inspect.signature(tl.dot).parameters\nGAIN = tl.constexpr(12.0 if 'input_precision' in P else 11.0)"
    ),
    "item": _gain(f"{D}D['a'] = 12.0\n{G}"),
    "item of an item": _gain(f"D = {{'a': {{'b': 1.0}}}}\nD['a']['b'] = 12.0\nGAIN = tl.constexpr(D['a']['b'])"),
    "item of an item through a name": _gain(
        "D = {'a': {'b': 1.0}}\nI = D['a']\nI['b'] = 12.0\nGAIN = tl.constexpr(D['a']['b'])"
    ),
    "augmented item": _gain(f"{D}D['a'] += 1.0\n{G}"),
    "deleted item": _gain(f"{D}D['b'] = 2.0\ndel D['b']\nGAIN = tl.constexpr(float(len(D)))"),
    "append and length": _gain(f"{L}L.append(12.0)\nGAIN = tl.constexpr(float(len(L)))"),
    "extend": _gain(f"{L}L.extend([1.0, 12.0])\n{GL}"),
    "augmented list": _gain(f"{L}M = L\nM += [12.0]\n{GL}"),
    "pop": _gain(f"L = [12.0, 11.0]\nL.pop()\n{GL}"),
    "value of pop": _gain(f"L = [12.0, 11.0]\nX = L.pop()\n{GL}"),
    "sort": _gain(f"L = [12.0, 11.0]\nL.sort()\n{GL}"),
    "read before the change": _gain(f"{D}{G}\nD['a'] = 13.0"),
    "update": _gain(f"{D}D.update(a=12.0)\n{G}"),
    "setdefault": _gain(f"D = {{}}\nX = D.setdefault('a', 12.0)\nD.setdefault('a', 1.0)\n{G}"),
    "method under a name": _gain(f"{L}add = L.append\nadd(12.0)\n{GL}"),
    "method of the class": _gain(f"{L}list.append(L, 12.0)\n{GL}"),
    "alias": _gain(f"{D}E = D\nE['a'] = 12.0\n{G}"),
    "alias in a tuple": _gain(f"{D}E, F = D, 1\nE['a'] = 12.0\n{G}"),
    "alias in a container": _gain(f"{D}ALL = [D]\nALL[0]['a'] = 12.0\n{G}"),
    "alias in a loop": _gain(f"{D}for E in (D,):\n    E['a'] = 12.0\n{G}"),
    "alias by a call": _gain(f"{D}def same(d):\n    return d\nsame(D)['a'] = 12.0\n{G}"),
    "copy is another": _gain(f"{D}E = dict(D)\nE['a'] = 12.0\n{G}"),
    "argument": _gain(f"{D}def fill(d):\n    d['a'] = 12.0\nfill(D)\n{G}"),
    "argument with a default": _gain(
        "def grow(n, seen=[]):\n    seen.append(n)\n    return sum(seen)\ngrow(5.0)\nGAIN = tl.constexpr(grow(7.0))"
    ),
    "global object": _gain(f"{D}def fill():\n    D['a'] = 12.0\nfill()\n{G}"),
    "registry": _gain(
        "R = {}\ndef register(f):\n    R[f.__name__] = f\n    return f\n@register\ndef one():\n    pass\n"
        "@register\ndef two():\n    pass\nGAIN = tl.constexpr(float(len(R)))"
    ),
    "registry with an argument": _gain(
        "R = {}\ndef register(n):\n    def keep(f):\n        R[n] = f\n        return f\n    return keep\n"
        "@register('a')\ndef one():\n    pass\nGAIN = tl.constexpr(float(len(R)))"
    ),
    "setitem of operator": _gain(f"import operator\n{D}operator.setitem(D, 'a', 12.0)\n{G}"),
    "walrus": _gain("A = 11.0\nB = [A := 12.0]\nGAIN = tl.constexpr(A)"),
    "walrus in a condition": _gain("A = 11.0\nif (A := 12.0) > 1:\n    pass\nGAIN = tl.constexpr(A)"),
    "comprehension": _gain(f"{L}[L.append(float(n)) for n in range(13)]\n{GL}"),
    "comprehension reads early": _gain("A = 12.0\nB = [A for _ in range(2)]\nA = 7.0\nGAIN = tl.constexpr(B[0])"),
    "function reads early": _gain("A = 12.0\ndef f():\n    return A\nB = f()\nA = 7.0\nGAIN = tl.constexpr(B)"),
    "function reads late": _gain("A = 7.0\ndef f():\n    return A\nA = 12.0\nGAIN = tl.constexpr(f())"),
    "lambda reads late": _gain("f = [lambda: i for i in (11.0, 12.0)]\nGAIN = tl.constexpr(f[0]())"),
    "class body reads early": _gain("A = 12.0\nclass C:\n    X = A\nA = 7.0\nGAIN = tl.constexpr(C.X)"),
    "default of a host function": _gain(
        "A = 12.0\ndef f(a=A):\n    return a\nA = 7.0\nGAIN = tl.constexpr(f())"
    ),
    "default bound early": {
        "helpers.py": HEAD + "C = 2.0\n@triton.jit\ndef act(x, c: tl.constexpr = C):\n    return x * c\nC = 7.0\n",
        "kernel.py": KERNEL,
    },
    "default of a keyword": {
        "helpers.py": HEAD + "C = 2.0\n@triton.jit\ndef act(x, *, c: tl.constexpr = C):\n    return x * c\nC = 7.0\n",
        "kernel.py": KERNEL,
    },
    "default changed by a loop": {
        "helpers.py": HEAD
        + "C = {}\nfor n in 'abc':\n    C[n] = ord(n)\n@triton.jit\ndef act(x, c: tl.constexpr = C['c']):\n    return x * c\nC['c'] = 7\n",
        "kernel.py": KERNEL,
    },
    "rebound late": _late("GAIN = tl.constexpr(12.0)"),
    "deleted and bound again": _late("del GAIN\nGAIN = tl.constexpr(12.0)"),
    "helper bound again": {
        "helpers.py": HEAD + "GAIN = tl.constexpr(1.0)\n" + ACT + ACT.replace("+", "-"),
        "kernel.py": KERNEL,
    },
    "submodule": {
        "pkg/__init__.py": "from . import consts\n", "pkg/consts.py": "X = 3.0\n",
        "kernel.py": HEAD + "from pkg import consts\nC = tl.constexpr(consts.X)\n@triton.jit\ndef k(p):\n    tl.store(p, C)\n",
    },
    "submodule in a package that renames it": {
        "pkg/__init__.py": "from . import consts as c\nfrom .consts import X as consts\n", "pkg/consts.py": "X = 3.0\n",
        "kernel.py": HEAD + "from pkg import consts\nC = tl.constexpr(consts)\n@triton.jit\ndef k(p):\n    tl.store(p, C)\n",
    },
    "submodules of each other": {
        "pkg/__init__.py": "from . import a, b\n", "pkg/a.py": "from . import b\nX = b.Y\n", "pkg/b.py": "Y = 3.0\n",
        "kernel.py": HEAD + "from pkg import a\nC = tl.constexpr(a.X)\n@triton.jit\ndef k(p):\n    tl.store(p, C)\n",
    },
    "bare builtins": {
        "kernel.py": HEAD
        + "from triton.language import store, load as fetch, zeros as none_yet, float32, constexpr\n@triton.jit\n"
        "def k(p, B: constexpr = 4):\n    store(p, fetch(p) + none_yet((1,), float32).sum())\n"
    },
    "nothing of it is used": _late("import time\nD = {}\nD[time.time()] = 1\nglobals()['OTHER'] = 2\n"),
    "enum is not changed by a loop": _gain(
        "import enum\nclass E(enum.Enum):\n    A = 12.0\nfor e in E:\n    pass\nGAIN = tl.constexpr(E.A.value)"
    ),
}  # fmt: skip

OPEN: dict[str, dict[str, str]] = {
    "globals": _late("globals()['GAIN'] = tl.constexpr(12.0)"),
    "globals under a name": _late("g = globals()\ng['GAIN'] = tl.constexpr(12.0)"),
    "globals updated": _late("globals().update(GAIN=tl.constexpr(12.0))"),
    "globals for the constant": _gain("A = 11.0\nglobals()['A'] = 12.0\nGAIN = tl.constexpr(A)"),
    "vars": _late("vars()['GAIN'] = tl.constexpr(12.0)"),
    "vars in a function": _late("def f():\n    globals()['GAIN'] = tl.constexpr(12.0)\nf()"),
    "exec": _late("exec('GAIN = tl.constexpr(12.0)')"),
    "exec in the globals": _late("exec('GAIN = tl.constexpr(12.0)', globals())"),
    "eval": _gain(f"{D}eval('D.update(a=12.0)')\n{G}"),
    "own module": _late("import sys\nsys.modules[__name__].GAIN = tl.constexpr(12.0)"),
    "own module by setattr": _late("import sys\nsetattr(sys.modules[__name__], 'GAIN', tl.constexpr(12.0))"),
    "own module's dict": _late("import sys\nsys.modules[__name__].__dict__['GAIN'] = tl.constexpr(12.0)"),
    "own module under a name": _late("import sys\ndef f():\n    m = sys.modules[__name__]\n    m.GAIN = tl.constexpr(12.0)\nf()"),
    "own module under a name by setattr": _late(
        "import sys\nm = sys.modules[__name__]\ndef f(n):\n    setattr(m, n, tl.constexpr(12.0))\nf('GAIN')"
    ),
    "own module under a name handed on": _late(
        "import sys\ndef g(m):\n    m.GAIN = tl.constexpr(12.0)\ndef f():\n    m = sys.modules[__name__]\n    g(m)\nf()"
    ),
    "own module by name": _late("import helpers\nhelpers.GAIN = tl.constexpr(12.0)"),
    "global": _late("def f():\n    global GAIN\n    GAIN = tl.constexpr(12.0)\nf()"),
    "global before the constant": _gain("A = 11.0\ndef f():\n    global A\n    A = 12.0\nf()\nGAIN = tl.constexpr(A)"),
    "global by a decorator": _gain(
        "A = 11.0\ndef d(f):\n    global A\n    A = A + 1\n    return f\n@d\ndef g():\n    pass\nGAIN = tl.constexpr(A)"
    ),
    "attribute of a class": _gain("class C:\n    A = 11.0\nC.A = 12.0\nGAIN = tl.constexpr(C.A)"),
    "setattr of a class": _gain("class C:\n    A = 11.0\nsetattr(C, 'A', 12.0)\nGAIN = tl.constexpr(C.A)"),
    "class changed in a loop": _gain(
        "class C:\n    A = 11.0\nfor n in ('A',):\n    setattr(C, n, 12.0)\nGAIN = tl.constexpr(C.A)"
    ),
    "class by a decorator": _gain(
        "def d(c):\n    c.A = 12.0\n    return c\n@d\nclass C:\n    A = 11.0\nGAIN = tl.constexpr(C.A)"
    ),
    "class by a function": _gain("class C:\n    A = 11.0\ndef f(c):\n    c.A = 12.0\nf(C)\nGAIN = tl.constexpr(C.A)"),
    "class by an alias": _gain("class C:\n    A = 11.0\nE = C\nE.A = 12.0\nGAIN = tl.constexpr(C.A)"),
    "table of a class": _gain("class C:\n    T = {'a': 11.0}\nC.T['a'] = 12.0\nGAIN = tl.constexpr(C.T['a'])"),
    "table of a class by an alias": _gain(
        "class C:\n    T = {'a': 11.0}\nE = C.T\nE['a'] = 12.0\nGAIN = tl.constexpr(C.T['a'])"
    ),
    "method that fills its class": _gain(
        "class C:\n    T = {'a': 11.0}\n    @classmethod\n    def put(cls):\n        cls.T['a'] = 12.0\nC.put()\n"
        "GAIN = tl.constexpr(C.T['a'])"
    ),
    "metaclass hook": _gain(
        "R = []\nclass B:\n    def __init_subclass__(cls):\n        R.append(cls)\nclass C(B):\n    pass\n"
        "GAIN = tl.constexpr(float(len(R)))"
    ),
    "namespace": _gain("import types\nN = types.SimpleNamespace(a=11.0)\nN.a = 12.0\nGAIN = tl.constexpr(N.a)"),
    "namespace by an alias": _gain(
        "import types\nN = types.SimpleNamespace(a=11.0)\nM = N\nM.a = 12.0\nGAIN = tl.constexpr(N.a)"
    ),
    "namespace by setattr": _gain(
        "import types\nN = types.SimpleNamespace(a=11.0)\nsetattr(N, 'a', 12.0)\nGAIN = tl.constexpr(N.a)"
    ),
    "attribute of a function": _gain("def f():\n    pass\nf.a = 12.0\nGAIN = tl.constexpr(f.a)"),
    "defaults of a function": _gain(
        "def f(a=11.0):\n    return a\nf.__defaults__ = (12.0,)\nGAIN = tl.constexpr(f())"
    ),
    "constexpr's own value": _late("GAIN.value = 12.0"),
    "constexpr's value by an alias": _late("H = GAIN\nH.value = 12.0"),
    "constexpr's value by setattr": _late("setattr(GAIN, 'value', 12.0)"),
    "escape to a class of the user": _gain(
        f"{D}class W:\n    def __init__(self, d):\n        d['a'] = 12.0\nW(D)\n{G}"
    ),
    "escape to an object": _gain(
        f"{D}class W:\n    def __init__(self, d):\n        self.d = d\n    def go(self):\n        self.d['a'] = 12.0\n"
        f"w = W(D)\nw.go()\n{G}"
    ),
    "escape by a closure": _gain(f"{D}def make(d):\n    def go():\n        d['a'] = 12.0\n    return go\ngo = make(D)\ngo()\n{G}"),
    "escape to the standard library": _gain(f"import collections\n{D}C = collections.ChainMap(D)\nC['a'] = 12.0\n{G}"),
    "escape to map": _gain(f"{L}list(map(L.append, [1.0, 12.0]))\n{GL}"),
    "escape to a generator": _gain(f"{D}def gen():\n    D['a'] = 12.0\n    yield 1\nlist(gen())\n{G}"),
    "iterator is used up": _gain("I = iter([11.0, 12.0])\nnext(I)\nGAIN = tl.constexpr(next(I))"),
    "zip is used up": _gain("I = zip([1.0, 12.0])\nA = len(list(I))\nGAIN = tl.constexpr(float(len(list(I))))"),
    "with": _gain(
        f"import contextlib\n{D}@contextlib.contextmanager\ndef c():\n    D['a'] = 12.0\n    yield\nwith c():\n    pass\n{G}"
    ),
    "with that binds": _gain("import contextlib\nA = 11.0\nwith contextlib.nullcontext(12.0) as A:\n    pass\nGAIN = tl.constexpr(A)"),
    "unpacked with a star": _gain("A = 11.0\nA, *B = (12.0, 1, 2)\nGAIN = tl.constexpr(A)"),
    "match": _gain("A = 11.0\nmatch 12.0:\n    case A:\n        pass\nGAIN = tl.constexpr(A)"),
    "item in a branch that is not known": _gain(f"import time\n{D}if time.time() > 0:\n    D['a'] = 12.0\n{G}"),
    "item in a handler": _gain(f"{D}try:\n    import no_such_module_at_all\nexcept ImportError:\n    D['a'] = 12.0\n{G}"),
    "item behind a try that fails": _gain(
        f"{D}try:\n    D['a'] = 12.0\n    D['b']\n    D['a'] = 13.0\nexcept KeyError:\n    pass\n{G}"
    ),
    "try that fails half way": _gain("A = 11.0\ntry:\n    A = 12.0\n    {}['b']\n    A = 13.0\nexcept KeyError:\n    pass\nGAIN = tl.constexpr(A)"),
    "item at random": _gain(f"import random\n{D}D['a'] = 11.0 + random.random()\n{G}"),
    "property of the process": _gain(f"import atexit, os\n{D}D['a'] = float(os.getpid())\n{G}"),
    "importer": {
        "helpers.py": HEAD + "GAIN = tl.constexpr(11.0)\n" + ACT,
        "kernel.py": KERNEL + "import helpers\nhelpers.GAIN = tl.constexpr(12.0)\n",
    },
    "importer by setattr": {
        "helpers.py": HEAD + "GAIN = tl.constexpr(11.0)\n" + ACT,
        "kernel.py": KERNEL + "import helpers as h\nsetattr(h, 'GAIN', tl.constexpr(12.0))\n",
    },
    "importer in another file": {
        "helpers.py": HEAD + "GAIN = tl.constexpr(11.0)\n" + ACT,
        "patch.py": "import helpers, triton.language as tl\nhelpers.GAIN = tl.constexpr(12.0)\n",
        "kernel.py": KERNEL + "import patch\n",
    },
    "importer in a function": {
        "helpers.py": HEAD + "GAIN = tl.constexpr(11.0)\n" + ACT,
        "kernel.py": KERNEL + "import helpers\ndef setup(v):\n    helpers.GAIN = tl.constexpr(v)\nsetup(12.0)\n",
    },
    "importer fills a table": {
        "consts.py": "D = {'a': 11.0}\n",
        "helpers.py": HEAD + "import consts\nconsts.D['a'] = 12.0\nGAIN = tl.constexpr(consts.D['a'])\n" + ACT,
        "kernel.py": KERNEL,
    },
    "importer fills a table by its name": {
        "consts.py": "D = {'a': 11.0}\n",
        "helpers.py": HEAD + "from consts import D\nD['a'] = 12.0\nGAIN = tl.constexpr(D['a'])\n" + ACT,
        "kernel.py": KERNEL,
    },
    "other importer fills a table": {
        "consts.py": "D = {'a': 11.0}\n", "fill.py": "from consts import D\nD['a'] = 12.0\n",
        "helpers.py": HEAD + "import fill\nfrom consts import D\nGAIN = tl.constexpr(D['a'])\n" + ACT,
        "kernel.py": KERNEL,
    },
    "importer changes what it goes through": {
        "consts.py": "L = [[11.0]]\n",
        "fill.py": "from consts import L\nfor row in L:\n    row[0] = 12.0\n",
        "helpers.py": HEAD + "import fill\nfrom consts import L\nGAIN = tl.constexpr(L[0][0])\n" + ACT,
        "kernel.py": KERNEL,
    },
    "importer changes what it filters": {
        "consts.py": "L = [{'a': 11.0}]\n",
        "fill.py": "from consts import L\nM = list(filter(lambda d: d.update(a=12.0), L))\n",
        "helpers.py": HEAD + "import fill\nfrom consts import L\nGAIN = tl.constexpr(L[0]['a'])\n" + ACT,
        "kernel.py": KERNEL,
    },
    "importer calls what fills": {
        "consts.py": "D = {'a': 11.0}\ndef put(v):\n    D['a'] = v\n",
        "helpers.py": HEAD + "import consts\nconsts.put(12.0)\nGAIN = tl.constexpr(consts.D['a'])\n" + ACT,
        "kernel.py": KERNEL,
    },
    "importer registers": {
        "consts.py": "R = {}\ndef register(f):\n    R[f.__name__] = f\n    return f\n",
        "helpers.py": HEAD
        + "import consts\n@consts.register\ndef one():\n    pass\nGAIN = tl.constexpr(float(len(consts.R)))\n" + ACT,
        "kernel.py": KERNEL,
    },
    "importer sets a class": {
        "consts.py": "class C:\n    A = 11.0\n",
        "helpers.py": HEAD + "from consts import C\nC.A = 12.0\nGAIN = tl.constexpr(C.A)\n" + ACT,
        "kernel.py": KERNEL,
    },
    "package sets its submodule": {
        "pkg/__init__.py": "from . import helpers\nimport triton.language as tl\nhelpers.GAIN = tl.constexpr(12.0)\n",
        "pkg/helpers.py": HEAD + "GAIN = tl.constexpr(11.0)\n" + ACT,
        "kernel.py": KERNEL.replace("from helpers", "from pkg.helpers"),
    },
    "star import is bound over": {
        "consts.py": "A = 11.0\ndef f():\n    global A\n    A = 12.0\nf()\n",
        "helpers.py": HEAD + "from consts import *\nGAIN = tl.constexpr(A)\n" + ACT,
        "kernel.py": KERNEL,
    },
    "monkey patch of a builtin": _gain("import builtins\nbuiltins.oct = lambda x: '12'\nGAIN = tl.constexpr(float(oct(9)[-2:]))"),
    "monkey patch of a module": _gain("import math\nmath.sqrt = lambda x: 12.0\nGAIN = tl.constexpr(math.sqrt(4))"),
    "environment is set": _gain("import os\nos.environ['A_NAME'] = '12'\nGAIN = tl.constexpr(float(os.environ.get('A_NAME', '11')))"),
    "parameter of a factory": {
        "kernel.py": HEAD
        + "def make(g=11.0):\n    G = tl.constexpr(g)\n    @triton.jit\n    def k(p):\n        tl.store(p, G)\n    return k\nk = make(12.0)\n"
    },
}  # fmt: skip
EXACT |= {
    "another variable may be set": _gain(
        "import os, time\nif time.time() < 0:\n    os.environ['A_NAME'] = '1'\n"
        "GAIN = tl.constexpr(float(os.environ.get('QUITE_OTHER', '12')))"
    ),
    "raised in a try": _gain(
        "A = 12.0\ntry:\n    assert not A\n    A = 11.0\nexcept AssertionError:\n    pass\nGAIN = tl.constexpr(A)"
    ),
    "raised in a branch in a try": _gain(
        "A = 1.0\ntry:\n    if A:\n        A = 12.0\n        1 / 0\n    A = 11.0\nexcept ZeroDivisionError:\n    pass\nGAIN = tl.constexpr(A)"
    ),
    "raised by unpacking": _gain(
        "A = 12.0\ntry:\n    a, b = 1, 2, 3\n    A = 11.0\nexcept ValueError:\n    pass\nGAIN = tl.constexpr(A)"
    ),
    "taken by its own handler": _gain(
        "A = 11.0\ntry:\n    raise KeyError\nexcept ValueError:\n    pass\nexcept KeyError:\n    A = 12.0\nGAIN = tl.constexpr(A)"
    ),
    "suppressed": _gain(
        "import contextlib\nA = 12.0\nwith contextlib.suppress(ImportError):\n    import not_there\n    A = 11.0\nGAIN = tl.constexpr(A)"
    ),
    "continue through a finally": _gain(
        "A = 0.0\nfor i in range(3):\n    try:\n        continue\n    finally:\n        A += 4\nGAIN = tl.constexpr(A)"
    ),
    "walrus that a branch changes": _gain("if (A := 11.0) > 3:\n    A += 1\nGAIN = tl.constexpr(A)"),
    "list that its loop lengthens": _gain(
        "L = [3.0]\nfor x in L:\n    if len(L) < 4:\n        L.append(x)\nGAIN = tl.constexpr(sum(L))"
    ),
    "generator used up": _gain("def f(x):\n    return sum(x) + sum(x)\nGAIN = tl.constexpr(f(i for i in (5.0, 7.0)))"),
    "unpacked with a star": _gain("a, *b, c = 1.0, 5.0, 7.0, 2.0\nb.append(0.0)\nGAIN = tl.constexpr(sum(b))"),
    "value in place of a function": _gain("@lambda f: 12.0\ndef A():\n    pass\nGAIN = tl.constexpr(A)"),
}
OPEN |= {
    "taken by a manager of the user": _gain(
        "class M:\n    def __enter__(self):\n        pass\n    def __exit__(self, *a):\n        return True\nA = 12.0\n"
        "with M():\n    1 / 0\n    A = 11.0\nGAIN = tl.constexpr(A)"
    ),
    "counted in a cached function": _gain(
        "import functools\nL = []\n@functools.lru_cache\ndef f(x):\n    L.append(x)\nf(1), f(1)\nGAIN = tl.constexpr(9.0 + len(L))"
    ),
    "own module imported": _late("import importlib\nimportlib.import_module(__name__).GAIN = tl.constexpr(12.0)"),
    "own module asked for": _late("import sys\nsys.modules.get(__name__).GAIN = tl.constexpr(12.0)"),
    "globals of a function": _late("(lambda: 0).__globals__['GAIN'] = tl.constexpr(12.0)"),
    "globals of a frame": _late("import inspect\ninspect.currentframe().f_globals['GAIN'] = tl.constexpr(12.0)"),
    "globals called by another name": _late("g = globals\ng()['GAIN'] = tl.constexpr(12.0)"),
    "exec in a function": _late("def f():\n    exec('GAIN = tl.constexpr(12.0)', globals())\nf()"),
    "environment may be set": _gain(
        "import os, time\nif time.time() > 0:\n    os.environ['QUITE_NEW'] = '12'\n"
        "GAIN = tl.constexpr(float(os.environ.get('QUITE_NEW', '11')))"
    ),
    "environment updated": _gain(
        "import os\nos.environ.update(QUITE_NEW='12')\nGAIN = tl.constexpr(float(os.environ.get('QUITE_NEW', '11')))"
    ),
    "raised through a finally": _gain(
        "A = 11.0\ntry:\n    try:\n        raise KeyError\n    finally:\n        A = 10.0\nexcept KeyError:\n    A += 2\nGAIN = tl.constexpr(A)"
    ),
}
