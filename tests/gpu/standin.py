# SPDX-License-Identifier: Apache-2.0
"""A real PyTorch (CUDA build) on stand-in libraries: no GPU, no driver, kernels that do nothing.

    standin.py PYTHON SOURCE_ROOT FAKE_DRIVER_DIR -- SCRIPT [ARGUMENT...]

builds the stand-in runtime beside the fake driver and runs the script under both. A skipped plan,
with the reason, where PYTHON has no PyTorch built for CUDA 13.
"""

import os
import re
import subprocess
import sys

PROBE = """
import os, torch
print(torch.version.cuda or "", os.path.dirname(torch.__file__))
"""


def skip(reason):
    print("1..0 # SKIP " + reason)
    sys.exit(0)


def torch_of(python):
    done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True)
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 2:
        skip("%s has no PyTorch built for CUDA" % python)
    if not words[0].startswith("13."):
        skip("the stand-in is for CUDA 13, this PyTorch is built for %s" % words[0])
    return words[1]


def needed(torch):
    """The runtime's functions that this PyTorch imports."""
    names = set()
    folder = os.path.join(torch, "lib")
    for library in sorted(os.listdir(folder)):
        if not library.endswith(".so"):
            continue
        text = subprocess.run(["nm", "-D", "--undefined-only", os.path.join(folder, library)],
                              capture_output=True, text=True).stdout
        names |= set(re.findall(r" U (\w+)@libcudart\.so\.13", text))
    return names


def build(root, torch, driver):
    """The runtime, with every function that is not written returning "not supported"."""
    include = os.path.join(os.path.dirname(torch), "nvidia", "cu13", "include")
    source = os.path.join(root, "tests", "gpu", "fake-cudart.c")
    if not os.path.exists(os.path.join(include, "cuda_runtime_api.h")):
        skip("no CUDA headers beside PyTorch")
    library = os.path.join(driver, "libcudart.so.13")
    with open(source, encoding="utf-8") as file:
        written = set(re.findall(r"\b(_*cuda\w+) \(", file.read()))
    rest = os.path.join(driver, "fake-cudart-rest.c")
    with open(rest, "w", encoding="utf-8") as file:
        file.write("#include <stdio.h>\n#include <stdlib.h>\n")
        for name in sorted(needed(torch) - written):
            file.write('int %s (void) { if (getenv ("FAKE_CUDA_SAY")) '
                       'fputs ("not done: %s\\n", stderr); return 801; }\n' % (name, name))
    version = os.path.join(driver, "fake-cudart.map")
    with open(version, "w", encoding="utf-8") as file:
        file.write("libcudart.so.13 { global: cuda*; __cuda*; local: *; };\n")
    command = ["cc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-Wno-attributes", "-isystem", include,
               "-I" + os.path.join(root, "src"), "-I" + os.path.join(root, "tests", "support"),
               source, rest, "-o", library, "-Wl,-soname,libcudart.so.13",
               "-Wl,--version-script=" + version, os.path.join(driver, "libcuda.so.1"), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr[:4000], file=sys.stderr)
        sys.exit(1)
    return library


def environment(root, python, driver):
    library = build(root, torch_of(python), driver)
    env = dict(os.environ)
    env["LD_PRELOAD"] = " ".join(filter(None, [os.path.join(driver, "libcuda.so.1"), library,
                                               env.get("LD_PRELOAD")]))
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, [driver, env.get("LD_LIBRARY_PATH")]))
    return env


def main():
    python, root, driver = sys.argv[1:4]
    env = environment(root, python, driver)
    os.execve(python, [python] + sys.argv[sys.argv.index("--") + 1:], env)


if __name__ == "__main__":
    main()
