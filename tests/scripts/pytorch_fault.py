"""A failure of PyTorch itself, for minifying: torch.compile with the fault in relu that it ships for this purpose.

    cutaway-cli minify model.pt2 --check command --match CppCompileError -o DIR \
        --command 'python tests/scripts/pytorch_fault.py {} compile_error'

The second word is PyTorch's: compile_error, runtime_error or accuracy. Needs PyTorch 2.11.
"""

import importlib.util
import sys

import torch
import torch._inductor.config


def main():
    file, fault = sys.argv[1], sys.argv[2]
    torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = fault
    spec = importlib.util.spec_from_file_location("graph", file)
    graph = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(graph)
    module, arguments = graph.Repro(), graph.stored_args()
    with torch.no_grad():
        expected = module(*[each.clone() for each in arguments])
    try:
        with torch.no_grad():
            found = torch.compile(module)(*arguments)
    except Exception as error:  # noqa: BLE001, whatever PyTorch throws is what is looked for
        print(type(error).__name__, repr(error))
        return 1
    for want, have in zip(expected, found):
        if isinstance(want, torch.Tensor) and not torch.allclose(want, have, rtol=1e-3, atol=1e-3, equal_nan=True):
            print("other numbers")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
