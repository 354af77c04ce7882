#!/bin/sh
# Prints the newest Python that lamina runs on and this machine has: the JAX that is followed needs 3.12.
# Where there is none it is python3, and tools/make_venv.py says what is wrong.
for version in 3.13 3.12 3.11; do
  for candidate in "$HOME"/.pyenv/versions/"$version".*/bin/python3 \
      "$(command -v "python$version")" "$(command -v python3)"; do
    if [ -x "$candidate" ] &&
        [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>&1)" = "$version" ]; then
      echo "$candidate"
      exit
    fi
  done
done
echo python3
