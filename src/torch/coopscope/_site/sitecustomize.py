# SPDX-License-Identifier: Apache-2.0
"""First on PYTHONPATH under `coop run`: waits for `import torch`, then starts the adapter.

It stands in for the `sitecustomize` the user or the system may have, so it takes its own folder off
sys.path and runs theirs afterwards, in the same place of start-up and with the same errors. What
goes wrong in here is told in one line and never reaches the script.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(_HERE)
_MAGIC = b"COPRING1"  # COOP_WIRE_MAGIC, the first 8 bytes of a wire


def _say(reason):
    if sys.stderr is not None:
        print(
            f"coopscope: {reason}; this process runs without Coopscope, and no memory budget is kept",
            file=sys.stderr,
            flush=True,
        )


def _is_wire(fd):
    try:
        return os.pread(fd, len(_MAGIC), 0) == _MAGIC
    except OSError:
        return False


def _open_wire():
    """A descriptor of the wire that is this process's own: the inherited one if it still is the
    wire (subprocess and spawn close it, and its number may then be anything), else by its path."""
    inherited = os.environ.get("COOPSCOPE_FD", "")
    if inherited.isdecimal() and _is_wire(int(inherited)):
        return os.dup(int(inherited))
    path = os.environ.get("COOPSCOPE_WIRE", "")
    if not path:
        raise RuntimeError("the connection to the tool that started the run was lost")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise RuntimeError(f"the tool that started the run is gone ({error.strerror})") from None
    if not _is_wire(fd):
        os.close(fd)
        raise RuntimeError("the tool that started the run is gone")
    return fd


def _load_package():
    """Our own package by its path, whatever else is called coopscope on sys.path."""
    from importlib.util import module_from_spec, spec_from_file_location

    init = os.path.join(_PACKAGE, "__init__.py")
    loaded = sys.modules.get("coopscope")
    if loaded is not None:
        if os.path.realpath(getattr(loaded, "__file__", None) or "") == os.path.realpath(init):
            return
        raise RuntimeError("the script has a module of its own that is called coopscope")
    spec = spec_from_file_location("coopscope", init, submodule_search_locations=[_PACKAGE])
    sys.modules["coopscope"] = module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules["coopscope"])
    except BaseException:
        del sys.modules["coopscope"]
        raise


def _start(torch):
    try:
        fd = _open_wire()
        try:
            _load_package()
            rank = os.environ.get("RANK", "")  # torchrun's
            if rank.isdecimal() and int(rank) > 0:
                import coopscope

                coopscope._start_rank(fd, int(rank))
                os.close(fd)
                return
            from coopscope import _adapter

            _adapter.install(torch, fd)
        except BaseException:
            try:
                os.close(fd)
            except OSError:
                pass
            raise
    except Exception as error:
        _say(" ".join(f"{error}".split()) or type(error).__name__)


class _TorchFinder:
    """Finds nothing itself: asks the finders after it for torch and hooks the loader they give.

    It stays until torch was executed, because a mere `importlib.util.find_spec("torch")` goes
    through here as well and must not use it up.
    """

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec = find_spec(name, path, target)
            if spec is not None:
                self._hook(spec.loader)
                return spec
        return None

    def _hook(self, loader):
        def exec_module(module):
            exec_torch(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                _start(module)

        try:
            exec_torch = loader.exec_module
            loader.exec_module = exec_module
        except AttributeError:
            _say(f"torch is loaded in a way that cannot be watched ({type(loader).__name__})")


def _run_the_users():
    """The sitecustomize that Python would have run without us; its errors are Python's to tell.

    The import system's lock on the name is ours already and is recursive; whichever module stands
    in sys.modules at the end is the one that stays.
    """
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != _HERE]
    ours = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401
    except BaseException as error:
        sys.modules[__name__] = ours
        if not (isinstance(error, ImportError) and error.name == __name__):
            raise


if "COOPSCOPE_FD" in os.environ or "COOPSCOPE_WIRE" in os.environ:
    if os.path.dirname(_PACKAGE) not in sys.path:
        sys.path.append(os.path.dirname(_PACKAGE))  # so that a script can `import coopscope`
    if "torch" in sys.modules:
        _start(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, _TorchFinder())
_run_the_users()
