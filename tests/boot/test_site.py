# SPDX-License-Identifier: Apache-2.0
"""Getting in: a script under sitecustomize.py behaves as without it, and the adapter is started
once, when torch has been executed, however torch comes to be imported."""

import os
import subprocess
import sys

from support import contains, equal, main

IN = "adapter torch.py\n"


def test_script(w):
    equal(w.run(script="import torch; print('on', torch.ready)"), (IN + "on 1\n", "", 0))


def test_not_watched_without_a_wire(w):
    env = w.env()
    del env["COOPSCOPE_FD"], env["COOPSCOPE_WIRE"]
    equal(w.run(script="import torch; print('on')", env=env), ("on\n", "", 0))


def test_command_module_stdin_and_s(w):
    w.write("lib/prog.py", "import torch")
    equal(w.run("-c", "import torch"), (IN, "", 0))
    equal(w.run("-m", "prog"), (IN, "", 0))
    equal(w.run("-s", "-c", "import torch"), (IN, "", 0))
    equal(w.run("-", stdin="import torch\n"), (IN, "", 0))


def test_sys_path_is_the_users(w):
    show = "import sys; print([p for p in sys.path if '_site' in p], sys.path[:2])"
    plain = w.run("-c", show, env=w.env(watched=False))
    equal(w.run("-c", show), plain)


def test_never_imports_torch(w):
    show = "import sys; print([m for m in sys.modules if 'coop' in m or m == 'torch'])"
    equal(w.run("-c", show), ("[]\n", "", 0))


def test_start_up_imports_little(w):
    show = "import sys; print('\\n'.join(sys.modules))"
    plain = set(w.run("-c", show, env=w.env(watched=False))[0].split())
    ours = set(w.run("-c", show)[0].split())
    equal(ours - plain - {"sitecustomize"}, set())


def test_find_spec_probes(w):
    equal(
        w.run(
            script="import importlib.util as u\n"
            "for _ in range(3): assert u.find_spec('torch').name == 'torch'\n"
            "print('probed', flush=True)\n"
            "import torch\n"
            "assert u.find_spec('torch').origin == torch.__file__"
        ),
        ("probed\n" + IN, "", 0),
    )


def test_torch_missing(w):
    python = make_venv(w)
    os.remove(os.path.join(w.lib, "torch.py"))
    script = (
        "import importlib.util as u\n"
        "print(u.find_spec('torch'))\n"
        "try: import torch\n"
        "except ModuleNotFoundError as e: print(e.name)\n"
        "import torch\n"
    )
    plain = w.run(script=script, python=python, env=w.env(watched=False))
    contains(plain[1], "No module named 'torch'")
    equal(w.run(script=script, python=python), plain)


def test_torch_fails_then_works(w):
    w.write("lib/torch.py", "import os\nif 'BAD' in os.environ: raise ImportError('half')\nready = 1\n")
    script = (
        "import os\n"
        "os.environ['BAD'] = '1'\n"
        "try: import torch\n"
        "except ImportError as e: print(e, flush=True)\n"
        "del os.environ['BAD']\n"
        "import torch\n"
    )
    equal(w.run(script=script), ("half\n" + IN, "", 0))


def test_threads_import_at_once(w):
    script = (
        "import threading\n"
        "def go():\n"
        "    import torch\n"
        "    assert torch.ready == 1\n"
        "ts = [threading.Thread(target=go) for _ in range(8)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]\n"
    )
    equal(w.run(script=script), (IN, "", 0))


def test_lazy_loader(w):
    script = (
        "import importlib.util as u, sys\n"
        "spec = u.find_spec('torch')\n"
        "spec.loader = u.LazyLoader(spec.loader)\n"
        "torch = sys.modules['torch'] = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(torch)\n"
        "print('lazy', flush=True)\n"
        "print(torch.ready)\n"
    )
    out, err, code = w.run(script=script)
    equal((err, code), ("", 0))
    equal(sorted(out.split("\n")), sorted(["lazy", IN.strip(), "1", ""]))


def test_users_sitecustomize(w):
    w.write("theirs/sitecustomize.py", "import sys\nsys.theirs = __file__\n")
    script = (
        "import sys, sitecustomize, torch\n"
        "assert sitecustomize.__file__ == sys.theirs\n"
        "assert sitecustomize.__spec__.origin == sys.theirs\n"
    )
    equal(w.run(script=script, env=w.env(path=[w.path("theirs")])), (IN, "", 0))


def test_users_sitecustomize_imports_torch(w):
    w.write("theirs/sitecustomize.py", "import torch\n")
    equal(w.run("-c", "", env=w.env(path=[w.path("theirs")])), (IN, "", 0))


def test_users_sitecustomize_fails(w):
    for text in ("1/0\n", "import no_such_thing\n"):
        w.write("theirs/sitecustomize.py", text)
        plain = w.run("-c", "print(1)", env=w.env(watched=False, path=[w.path("theirs")]))
        contains(plain[1], "Error in sitecustomize")
        equal(w.run("-c", "print(1)", env=w.env(path=[w.path("theirs")])), plain)
        equal(w.run("-c", "import torch", env=w.env(path=[w.path("theirs")]))[0], IN)


