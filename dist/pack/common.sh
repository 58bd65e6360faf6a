# shellcheck shell=bash
# What the scripts of this folder share: names, the time of all files, and archives that are the same each time.

fail() {
  echo "$*" >&2
  exit 1
}

version=${KYMO_VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)}
machine=$(uname -m)
case $machine in
  x86_64) debian_machine=amd64 image_machine=amd64 ;;
  aarch64) debian_machine=arm64 image_machine=arm64 ;;
  *) debian_machine=$machine image_machine=$machine ;;
esac
# Names for the scripts that read this file.
level=${KYMO_LEVEL:-9}
export version machine debian_machine image_machine level
out=${out:-target/packages}

# All files have the time of the commit.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null) ||
    fail "cannot make packages: this is no clone of git; set SOURCE_DATE_EPOCH, in seconds since 1970"
fi
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

# put MODE FILE PLACE: copies a file, and makes the folders above it.
put() {
  install -D -m "$1" "$2" "$3"
}

# archive FOLDER [WORDS OF TAR...]: a tar on stdout, with names in order, root as the owner and the time of the commit.
archive() {
  local folder=$1
  shift
  tar --create --directory "$folder" --sort=name --format=posix \
    --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime \
    --mtime="@$SOURCE_DATE_EPOCH" --owner=root:0 --group=root:0 --mode=u+rw,go-w "$@"
}

# Gives all files and folders below a folder the time of the commit.
set_times() {
  find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# Bytes of the files below a folder, in KiB, each file rounded up: the same on every file system.
kibibytes() {
  find "$1" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum + 0 }'
}

# Packs stdin; the header has no name and no time.
packed() {
  gzip "-$level" --no-name
}

# deb TREE NAME: packs a tree with a folder DEBIAN.
deb() {
  (cd "$1" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$1/DEBIAN/md5sums"
  set_times "$1"
  dpkg-deb --root-owner-group -Zxz "-z$level" --build "$1" "$out/$2_${version}_$debian_machine.deb" >/dev/null
}
