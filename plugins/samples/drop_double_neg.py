"""A pass in Python: a value that is negated twice is the value.

Put it into ~/.local/share/cutaway/plugins, then: cutaway-cli steps MODEL --plugin drop_double_neg
"""
import re

from cutaway_plugin import plugin

mine = plugin("drop_double_neg", "1.0", "Drops pairs of negations")
NEG = re.compile(r'^ +(\w+): "([^"]*)" = aten\.neg\.default\((\w+)\)$')


@mine.transform("drop", "Drops pairs of negations", place="post_grad_custom_pre_pass")
def drop(graph, host):
    lines = graph.split("\n")
    negated, same = {}, {}
    for number, line in enumerate(lines):
        head, equals, right = line.partition(" = ")
        if same and equals:
            right = re.sub(r"(?<![\w.])\w+", lambda word: same.get(word.group(), word.group()), right)
        elif same and line.lstrip().startswith(("return", "(")) or same and not equals:
            head = re.sub(r"(?<![\w.])\w+", lambda word: same.get(word.group(), word.group()), head)
        lines[number] = line = head + equals + right
        found = NEG.match(line)
        if not found:
            continue
        name, _, operand = found.groups()
        if operand in negated:
            same[name] = negated[operand]
            lines[number] = None
            host.rewrite(name, "double_neg", "a value that is negated twice is the value")
        else:
            negated[name] = operand
    if same:
        return "\n".join(line for line in lines if line is not None)
