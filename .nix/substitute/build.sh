#!/usr/bin/env bash
# The builder of the substitute's stdenv: the phases of a package, as far as ndpip's packages use them.
set -euo pipefail
shopt -s nullglob
export HOME=$TMPDIR

runHook() {
  local hook=${1}
  if declare -F "$hook" >/dev/null; then
    "$hook"
  else
    eval "${!hook-}"
  fi
}

runPhase() {
  local phase=${1}
  if [ -n "${!phase-}" ]; then
    eval "${!phase}"
  else
    "$phase"
  fi
}

for input in ${nativeBuildInputs-} ${buildInputs-} ${propagatedBuildInputs-}; do
  if [ -d "$input/bin" ]; then PATH=$input/bin:$PATH; fi
  if [ -d "$input/lib/pkgconfig" ]; then PKG_CONFIG_PATH=$input/lib/pkgconfig:${PKG_CONFIG_PATH-}; fi
done
export PATH PKG_CONFIG_PATH=${PKG_CONFIG_PATH-}

unpackPhase() {
  if [ -n "${src-}" ]; then
    cp -r "$src" source
    chmod -R u+w source
    cd source
  fi
}
configurePhase() { runHook preConfigure; }
buildPhase() { :; }
checkPhase() { :; }
installPhase() { :; }

cd "$TMPDIR"
runPhase unpackPhase
runPhase configurePhase
runPhase buildPhase
if [ -n "${doCheck-}" ]; then runPhase checkPhase; fi
runPhase installPhase
