#!/usr/bin/env bash
# Installs into an empty prefix, compiles a program outside the tree against it by pkg-config, and runs that.
# usage: install_test.sh BUILD_DIR SOURCE_DIR CXX
set -euo pipefail
build=$1 source=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What is built is installed as it is: no rebuild from inside a test.
DESTDIR=$work/root meson install -C "$build" --no-rebuild --quiet
prefix=$(meson introspect "$build" --buildoptions |
  python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
pc=$(find "$work/root" -name ashlar.pc)
[ -n "$pc" ] || { echo "no ashlar.pc was installed" >&2; exit 1; }
for header in "$source"/include/ashlar/*.h "$source"/include/ashlar/testing/*.h; do
  [ -f "$work/root$prefix/${header#"$source"/}" ] || { echo "$header was not installed" >&2; exit 1; }
done
if find "$work/root" -name '*.h' | grep -v /include/ashlar/; then echo "headers that are not ours were installed" >&2; exit 1; fi

cp "$source/docs/examples/quickstart.cc" "$work/program.cc"
cd "$work"
# The prefix lies under DESTDIR here, which the file can't know.
mkdir pkgconfig
sed "s|^prefix=.*|prefix=$work/root$prefix|" "$pc" >pkgconfig/ashlar.pc
export PKG_CONFIG_PATH=$work/pkgconfig
flags=$(pkg-config --cflags --libs ashlar)
# shellcheck disable=SC2086
"$cxx" -std=c++20 program.cc $flags -o program
library=$(dirname "$(find "$work/root" -name 'libashlar.so*' | head -n 1)")
LD_LIBRARY_PATH=$library ./program "$work/store" >out
grep -q ' a$' out || { echo "the program did not find its document" >&2; cat out >&2; exit 1; }
"$work/root$prefix/bin/ashlar" get "$work/store" b | grep -q Rubble

# The laboratory is a library of its own beside it.
cp "$source/docs/examples/crash_lab.cc" "$work/lab.cc"
sed "s|^prefix=.*|prefix=$work/root$prefix|" "$(find "$work/root" -name ashlar-testing.pc)" >pkgconfig/ashlar-testing.pc
flags=$(pkg-config --cflags --libs ashlar-testing)
# shellcheck disable=SC2086
"$cxx" -std=c++20 lab.cc $flags -o lab
LD_LIBRARY_PATH=$library ./lab >out
grep -q ' 0 findings$' out || { echo "the laboratory of a program outside the tree found something" >&2; cat out >&2; exit 1; }
echo "a program outside the tree works with version $(pkg-config --modversion ashlar)"
