#!/bin/sh
# Installs kymo from this folder, as it comes out of the archive.
#
#   ./install.sh              for all users, below /usr/local; root; the service is enabled and started
#   ./install.sh --user       for one user, below ~/.local; no root
#   ./install.sh --uninstall [--user]   removes it; recordings and /etc/kymo stay
#
# Options: --prefix FOLDER, in place of /usr/local or ~/.local; --no-start: the files alone, no service is changed.
# DESTDIR in the environment is put before all places, for whoever makes a package.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
user=
uninstall=
start=yes
prefix=

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
  --user) user=yes ;;
  --uninstall) uninstall=yes ;;
  --no-start) start= ;;
  --prefix)
    [ $# -gt 1 ] || fail "cannot use --prefix: it takes a folder"
    prefix=$2
    shift
    ;;
  --help | -h)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit
    ;;
  *) fail "there is no option $1; see ./install.sh --help" ;;
  esac
  shift
done

root=${DESTDIR:-}
if [ -n "$user" ]; then
  [ -n "${HOME:-}" ] || fail "cannot find your home folder: HOME is not set"
  prefix=${prefix:-$HOME/.local}
  units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
else
  prefix=${prefix:-/usr/local}
  units=/etc/systemd/system
  [ -n "$root" ] || [ "$(id -u)" = 0 ] || fail "cannot write below $prefix: run it as root, or with --user"
fi
case $prefix in
/*) ;;
*) fail "cannot use --prefix $prefix: begin it with /" ;;
esac

# Runs systemctl where a systemd runs that has our units.
systemd() {
  [ -n "$start" ] && [ -z "$root" ] && command -v systemctl >/dev/null || return 0
  if [ -n "$user" ]; then
    [ -S "${XDG_RUNTIME_DIR:-/nowhere}/systemd/private" ] || return 0
    systemctl --user "$@"
  else
    [ -d /run/systemd/system ] || return 0
    systemctl "$@"
  fi
}

# The files of the archive, without what install.sh places by itself.
files() {
  (cd "$here" && find bin share include -type f ! -path 'share/doc/*' ! -path 'share/kymo/*' | sort)
}

put() {
  mkdir -p "$(dirname "$root$3")"
  # Renamed into its place, since a program that runs cannot be written.
  cp "$2" "$root$3.new"
  chmod "$1" "$root$3.new"
  mv "$root$3.new" "$root$3"
}

# A unit with the program's place in it, in quotes, since a folder may have a blank.
put_unit() {
  place=$(printf %s "$prefix" | sed 's/[&|\\]/\\&/g')
  sed "s|^ExecStart=/usr/bin/kymo |ExecStart=\"$place/bin/kymo\" |; s|/usr/share/kymo|$place/share/kymo|" "$1" >"$work/unit"
  put 644 "$work/unit" "$units/${1##*/}"
}

unit_names() {
  if [ -n "$user" ]; then
    echo kymo.service
  else
    (cd "$here/lib/systemd/system" && ls)
  fi
}

remove() {
  systemd disable --now kymo.service || :
  for unit in $(unit_names); do rm -f "$root$units/$unit"; done
  files | while read -r file; do rm -f "$root$prefix/$file"; done
  rm -f "$root$prefix/share/kymo/connects-out.conf"
  rmdir "$root$prefix/share/kymo" 2>/dev/null || :
  [ -n "$user" ] || rm -f "$root/etc/sysusers.d/kymo.conf"
  systemd daemon-reload || :
  echo "kymo is removed; its recordings and settings are where they were"
}

add_user() {
  put 644 "$here/lib/sysusers.d/kymo.conf" /etc/sysusers.d/kymo.conf
  [ -z "$root" ] || return 0
  if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers kymo.conf
  elif ! grep -q '^kymo:' /etc/passwd; then
    useradd --system --user-group --no-create-home --home-dir /var/lib/kymo --shell /sbin/nologin kymo
  fi
}

install_all() {
  files | while read -r file; do
    case $file in
    bin/*) put 755 "$here/$file" "$prefix/$file" ;;
    *) put 644 "$here/$file" "$prefix/$file" ;;
    esac
  done
  put 644 "$here/share/kymo/connects-out.conf" "$prefix/share/kymo/connects-out.conf"
  if [ -n "$user" ]; then
    put_unit "$here/lib/systemd/user/kymo.service"
  else
    for unit in $(unit_names); do put_unit "$here/lib/systemd/system/$unit"; done
    [ -e "$root/etc/kymo/kymo.toml" ] || put 644 "$here/etc/kymo.toml" /etc/kymo/kymo.toml
    add_user
  fi
  systemd daemon-reload
  systemd enable kymo.service
  systemd restart kymo.service
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "$uninstall" ]; then
  remove
  exit
fi
"$here/bin/kymo" --version >/dev/null || fail "cannot run $here/bin/kymo: this archive is for another processor"
install_all
echo "kymo is in $prefix/bin; the page is at http://127.0.0.1:4280/ once 'kymo serve' runs"
if [ -n "$user" ]; then
  case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) echo "add it to your PATH: export PATH=$prefix/bin:\$PATH" ;;
  esac
fi
