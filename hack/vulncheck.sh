#!/usr/bin/env bash
# Asks the vulnerability database of Go about what a binary is built from, and fails when it calls anything that is known to be vulnerable.
# GOVULNDB says where the database is, a copy in file:///DIR for one. Where it is not given and the public one cannot be reached, nothing
# is checked, and this says so.
set -o errexit -o nounset -o pipefail

binary="$1"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rc=0
said="$(go tool -modfile=hack/tools/lint/go.mod govulncheck ${GOVULNDB:+-db "${GOVULNDB}"} -mode=binary "${binary}" 2>&1)" || rc=$?
if ((rc == 0)); then
	echo "${said##*$'\n'}"
elif ((rc != 3)) && [[ -z ${GOVULNDB:-} && ${said} == *vuln.go.dev* ]]; then
	echo "govulncheck: NOT CHECKED, as https://vuln.go.dev cannot be reached from here; GOVULNDB may name a copy of it"
else
	echo "${said}"
	exit "${rc}"
fi
