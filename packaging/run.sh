#!/usr/bin/env bash
# Builds Cutaway and opens it on a bundled model; without a display, prints the headless report instead.
# Usage: packaging/run.sh [MODEL]
set -euo pipefail
targets=(cutaway cutaway-layout cutaway-cli cutaway-worker cutaway-man)
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
bin=build/release/bin
model=${1:-resources/models/tiny_transformer.pt2}
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    exec "$bin/cutaway" "$model"
fi
echo
echo "No display: this is the report that the window would show. Set DISPLAY to see the window."
echo
"$bin/cutaway-cli" info "$model"
echo
"$bin/cutaway-cli" steps "$model"
echo
"$bin/cutaway-cli" diff "$model" --step decompose
echo
echo "reference interpreter:"
"$bin/cutaway-cli" run "$model" --backend reference --repeat 20
echo
echo "compiled for this CPU:"
"$bin/cutaway-cli" run "$model" --backend cpu --repeat 20
