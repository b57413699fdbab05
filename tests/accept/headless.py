# SPDX-License-Identifier: Apache-2.0
"""A run in the window without a display, driven as a person would and checked.

    headless.py --build FOLDER --out FOLDER --budget SIZE --move-to MIB [--at-step N] -- COMMAND...

Runs COMMAND plain and keeps what it prints. Runs it again in `coopscope` under Xvfb with a bus of its
own, moves the budget slider over the accessibility bus, pauses the view, grabs the X screen, lets the
run end. Leaves OUT/screen.png and OUT/run.coop and fails unless

  - tensors were evicted,
  - the script printed the same as in the plain run, digit for digit,
  - the slider's move is a row of the trace, with the slider as its source,
  - the map on the screen equals the map drawn from the file at that event.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import headless_image as image

# The pointer stands in the middle of the screen, so the screen is twice the window and more.
SCREEN = "2720x1880x24"
EVICTED = "SELECT count(*) AS n FROM v_evicted"
MOVED = "SELECT new FROM v_policy WHERE param = 'budget' AND source = 'slider'"
STEP = "SELECT coalesce(max(step), 0) AS step FROM step"
ENDED = "SELECT 1 AS ended FROM session WHERE end_ns IS NOT NULL"
MIB = 1 << 20


class Failed(Exception):
    pass


def wait_for(what, seconds, ask):
    """The first true answer of ask()."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.02)
    raise Failed(f"{what}: nothing after {seconds} s")


