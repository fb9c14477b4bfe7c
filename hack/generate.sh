#!/usr/bin/env bash
# Generates everything that is derived from apis/: deep copies, defaulting, OpenAPI, apply configurations, clientset, listers and
# informers; and the Go of the plugins' protocol from its .proto files. The generators are the tools that go.mod names, so that their version
# is the one of the libraries they generate for.
# The picture of the packages in docs/internals.md is derived from their imports, and the fields in docs/delivery/reference.md from the types.
set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly module=github.com/manifold-dev/manifold
# The groups that are served, each as its folder in apis/.
readonly apis=(manifold/v1alpha1 delivery/v1alpha1)
readonly api_packages=("${apis[@]/#/${module}/apis/}")
# The protocol of plugins.
readonly wire=pkg/delivery/plugins/wire
readonly header=hack/generate/boilerplate.go.txt

scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT

generate() {
	local tool="$1"
	shift
	go tool "${tool}" --go-header-file "${header}" "$@"
}

# Files of an earlier run go first: the generators read the packages that they write to, and what is no longer generated must not stay.
rm -rf generated
rm -f apis/*/*/zz_generated.*.go "${wire}"/*/zz_generated.*.go

# First, since what is generated below reads packages that import these.
go run ./hack/generate/protos "${wire}"

generate deepcopy-gen --output-file zz_generated.deepcopy.go "${api_packages[@]}"
generate defaulter-gen --output-file zz_generated.defaults.go "${api_packages[@]}"

# The name of a model is this package's path turned around (see +k8s:openapi-model-package in doc.go), as it is for Kubernetes' own
# types: applyconfiguration-gen looks for that name alone.
generate openapi-gen --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
	--output-dir generated/openapi --output-pkg "${module}/generated/openapi" --report-filename "${scratch}/violations" \
	"${api_packages[@]}"
if [[ -s "${scratch}/violations" ]]; then
	echo "the API types break these rules of openapi-gen:" >&2
	cat "${scratch}/violations" >&2
	exit 1
fi

# openapi-gen knows the model names of the packages it writes for, and refers to all others by their Go names, under which the
# server does not have them. A reference that is left wrong fails the next step.
sed \
	-e 's#"k8s\.io/api/core/v1\.#"io.k8s.api.core.v1.#g' \
	-e 's#"k8s\.io/apimachinery/pkg/api/resource\.#"io.k8s.apimachinery.pkg.api.resource.#g' \
	-e 's#"k8s\.io/apimachinery/pkg/runtime\.#"io.k8s.apimachinery.pkg.runtime.#g' \
	-e 's#"k8s\.io/apimachinery/pkg/util/intstr\.#"io.k8s.apimachinery.pkg.util.intstr.#g' \
	-e 's#"k8s\.io/apimachinery/pkg/apis/meta/v1\.#"io.k8s.apimachinery.pkg.apis.meta.v1.#g' \
	generated/openapi/zz_generated.openapi.go > "${scratch}/openapi.go"
cp "${scratch}/openapi.go" generated/openapi/zz_generated.openapi.go

go run ./hack/generate/models-schema > "${scratch}/schema.json"
generate applyconfiguration-gen --openapi-schema "${scratch}/schema.json" \
	--external-applyconfigurations k8s.io/api/core/v1.Taint:k8s.io/client-go/applyconfigurations/core/v1,k8s.io/api/core/v1.Toleration:k8s.io/client-go/applyconfigurations/core/v1,k8s.io/api/core/v1.EnvVar:k8s.io/client-go/applyconfigurations/core/v1 \
	--output-dir generated/applyconfiguration --output-pkg "${module}/generated/applyconfiguration" "${api_packages[@]}"

generate client-gen --input-base "${module}/apis" "${apis[@]/#/--input=}" --clientset-name versioned \
	--apply-configuration-package "${module}/generated/applyconfiguration" \
	--output-dir generated/clientset --output-pkg "${module}/generated/clientset"

generate lister-gen --output-dir generated/listers --output-pkg "${module}/generated/listers" "${api_packages[@]}"

generate informer-gen --versioned-clientset-package "${module}/generated/clientset/versioned" \
	--listers-package "${module}/generated/listers" \
	--output-dir generated/informers --output-pkg "${module}/generated/informers" "${api_packages[@]}"

go run ./hack/generate/packages docs/internals.md
go run ./hack/generate/fields apis/delivery/v1alpha1 docs/delivery/reference.md Application ApplicationRevision Release Plugin \
	SyncOptions PrimaryRolloutOptions CanaryRolloutOptions BaselineRolloutOptions CleanOptions TrafficRoutingOptions \
	WaitOptions WaitApprovalOptions AnalysisOptions ScriptRunOptions
