"""An importer in Python: files that hold FX text behind a line of their own.

Put it into ~/.local/share/cutaway/plugins, then: cutaway-cli info MODEL.import_fx
"""
from cutaway_plugin import plugin

mine = plugin("import_fx", "1.0", "Reads FX text behind a line that says so")


@mine.importer("fx", "FX text behind the line !import_fx", patterns="*.import_fx")
def read(file, data, host):
    first, _, rest = data.decode().partition("\n")
    if first != "!import_fx":
        raise ValueError("the first line is not !import_fx")
    host.emit("main", rest)
