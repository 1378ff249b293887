#!/bin/sh
# check_headers.sh INCLUDE_DIR: each header compiles alone, twice in one file, as pedantic C99 and as C++17,
# with every warning an error.
set -eu

include=${1:?usage: check_headers.sh INCLUDE_DIR}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

warnings="-Wall -Wextra -Wpedantic -Werror -Wstrict-prototypes"
checked=0
for header in "$include"/*.h; do
    name=$(basename "$header")
    printf '#include <%s>\n#include <%s>\nextern int not_empty;\n' "$name" "$name" >"$scratch/alone.c"
    cp "$scratch/alone.c" "$scratch/alone.cpp"
    for define in "" -DDOCA_ALLOW_EXPERIMENTAL_API; do
        # shellcheck disable=SC2086 # words on purpose
        ${CC:-cc} -std=c99 $warnings $define -fsyntax-only -I "$include" "$scratch/alone.c"
        # shellcheck disable=SC2086
        ${CXX:-c++} -std=c++17 ${warnings% *} $define -fsyntax-only -I "$include" "$scratch/alone.cpp"
    done
    checked=$((checked + 1))
done
[ "$checked" -gt 0 ] || { echo "no header in $include" >&2; exit 1; }
echo "$checked headers compile alone, as C99 and as C++17"
