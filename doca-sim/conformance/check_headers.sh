#!/bin/sh
# check_headers.sh INCLUDE_DIR: each header compiles alone, twice in one file, as pedantic C99 and as C++17,
# with every warning an error; and brings what programs take from it without including that themselves.
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

# Programs written for real headers count on these.
while read -r name use; do
    printf '#include <%s.h>\nvoid uses(void);\nvoid uses(void) { %s; }\n' "$name" "$use" >"$scratch/uses.c"
    ${CC:-cc} -std=gnu11 -Wall -Werror -fsyntax-only -I "$include" "$scratch/uses.c"
done <<'END'
doca_compat char text[2]; memset(text, 0, sizeof(text)); free(malloc(1)); assert(text[0] == 0)
doca_compat uint8_t byte = UINT8_MAX; (void)byte; (void)DOCA_VERSION_EXACT
doca_error int odd = doca_unlikely(0); (void)odd
doca_pe free(malloc(1))
doca_dma const char *format = "%" PRIu64; (void)format
doca_rdma bool wanted = true; (void)wanted; struct rdma_cm_id id; (void)id.channel
doca_rdma_bridge struct ibv_context context; (void)context.num_comp_vectors; union doca_data data; (void)data.u64
END
echo "$checked headers compile alone, as C99 and as C++17"
