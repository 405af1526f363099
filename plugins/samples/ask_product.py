"""An oracle: a graph fails as long as it has a product whose result is wider than a limit.

Put it into ~/.local/share/cutaway/plugins, then:
    cutaway-cli minify MODEL --oracle ask_product
    cutaway-cli bisect MODEL --oracle ask_product
"""
import re

from cutaway_plugin import plugin

mine = plugin("ask_product", "1.0", "Asks whether a graph has a wide product")
LIMIT = 64
PRODUCT = re.compile(r'^ *(\w+): "\w+\[(?:\d+, )*(\d+)\][^"]*" = aten\.(mm|addmm|bmm|addcmul)\.default\(', re.M)


@mine.oracle("wide", "Fails while a product is wider than 64")
def wide(graph, host):
    for name, width, op in PRODUCT.findall(graph):
        if int(width) > LIMIT:
            host.say("%s, an %s, is %s wide" % (name, op, width))
            return True
    return False
