#!/usr/bin/env bash
# Makes .venv complete: packages by their hashes, the project itself, Java, the JARs by their sums.
# Run again, it compares and does nothing. `make setup` calls it; PYTHON= names another Python.
set -euo pipefail
cd "$(dirname "$0")/../.."

PYTHON=${PYTHON:-python3}
VENV=.venv

mkdir -p build
say() { printf 'setup: %s\n' "$*" >&2; }
stop() { say "$*"; exit 2; }
as_root_with_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# Two runs at once take turns.
if command -v flock >/dev/null; then
  exec 9>build/setup.lock
  flock -n 9 || { say "another setup is running here; waiting for it"; flock 9; }
fi

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

make_venv() {
  command -v "$PYTHON" >/dev/null || stop "there is no $PYTHON: install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python3"
  new_enough "$PYTHON" || stop "Python 3.11 or newer is needed and $PYTHON is $("$PYTHON" -V 2>&1): name another one: make setup PYTHON=/path/to/python3.11"
  say "making $VENV with $("$PYTHON" -V)"
  if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then # Debian's Python comes without both
    as_root_with_apt || stop "this Python cannot make a venv: install its venv package (Debian and Ubuntu: apt-get install python3-venv)"
    apt_install python3-venv
  fi
  rm -rf "$VENV"
  "$PYTHON" -m venv "$VENV"
}

apt_install() {
  say "apt-get install $*"
  apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

# uv does not read pip's configuration: a mirror or certificate that is set for pip is handed on.
pip_setting() { sed -n "s/^[a-z:]*\.$1='\(.*\)'\$/\1/p" <<<"$pip_config" | tail -1; }
hand_on_pip_configuration() {
  pip_config=$("$VENV/bin/python" -m pip config list 2>/dev/null || true)
  local index cert
  index=$(pip_setting index-url)
  cert=$(pip_setting cert)
  [ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
  [ -z "$cert" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$cert}"
}

# True when the step's inputs are the ones it was last done with.
unchanged() { [ "$(cat "$VENV/.done-$1" 2>/dev/null)" = "$2" ]; }
done_with() { printf '%s' "$2" >"$VENV/.done-$1"; }

install_packages() {
  say "uv, by its hash"
  "$VENV/bin/python" -m pip install --quiet --require-hashes -r infra/python/bootstrap.lock >&2
  hand_on_pip_configuration
  say "packages of requirements.lock, by their hashes (the first time some minutes: PySpark is large)"
  # `sync`, not `install -r`: the latter fetches and builds PySpark anew for every new folder.
  # The lock also pins what PySpark is built with.
  "$VENV/bin/uv" pip sync --python "$VENV/bin/python" --require-hashes \
    --build-constraints requirements.lock requirements.lock 2>&1 | { grep -vE '^ [+-] |^ Downloaded ' >&2 || true; }
}

install_project() {
  say "the project itself, editable"
  "$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python" --no-deps --no-build-isolation --offline -e . >&2
  rm -rf "$VENV"/lib/python3.*/site-packages/weighbridge # a wheel's copy of dags/, models/, sql/: here they are at hand
}

java_version() {
  local java="java"
  [ -z "${JAVA_HOME:-}" ] || java="$JAVA_HOME/bin/java"
  "$java" -version 2>&1 | sed -n 's/.*version "\([0-9.+_-]*\)".*/\1/p' | head -1
}

need_java() {
  local major
  major=$(java_version)
  major=${major%%.*}
  [ "${major:-0}" -lt 17 ] || return 0
  local way="install a Java 17 runtime (Debian and Ubuntu: apt-get install openjdk-17-jre-headless, or openjdk-21-jre-headless) or point JAVA_HOME at one"
  if as_root_with_apt && [ -z "${JAVA_HOME:-}" ]; then
    apt_install openjdk-17-jre-headless || apt_install openjdk-21-jre-headless || stop "Java 17 or newer is needed: $way"
  else
    stop "Java 17 or newer is needed and ${major:-none} was found: $way"
  fi
}

archive_classes() {
  say "an archive of Spark's classes, so that every later start is quicker (half a minute, once)"
  "$VENV/bin/python" infra/spark/archive_classes.py >build/archive_classes.log 2>&1 ||
    say "no archive could be made (build/archive_classes.log says why); everything works without, only slower"
}

new_enough "$VENV/bin/python" || make_venv
python=$("$VENV/bin/python" -c 'import sys; print(sys.version, sys.prefix)')

packages=$(cat requirements.lock infra/python/*.lock - <<<"$python" | sha256sum)
unchanged packages "$packages" || { install_packages && done_with packages "$packages" && rm -f "$VENV/.done-project"; }

project=$(cat pyproject.toml jobs/weighbridge/__init__.py - <<<"$python" | sha256sum)
unchanged project "$project" || { install_project && done_with project "$project"; }

need_java
"$VENV/bin/weighbridge" jars >&2

spark=$(grep -E '^(pyspark|py4j|delta-spark)==' requirements.lock)
classes=$(cat infra/spark/jars.lock infra/spark/archive_classes.py - <<<"$spark $python $(java_version)" | sha256sum)
unchanged classes "$classes" || { archive_classes && done_with classes "$classes"; }
