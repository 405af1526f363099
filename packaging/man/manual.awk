# Makes the man page of cutaway-cli from what `cutaway-cli manual` prints: headings of one to four `#`, items that begin
# with "- ", blocks indented by four spaces or fenced, words between backquotes, and links to other pages. Both come from the tables that the program works
# by, so the page lists what this build can do.
#
#   cutaway-cli manual | awk -v version=VERSION -f manual.awk

# What troff would read as more than a letter: backslashes, and signs that it prints as others.
function plain(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/'/, "\\(aq", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/~/, "\\(ti", text)
    return text
}
# Text with its words between backquotes in bold. A line that begins with a point would be a request.
function marked(text,    parts, count, i, out) {
    count = split(plain(text), parts, "`")
    for (i = 1; i <= count; ++i) out = out (i % 2 == 0 ? "\\fB" parts[i] "\\fR" : parts[i])
    return (out ~ /^\./ ? "\\&" : "") out
}
function without_links(text,    link) {
    while (match(text, /\[[^]]*\]\([a-z0-9-]+\.md\)/)) {
        link = substr(text, RSTART + 1, RLENGTH - 1)
        text = substr(text, 1, RSTART - 1) substr(link, 1, index(link, "]") - 1) substr(text, RSTART + RLENGTH)
    }
    return text
}
function end_block() {
    if (in_block) print ".fi\n.RE"
    in_block = 0
}

BEGIN {
    print ".TH CUTAWAY\\-CLI 1 \"\" \"Cutaway " version "\" \"User Commands\""
    print ".ad l" # names of passes and rules are long
}
# Code between fences, and links, of which a man page has the words alone.
/^```/ {
    fenced = !fenced
    print (fenced ? ".PP\n.RS\n.nf" : ".fi\n.RE")
    blank = 0
    next
}
fenced {
    line = plain($0)
    print (line ~ /^\./ ? "\\&" : "") line
    next
}
/^    / {
    if (!in_block) print ".PP\n.RS\n.nf"
    in_block = 1
    line = plain(substr($0, 5))
    print (line ~ /^\./ ? "\\&" : "") line
    next
}
# A blank line within a block has the block's four spaces.
/^$/ {
    blank = 1
    end_block()
    next
}
{ end_block() }
{ $0 = without_links($0) }
/^# / {
    print ".SH NAME\ncutaway\\-cli \\- debugger for graph compilers on the command line"
    print ".SH SYNOPSIS\n\\fBcutaway\\-cli\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...]"
    print ".SH DESCRIPTION"
    blank = 0
    next
}
/^## / {
    print ".SH " toupper(plain(substr($0, 4)))
    blank = 0
    next
}
/^### / {
    print ".SS " plain(substr($0, 5))
    blank = 0
    next
}
/^#### / {
    print ".SS " plain(substr($0, 6))
    blank = 0
    next
}
/^- / && !/^- `[^`]*`(:|$)/ {
    print ".IP \\(bu 2\n" marked(substr($0, 3))
    blank = 0
    next
}
/^  [^ ]/ {
    print marked(substr($0, 3))
    next
}
/^- / {
    text = substr($0, 3)
    name = text
    sub(/^`[^`]*`/, "", text)
    name = substr(name, 1, length(name) - length(text))
    sub(/^: /, "", text)
    print ".TP\n" marked(name)
    if (text != "") print marked(text)
    blank = 0
    next
}
{
    if (blank) print ".PP"
    blank = 0
    print marked($0)
}
END {
    end_block()
    print ".SH SEE ALSO\n.BR cutaway (1),\n.BR cutaway_plugin (3)"
}
