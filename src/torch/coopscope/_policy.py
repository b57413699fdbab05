# SPDX-License-Identifier: Apache-2.0
"""The parameters of the running engine as a mapping, whose names come from the one list in C."""

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

Value = Union[int, float, bool, str]


class Parameter(NamedTuple):
    """One parameter, as `coop policy NAME` shows it."""

    name: str
    type: str  # size, int, real, bool or enum
    min: float
    max: float
    default: Value
    unit: str
    group: str
    help: str
    labels: Optional[Tuple[str, ...]]


def native() -> Any:
    """The C extension; imported late, so that `import coopscope` costs a script nothing."""
    import importlib

    return importlib.import_module("coopscope._coopscope")


def as_text(params: Mapping[str, Optional[Value]]) -> Dict[str, str]:
    """Values as the command line writes them; C reads and checks them, units and all."""
    return {
        name: str(int(value)) if isinstance(value, bool) else str(value)
        for name, value in params.items()
        if value is not None
    }


class Policy:
    """Reads and turns the parameters of the run, as the sliders of the window do.

    >>> coopscope.policy["evictor"]
    'coop'
    >>> coopscope.policy.budget = "200 MiB"

    Names are those of `coop policy`. A change takes effect at the engine's next decision and is a
    row of the trace. Bad names and values raise ValueError.
    """

    def __getitem__(self, name: str) -> Value:
        return self.values()[name]

    def __setitem__(self, name: str, value: Value) -> None:
        self.update({name: value})

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no parameter is called {name!r}") from None

    def __setattr__(self, name: str, value: Value) -> None:
        self[name] = value

    def __iter__(self) -> Iterator[str]:
        return (p.name for p in self.parameters())

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"coopscope.policy({self.values()!r})"

    def update(self, params: Mapping[str, Value]) -> None:
        """Sets several at once: the engine sees all of them or none."""
        native().policy_set(as_text(params))

    def values(self) -> Dict[str, Value]:
        """Every parameter's value now. RuntimeError if nothing runs."""
        return native().policy_get()

    def parameters(self) -> List[Parameter]:
        """What can be turned: names, ranges, defaults, help."""
        return [Parameter(*p) for p in native().params()]
