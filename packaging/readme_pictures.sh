#!/bin/sh
# The pictures of README.md, as the programs make them without a screen, and the moving one of the same.
#
#   packaging/readme_pictures.sh [BUILD]     BUILD defaults to build/release
#
# Needs ImageMagick and a font for the picture text (Debian: imagemagick, fonts-dejavu-core).
set -eu
cd "$(dirname "$0")/.."
cutaway=${1:-build/release}/bin/cutaway
[ -x "$cutaway" ] || { echo "readme_pictures.sh: $cutaway is not built; run cmake --build --preset release" >&2; exit 1; }
command -v convert >/dev/null || { echo "readme_pictures.sh: convert is missing; install imagemagick" >&2; exit 1; }
pictures=resources/pictures
export QT_QPA_PLATFORM=offscreen
frames=$(mktemp -d)
models=/tmp/models # pictures show the path of the model
mkdir "$models"
trap 'rm -rf "$frames" "$models"' EXIT
cp resources/models/tiny_transformer.* "$models"
shot() { # FILE OPTION...
    file=$1
    shift
    "$cutaway" "$models/tiny_transformer.pt2" --theme light --size 1200x720 --screenshot "$file" "$@" 2>/dev/null
}
small() { convert "$1" -colors 128 -define png:compression-level=9 "$2"; }

# From the model as it is to its kernels: each frame is a step, and within decompose each is a rewrite.
frame=10
next() {
    frame=$((frame + 1))
    shot "$frames/$frame.png" "$@"
}
next --node layer_norm
next --step expand_composites --node native_layer_norm
for rewrite in 1 2 3 4 5 6 7; do next --step decompose --rewrite $rewrite; done
next --step decompose
next --step fuse_nodes
convert -delay 160 -loop 0 "$frames"/*.png -resize 960x -colors 64 +dither -layers optimize "$pictures/steps.gif"

shot "$frames/rewrite.png" --step decompose --rewrite 1 --node native_layer_norm
small "$frames/rewrite.png" "$pictures/rewrite.png"
# Of the Kernels window alone.
"$cutaway" "$models/tiny_transformer.pt2" --theme light --size 1900x1150 --kernels --window kernels \
    --screenshot "$frames/kernels.png" 2>/dev/null
small "$frames/kernels.png" "$pictures/kernels.png"
ls -l "$pictures"
