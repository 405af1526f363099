"""A colouring in Python: the family of each call, as a class.

Put it into ~/.local/share/cutaway/plugins, then: cutaway-cli plugin color color_family MODEL
"""
import re

from cutaway_plugin import plugin

mine = plugin("color_family", "1.0", "Colours calls by what they do")
CALL = re.compile(r'^ +(\w+)(?:: "[^"]*")? = aten\.(\w+)\.', re.M)
FAMILIES = {
    "product": {"mm", "bmm", "addmm", "baddbmm", "linear", "matmul", "convolution"},
    "view": {"view", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "slice", "select", "reshape"},
    "reduction": {"sum", "mean", "amax", "amin", "var", "var_mean", "softmax", "_softmax", "native_layer_norm"},
}


@mine.coloring("family", "Products, views, reductions, and the rest")
def family(graph, host):
    for name, op in CALL.findall(graph):
        kind = next((kind for kind, ops in FAMILIES.items() if op in ops), "elementwise")
        host.color(name, kind=kind, why="aten.%s is of the family %s" % (op, kind))