class Bus:
    """A session bus of our own; the accessibility bus comes up on it by itself."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            ["dbus-daemon", "--session", "--nofork", "--print-address"],
            env=dict(os.environ, XDG_RUNTIME_DIR=folder),  # or it drives other people's sliders
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise Failed("dbus-daemon does not start")

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class Screen:
    """Xvfb, whose frame buffer is a file."""

    def __init__(self, folder):
        self.folder = folder
        ours, theirs = os.pipe()
        self.process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(theirs), "-screen", "0", SCREEN, "-fbdir", folder,
             "-nolisten", "tcp"],
            pass_fds=[theirs], stderr=subprocess.DEVNULL)
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            number = pipe.readline().strip()
        if not number:
            raise Failed("Xvfb does not start")
        self.display = ":" + number

    def grab(self):
        return image.read_xwd(os.path.join(self.folder, "Xvfb_screen0"))

    def close(self):
        self.process.terminate()
        self.process.wait()


class Window:
    """coopscope with a run in it."""

    def __init__(self, options, folder, bus, screen):
        self.tools = options.build
        self.note = os.path.join(folder, "note")
        self.trace = os.path.join(options.out, "run.coop")
        self.output = os.path.join(options.out, "run.txt")
        self.env = dict(
            os.environ, DISPLAY=screen.display, DBUS_SESSION_BUS_ADDRESS=bus.address,
            XDG_RUNTIME_DIR=folder, XDG_CONFIG_HOME=folder, XDG_STATE_HOME=folder,
            GDK_BACKEND="x11", GSK_RENDERER="cairo", GSETTINGS_BACKEND="memory",
            COOPSCOPE_GRAB_NOTE=self.note)
        self.env.pop("WAYLAND_DISPLAY", None)
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(self.trace + suffix):
                os.remove(self.trace + suffix)
        with open(self.output, "wb") as out:
            self.process = subprocess.Popen(
                [os.path.join(self.tools, "ui", "coopscope"), "--budget", options.budget,
                 "-o", self.trace, "--quit-when-done", "--", *options.command],
                env=self.env, stdout=out)

    def wait(self, what, seconds, ask):
        def asked():
            if self.process.poll() is not None:
                raise Failed(f"{what}: the window is gone, exit status {self.process.returncode}")
            return ask()

        return wait_for(what, seconds, asked)

    def drive(self, *args):
        tool = os.path.join(self.tools, "tests", "accept", "headless-a11y")
        done = subprocess.run([tool, *args], env=self.env, capture_output=True, text=True)
        if done.returncode:
            raise Failed(done.stderr.strip())
        return done.stdout.strip()

    def query(self, sql):
        """The first row of a query on the trace, or None; the file may not be there yet."""
        done = subprocess.run([os.path.join(self.tools, "src", "cli", "coop"), "query", "--json",
                               self.trace, sql], capture_output=True, text=True)
        rows = json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else []
        return list(rows[0].values()) if rows else None

    def shown(self):
        """What is on the screen while the view stands still (ui/grab-note.h), as a dict of numbers."""
        try:
            with open(self.note) as note:
                return {key: int(value) for key, value in
                        (word.split("=") for word in note.read().split())}
        except FileNotFoundError:
            return None

    def grab(self, screen):
        """What is shown, and the screen that shows it."""
        shown = self.wait("a view that stands still", 20, self.shown)
        grab = screen.grab()
        if self.shown() != shown:
            raise Failed("the view moved while the screen was grabbed")
        return shown, grab

    def run_out(self):
        """Until the script has ended and the window with it."""
        try:
            code = self.process.wait(timeout=900)
        except subprocess.TimeoutExpired:
            raise Failed("the run does not end") from None
        if code:
            raise Failed(f"the window ended with exit status {code}")

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise Failed("the window does not close")


def lines_of(path):
    with open(path) as f:
        return [line for line in f.read().splitlines()
                if line.startswith("step ") or " sha256 " in line]


def run_plain(options):
    path = os.path.join(options.out, "plain.txt")
    with open(path, "wb") as out:
        if subprocess.run(options.command, stdout=out).returncode:
            raise Failed("the plain run failed")
    return lines_of(path)


def check_map(window, shown, grab, out):
    drawn = os.path.join(out, "map-of-file.png")
    size = f"{shown['w']}x{shown['h']}"
    flags = [f for f, on in (("--dark", shown["dark"]), ("--high-contrast", shown["contrast"])) if on]
    seen = grab.crop(shown["x"], shown["y"], shown["w"], shown["h"])
    image.write_png(os.path.join(out, "map-on-screen.png"), seen)
    subprocess.run([os.path.join(window.tools, "ui", "coopscope"), "--map-of", window.trace,
                    "--event", str(shown["event"]), "--size", size, "--scale", str(shown["scale"]),
                    *flags, "--out", drawn], env=window.env, check=True)
    wrong = seen.differing(image.read_png(drawn))
    if wrong:
        raise Failed(f"the map on the screen differs from the file's in {wrong} pixels of {size}")
    if seen.colours() < 4:
        raise Failed("the map on the screen is empty")
    print(f"map: {size} pixels on the screen equal those drawn from the file at event "
          f"{shown['event']}", flush=True)


def drive(window, screen, options):
    """What a person does while the script runs. Returns what was shown and the grab of it."""
    window.wait("evictions", 120, lambda: (window.query(EVICTED) or [0])[0] > 0)
    window.wait("a few steps", 300, lambda: window.query(STEP)[0] >= options.at_step)
    window.drive("set", "budget", str(options.move_to))
    moved = window.wait("the slider's row in the trace", 20, lambda: window.query(MOVED))[0]
    if moved != options.move_to * MIB:
        raise Failed(f"the slider's row says {moved} bytes")
    print(f"slider: the budget moved to {options.move_to} MiB, and the trace has it", flush=True)
    window.drive("press", "Pause view")
    shown, grab = window.grab(screen)
    if window.query(ENDED):
        raise Failed("the run ended before the grab: more steps are needed")
    image.write_png(os.path.join(options.out, "screen.png"), grab.used())
    window.drive("press", "Pause view")
    window.run_out()
    return shown, grab


def check(window, options, plain, shown, grab):
    evicted = window.query(EVICTED)[0]
    if not evicted:
        raise Failed("nothing was evicted")
    print(f"evictions: {evicted}", flush=True)
    if not plain or lines_of(window.output) != plain:
        raise Failed(f"the script printed something else than in the plain run: compare\n"
                     f"  {window.output}\n  {os.path.join(options.out, 'plain.txt')}")
    print(f"losses: all {len(plain)} lines equal the plain run's", flush=True)
    check_map(window, shown, grab, options.out)


def run_in_the_window(options, folder, plain):
    opened = []
    try:
        opened.append(Bus(folder))
        opened.append(Screen(folder))
        bus, screen = opened
        window = Window(options, folder, bus, screen)
        opened.append(window)
        shown, grab = drive(window, screen, options)
        check(window, options, plain, shown, grab)
    finally:
        for thing in reversed(opened):
            thing.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--budget", required=True)
    parser.add_argument("--move-to", required=True, type=int)
    parser.add_argument("--at-step", type=int, default=4)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="coop-headless-")
    try:
        run_in_the_window(options, folder, run_plain(options))
    except Failed as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"screen: {os.path.join(options.out, 'screen.png')}")
    print(f"trace:  {os.path.join(options.out, 'run.coop')}")
    return 0


sys.exit(main())