def test_systems_sitecustomize(w):
    show = "import sys; print(getattr(sys.modules.get('sitecustomize'), '__file__', None))"
    plain = w.run("-c", show, env=w.env(watched=False))[0].strip()
    ours = w.run("-c", show)[0].strip()
    equal(ours, os.path.join(w.site, "sitecustomize.py") if plain == "None" else plain)


def test_usercustomize(w):
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    w.write(f"base/lib/{version}/site-packages/usercustomize.py", "print('user', flush=True)\n")
    env = dict(w.env(), PYTHONUSERBASE=w.path("base"))
    plain = w.run("-c", "", env=dict(w.env(watched=False), PYTHONUSERBASE=w.path("base")))
    equal(plain[0], "" if sys.prefix != sys.base_prefix else "user\n")  # a venv has no user folder
    equal(w.run("-c", "import torch", env=env), (plain[0] + IN, "", 0))
    equal(w.run("-s", "-c", "import torch", env=env), (IN, "", 0))


def make_venv(w):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", w.path("venv")], check=True)
    return w.path("venv", "bin", "python")


def test_venv(w):
    python = make_venv(w)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = w.path("venv", "lib", version, "site-packages")
    os.rename(os.path.join(w.lib, "torch.py"), os.path.join(packages, "torch.py"))
    show = "import torch, sys; print(torch.__file__, sys.prefix)"
    plain = w.run("-c", show, python=python, env=w.env(watched=False))
    contains(plain[0], packages)
    equal(w.run("-c", show, python=python), (IN + plain[0], "", 0))


def test_spawned_worker(w):
    script = (
        "import multiprocessing as m\n"
        "def work():\n"
        "    import torch\n"
        "if __name__ == '__main__':\n"
        "    p = m.get_context('spawn').Process(target=work)\n"
        "    p.start(); p.join(); assert p.exitcode == 0\n"
    )
    equal(w.run(script=script), (IN, "", 0))


def test_subprocess(w):
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import torch'], check=True)"
    equal(w.run(script=script), (IN, "", 0))


def test_number_of_the_descriptor_is_another_file_now(w):
    script = (
        "import os, subprocess, sys\n"
        "fd = int(os.environ['COOPSCOPE_FD'])\n"
        "os.dup2(os.open('other', os.O_RDWR | os.O_CREAT), fd)\n"
        "subprocess.run([sys.executable, '-c', 'import torch'], pass_fds=[fd], check=True)\n"
        "assert os.path.getsize('other') == 0 and os.lseek(fd, 0, os.SEEK_CUR) == 0\n"
    )
    equal(w.run(script=script), (IN, "", 0))


def test_tool_is_gone(w):
    env = dict(w.env(), COOPSCOPE_FD="", COOPSCOPE_WIRE="/proc/0/fd/3")
    out, err, code = w.run(script="import torch; print('on')", env=env)
    equal((out, code, err.count("\n")), ("on\n", 0, 1))
    contains(err, "the tool that started the run is gone")
    contains(err, "no memory budget is kept")


def test_broken_adapter(w):
    for text, reason in (
        ("raise ImportError('not for this\\nPython')", "not for this Python"),
        ("def install(torch, fd): raise RuntimeError('torch 1.2 is too old')", "torch 1.2 is too old"),
        ("def install(torch, fd): raise KeyError", "KeyError"),
        ("def install(torch, fd): 1 +", "invalid syntax"),
    ):
        w.write("python/coopscope/_adapter.py", text + "\n")
        out, err, code = w.run(script="import torch, sys; print('on', torch.ready); sys.exit(3)")
        equal((out, code, err.count("\n")), ("on 1\n", 3, 1))
        contains(err, "coopscope: ")
        contains(err, reason)
        contains(err, "no memory budget is kept")


def test_users_own_module_coopscope(w):
    w.write("coopscope.py", "mine = 1\n")
    out, err, code = w.run(script="import coopscope; print(coopscope.mine); import torch")
    equal((out, code), ("1\n", 0))
    contains(err, "a module of its own that is called coopscope")
    equal(w.run(script="import torch, coopscope; print(coopscope.__file__)"),
          (IN + os.path.join(w.package, "__init__.py") + "\n", "", 0))


def test_package_can_be_imported(w):
    equal(w.run("-c", "import coopscope, sys; print('torch' in sys.modules)"), ("False\n", "", 0))


def test_isolated_python_is_missed(w):
    """Nothing can be done from in here about -I and -E; that the tool says so, tests/boot/test_tool."""
    w.write("torch.py", "ready = 1\n")
    for flag in ("-I", "-E"):
        out, err, code = w.run(flag, "-c", "import sys; sys.path.insert(0, ''); import torch")
        equal((out, err, code), ("", "", 0))


if __name__ == "__main__":
    main(sys.modules["__main__"])
