# Sourced by tools/build, tools/test and tools/demo: the Debian packages that each needs, installed when missing, and the linker.
# Needs nothing but apt, as root or with sudo. Prints one line if it installs something.

build_packages=(
  g++ ccache meson ninja-build pkg-config python3
  liblmdb-dev libxxhash-dev liburing-dev libabsl-dev libicu-dev libstemmer-dev libzstd-dev zlib1g-dev
  libsimdjson-dev nlohmann-json3-dev libcli11-dev
  libgtest-dev libbenchmark-dev
)
test_packages=(clang-14 libclang-rt-14-dev llvm-14 valgrind)  # the sanitizers' library and symbolizer; callgrind

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# Meson reads CXX_LD when it sets a directory up. gold links a test in half the time that bfd takes (0.6 and 1.4 s of CPU).
use_fast_linker() {
  if [ -z "${CXX_LD+set}" ] && command -v ld.gold >/dev/null; then export CXX_LD=gold; fi
}

install_packages() {
  local missing=() package log
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "Installing Debian packages: ${missing[*]}"
  log=$(mktemp)
  if ! { as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log"
    echo "tools/packages.sh: could not install the packages above" >&2
    return 1
  fi
  rm -f "$log"
}
