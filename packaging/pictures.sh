#!/bin/sh
# Pictures of every window and of the main window at its most telling steps, light and dark, without a screen.
# A person looks at them before a change of the windows is called done.
#
#   packaging/pictures.sh FOLDER [BUILD]     BUILD defaults to build/release, then build/dev
#
# Needs a font for the picture text (Debian: fonts-dejavu-core).
set -eu
[ $# -ge 1 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
build=${2:-}
for candidate in "$top/build/release" "$top/build/dev"; do
    [ -z "$build" ] && [ -x "$candidate/bin/cutaway" ] && build=$candidate
done
[ -n "$build" ] && [ -x "$build/bin/cutaway" ] || { echo "pictures.sh: cutaway is not built; run cmake --preset release && ninja -C build/release" >&2; exit 1; }
model=
for candidate in "$top"/resources/models/tiny_resnet.pt2 "$top"/resources/models/*.pt2; do [ -e "$candidate" ] && model=$candidate && break; done
model=${model#"$top"/} # the picture shows the path as given
[ -n "$model" ] || { echo "pictures.sh: no model in resources/models" >&2; exit 1; }

build=$(cd "$build" && pwd)
cd "$top"
export QT_QPA_PLATFORM=offscreen
shot() { # NAME OPTION...
    name=$1
    shift
    for theme in light dark; do
        "$build/bin/cutaway" ${model:+"$model"} --theme "$theme" --screenshot "$out/$name-$theme.png" "$@"
        echo "$out/$name-$theme.png"
    done
}
for window in $("$build/bin/cutaway" --list-windows); do shot "window-$window" --kernels --window "$window"; done
shot opened
shot kernels --kernels
sample=$model
model= # nothing is open
shot welcome
shot welcome-small --size 720x520
model=$sample
# The three passes that changed most.
taken=0
for step in $("$build/bin/cutaway" "$model" --list-changed-steps); do
    [ "$taken" -lt 3 ] || break
    taken=$((taken + 1))
    shot "step-$taken-$step" --step "$step"
    [ "$taken" -ne 1 ] || shot "step-$taken-$step-side" --step "$step" --mode side
    [ "$taken" -ne 1 ] || shot "rewrite-$step" --step "$step" --rewrite 1
    [ "$taken" -ne 1 ] || shot "rewrite-$step-explain" --step "$step" --rewrite 1 --window explain
done
