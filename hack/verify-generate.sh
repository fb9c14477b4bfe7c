#!/usr/bin/env bash
# Fails, and shows the difference, when what is generated is not what hack/generate.sh makes of the working tree. The working tree
# stays as it is: the generators run in a copy.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy="$(mktemp -d)"
trap 'rm -rf "${copy}"' EXIT

for path in go.mod go.sum apis cmd config docs generated hack internal pkg; do
	cp -R "${path}" "${copy}/${path}"
done
"${copy}/hack/generate.sh"

stale=0
for path in apis generated pkg/delivery/plugins/wire docs/internals.md docs/delivery/reference.md; do
	diff --unified --recursive --new-file "${path}" "${copy}/${path}" || stale=1
done
if ((stale)); then
	echo "what is generated is stale: run hack/generate.sh and commit what it changes" >&2
	exit 1
fi
