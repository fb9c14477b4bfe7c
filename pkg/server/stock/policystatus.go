package stock

import (
	"sync"

	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/runtime/schema"
	policies "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// policyStatus returns the stock controller that tells in the statuses of ValidatingAdmissionPolicies which of their expressions are of wrong types. The
// stock program's constructor makes the schemas of all built-in kinds for it, which take 10 MiB for as long as the process lives; here the first policy does.
func policyStatus(cc app.ControllerContext) (*validatingadmissionpolicystatus.Controller, error) {
	const name = names.ValidatingAdmissionPolicyStatusController
	discovery, err := cc.ClientBuilder.DiscoveryClient(name)
	if err != nil {
		return nil, err
	}
	client, err := cc.NewClient(name)
	if err != nil {
		return nil, err
	}
	schemas := late(func() resolver.SchemaResolver {
		return resolver.NewDefinitionsSchemaResolver(openapi.GetOpenAPIDefinitions, scheme.Scheme, apiextensionsscheme.Scheme).
			Combine(&resolver.ClientDiscoveryResolver{Discovery: discovery})
	})
	return validatingadmissionpolicystatus.NewController(
		cc.InformerFactory.Admissionregistration().V1().ValidatingAdmissionPolicies(),
		client.AdmissionregistrationV1().ValidatingAdmissionPolicies(),
		&policies.TypeChecker{SchemaResolver: schemas, RestMapper: cc.RESTMapper},
	)
}

// lateResolver is one that is made when it is first asked.
type lateResolver struct {
	made func() resolver.SchemaResolver
}

func late(make func() resolver.SchemaResolver) lateResolver {
	return lateResolver{sync.OnceValue(make)}
}

// ResolveSchema implements resolver.SchemaResolver.
func (r lateResolver) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	return r.made().ResolveSchema(kind)
}
