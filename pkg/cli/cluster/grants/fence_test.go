package grants

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

const (
	testLogical = "0a1b2c3d-4e5f-6789"
	testSyncer  = "system:serviceaccount:manifold-system:manifold-syncer-0a1b2c3d"
	mine        = `{"manifold.dev/logical-cluster":"` + testLogical + `"}`
	others      = `{"manifold.dev/logical-cluster":"99999999-0000"}`
	orphaned    = `{"manifold.dev/logical-cluster":"` + testLogical + `","manifold.dev/orphan":"true"}`
)

// attempt is one request as an API server hands it to its policies.
type attempt struct {
	user      string // the syncer if it is empty
	operation admission.Operation
	resource  string // GROUP/RESOURCE or GROUP/RESOURCE/SUBRESOURCE
	kind      string
	namespace string
	name      string
	// object and old are the labels of the objects, or a whole object if there is "metadata" in it. "" is no object.
	object, old string
	// home are the labels of the namespace.
	home string
}

// TestFence has the API server's own evaluator judge requests, with the CEL of the oldest version of Kubernetes that clusters may have.
func TestFence(t *testing.T) {
	const (
		made    = `{"metadata":{"name":"web-1-x","generateName":"web-1-","ownerReferences":[{"kind":"ReplicaSet","name":"web-1","controller":true}]}}`
		marking = `{"metadata":{"name":"web-1-x","generateName":"web-1-","labels":` + orphaned + `}}`
		stolen  = `{"metadata":{"name":"web-1-x","generateName":"web-1-","labels":` + mine + `}}`
		let     = `{"metadata":{"name":"web-1-x","generateName":"web-1-"}}`
		bare    = `{"metadata":{"name":"bare"}}`

		elsewhere = `{"metadata":{"name":"web-1","labels":{"endpointslice.kubernetes.io/managed-by":"endpoints.manifold.dev"}}}`
		claim     = `{"metadata":{"name":"data-db-0"}}`
		claimed   = `{"metadata":{"name":"data-db-0","labels":` + mine + `}}`
		replica   = `{"metadata":{"name":"web-1","annotations":{"manifold.dev/uid":"1"}}}`
		keptSet   = `{"metadata":{"name":"web-1","annotations":{"manifold.dev/uid":"1"},"labels":` + orphaned + `}}`
		account   = `{"metadata":{"name":"default"}}`
		ours      = `{"metadata":{"name":"default","labels":` + mine + `}}`
		token     = `{"metadata":{"name":"t","labels":` + mine + `},"type":"kubernetes.io/service-account-token"}`
		slice     = `{"metadata":{"name":"s","labels":{"kubernetes.io/service-name":"kubernetes","manifold.dev/logical-cluster":"` + testLogical + `"}}}`
		exec      = `{"kind":"PodExecOptions","command":["sh"],"metadata":null}`
		request   = `{"metadata":{},"spec":{"audiences":[],"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"manifold-syncer-0a1b2c3d-a"}}}`
		binding   = `{"metadata":{"name":"manifold-syncer-0a1b2c3d-secrets","labels":` + mine + `},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"manifold-syncer-0a1b2c3d-secrets"},
			"subjects":[{"kind":"ServiceAccount","namespace":"manifold-system","name":"manifold-syncer-0a1b2c3d"}]}`
		shared = `{"metadata":{"name":"manifold-syncer-0a1b2c3d-secrets","labels":` + mine + `},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"manifold-syncer-0a1b2c3d-secrets"},
			"subjects":[{"kind":"ServiceAccount","namespace":"manifold-system","name":"manifold-syncer-0a1b2c3d"},{"kind":"Group","name":"system:authenticated"}]}`
		unbound = `{"metadata":{},"spec":{"audiences":[]}}`
		toOther = `{"metadata":{},"spec":{"audiences":[],"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"stranger"}}}`
	)
	const (
		notThere   = "Manifold does not write in namespace "
		notOurs    = "Manifold does not own "
		notWritten = "Manifold may not write "
	)
	c, u, d, x := admission.Create, admission.Update, admission.Delete, admission.Connect
	for name, test := range map[string]struct {
		attempt
		want string // what the denial begins with, "" if it is allowed
	}{
		"anybody else may do anything": {attempt: attempt{user: "admin", operation: u, resource: "/configmaps", kind: "ConfigMap", namespace: "kube-system", object: "{}", old: "{}"}},

		"a marked Deployment in a namespace of ours":        {attempt: attempt{operation: c, resource: "apps/deployments", kind: "Deployment", namespace: "shop", object: mine, home: mine}},
		"a marked Deployment in default":                    {attempt: attempt{operation: c, resource: "apps/deployments", kind: "Deployment", namespace: "default", object: mine, home: "{}"}},
		"a Deployment without the mark":                     {attempt: attempt{operation: c, resource: "apps/deployments", kind: "Deployment", namespace: "shop", object: "{}", home: mine}, want: notOurs + "a new object of deployments"},
		"one with the mark of another logical cluster":      {attempt: attempt{operation: c, resource: "apps/deployments", kind: "Deployment", namespace: "shop", object: others, home: mine}, want: notOurs},
		"a marked one in a stranger's namespace":            {attempt: attempt{operation: c, resource: "apps/deployments", kind: "Deployment", namespace: "shop", object: mine, home: "{}"}, want: notThere + "shop"},
		"one in the namespace of another logical cluster":   {attempt: attempt{operation: c, resource: "apps/deployments", kind: "Deployment", namespace: "shop", object: mine, home: others}, want: notThere + "shop"},
		"one in kube-system, which somebody marked":         {attempt: attempt{operation: c, resource: "apps/deployments", kind: "Deployment", namespace: "kube-system", object: mine, home: mine}, want: notThere + "kube-system"},
		"one in manifold-system":                            {attempt: attempt{operation: c, resource: "/configmaps", kind: "ConfigMap", namespace: "manifold-system", object: mine, home: mine}, want: notThere + "manifold-system"},
		"one in a namespace of ours called like a system's": {attempt: attempt{operation: c, resource: "/configmaps", kind: "ConfigMap", namespace: "kube-flannel", object: mine, home: mine}},

		"changing what is marked":                       {attempt: attempt{operation: u, resource: "/configmaps", kind: "ConfigMap", namespace: "shop", name: "a", old: mine, object: mine, home: mine}},
		"letting go of what is marked":                  {attempt: attempt{operation: u, resource: "/configmaps", kind: "ConfigMap", namespace: "shop", name: "a", old: mine, object: "{}", home: mine}},
		"letting go of it where the namespace went":     {attempt: attempt{operation: u, resource: "/configmaps", kind: "ConfigMap", namespace: "shop", name: "a", old: mine, object: "{}", home: "{}"}},
		"changing it where the namespace went":          {attempt: attempt{operation: u, resource: "/configmaps", kind: "ConfigMap", namespace: "shop", name: "a", old: mine, object: mine, home: "{}"}, want: notThere + "shop"},
		"deleting it where the namespace went":          {attempt: attempt{operation: d, resource: "/configmaps", kind: "ConfigMap", namespace: "shop", name: "a", old: mine, home: "{}"}},
		"deleting it in kube-system":                    {attempt: attempt{operation: d, resource: "/configmaps", kind: "ConfigMap", namespace: "kube-system", name: "a", old: mine, home: "{}"}, want: notThere},
		"giving it to another logical cluster":          {attempt: attempt{operation: u, resource: "/configmaps", kind: "ConfigMap", namespace: "shop", name: "a", old: mine, object: others, home: mine}, want: notOurs + "configmaps a"},
		"marking a stranger's":                          {attempt: attempt{operation: u, resource: "/configmaps", kind: "ConfigMap", namespace: "shop", name: "a", old: "{}", object: mine, home: mine}, want: notOurs + "configmaps a"},
		"marking a stranger's as an orphan":             {attempt: attempt{operation: u, resource: "apps/deployments", kind: "Deployment", namespace: "shop", name: "a", old: "{}", object: orphaned, home: mine}, want: notOurs},
		"changing a stranger's":                         {attempt: attempt{operation: u, resource: "/secrets", kind: "Secret", namespace: "default", name: "a", old: "{}", object: "{}", home: "{}"}, want: notOurs + "secrets a"},
		"taking over another logical cluster's":         {attempt: attempt{operation: u, resource: "/configmaps", kind: "ConfigMap", namespace: "default", name: "a", old: others, object: mine, home: "{}"}, want: notOurs},
		"deleting a stranger's":                         {attempt: attempt{operation: d, resource: "apps/deployments", kind: "Deployment", namespace: "shop", name: "a", old: "{}", home: mine}, want: notOurs + "deployments a"},
		"deleting another logical cluster's in default": {attempt: attempt{operation: d, resource: "apps/deployments", kind: "Deployment", namespace: "default", name: "a", old: others, home: "{}"}, want: notOurs},
		"deleting a collection":                         {attempt: attempt{operation: d, resource: "/configmaps", kind: "ConfigMap", namespace: "shop", home: mine}, want: notOurs},

		"a marked namespace":                               {attempt: attempt{operation: c, resource: "/namespaces", kind: "Namespace", namespace: "shop", name: "shop", object: mine}},
		"one without the mark":                             {attempt: attempt{operation: c, resource: "/namespaces", kind: "Namespace", object: `{"metadata":{"name":"shop"}}`}, want: notOurs},
		"one known by its object alone":                    {attempt: attempt{operation: c, resource: "/namespaces", kind: "Namespace", object: `{"metadata":{"name":"kube-system","labels":` + mine + `}}`}, want: notThere + "kube-system"},
		"deleting ours":                                    {attempt: attempt{operation: d, resource: "/namespaces", kind: "Namespace", namespace: "shop", name: "shop", old: mine}},
		"deleting a stranger's namespace":                  {attempt: attempt{operation: d, resource: "/namespaces", kind: "Namespace", namespace: "shop", name: "shop", old: "{}"}, want: notOurs + "namespaces shop"},
		"marking a stranger's namespace":                   {attempt: attempt{operation: u, resource: "/namespaces", kind: "Namespace", namespace: "shop", name: "shop", old: "{}", object: mine}, want: notOurs},
		"marking the namespace default":                    {attempt: attempt{operation: u, resource: "/namespaces", kind: "Namespace", namespace: "default", name: "default", old: "{}", object: mine}, want: notOurs},
		"labels of kube-system":                            {attempt: attempt{operation: u, resource: "/namespaces", kind: "Namespace", namespace: "kube-system", name: "kube-system", old: "{}", object: "{}"}, want: notThere},
		"finishing a namespace":                            {attempt: attempt{operation: u, resource: "/namespaces/finalize", kind: "Namespace", namespace: "shop", name: "shop", old: mine, object: mine}, want: notWritten + "namespaces/finalize"},
		"a kind called Namespace of another":               {attempt: attempt{operation: c, resource: "example.com/namespaces", kind: "Namespace", object: mine}},
		"a ClusterRole":                                    {attempt: attempt{operation: c, resource: "rbac.authorization.k8s.io/clusterroles", kind: "ClusterRole", object: mine}, want: notWritten},
		"a RoleBinding of any name in a namespace of ours": {attempt: attempt{operation: c, resource: "rbac.authorization.k8s.io/rolebindings", kind: "RoleBinding", namespace: "shop", object: mine, home: mine}, want: notWritten},
		"reading Secrets where they are its own":           {attempt: attempt{operation: c, resource: "rbac.authorization.k8s.io/rolebindings", kind: "RoleBinding", namespace: "shop", object: binding, home: mine}},
		"giving that back":                                 {attempt: attempt{operation: d, resource: "rbac.authorization.k8s.io/rolebindings", kind: "RoleBinding", namespace: "shop", name: "manifold-syncer-0a1b2c3d-secrets", old: mine, home: "{}"}},
		"deleting another binding":                         {attempt: attempt{operation: d, resource: "rbac.authorization.k8s.io/rolebindings", kind: "RoleBinding", namespace: "shop", name: "more", old: mine, home: mine}, want: notWritten},
		"changing whom it binds":                           {attempt: attempt{operation: u, resource: "rbac.authorization.k8s.io/rolebindings", kind: "RoleBinding", namespace: "shop", name: "manifold-syncer-0a1b2c3d-secrets", old: binding, object: shared, home: mine}, want: notWritten},
		"reading Secrets with others":                      {attempt: attempt{operation: c, resource: "rbac.authorization.k8s.io/rolebindings", kind: "RoleBinding", namespace: "shop", object: shared, home: mine}, want: notWritten},
		"reading Secrets in default":                       {attempt: attempt{operation: c, resource: "rbac.authorization.k8s.io/rolebindings", kind: "RoleBinding", namespace: "default", object: binding, home: "{}"}, want: notWritten},
		"reading Secrets of strangers":                     {attempt: attempt{operation: c, resource: "rbac.authorization.k8s.io/rolebindings", kind: "RoleBinding", namespace: "bank", object: binding, home: "{}"}, want: notThere},
		"reading Secrets of kube-system":                   {attempt: attempt{operation: c, resource: "rbac.authorization.k8s.io/rolebindings", kind: "RoleBinding", namespace: "kube-system", object: binding, home: mine}, want: notThere},
		"a webhook":                                        {attempt: attempt{operation: c, resource: "admissionregistration.k8s.io/mutatingwebhookconfigurations", kind: "MutatingWebhookConfiguration", object: mine}, want: notWritten},
		"the fence itself":                                 {attempt: attempt{operation: d, resource: "admissionregistration.k8s.io/validatingadmissionpolicies", kind: "ValidatingAdmissionPolicy", name: "manifold-syncer-0a1b2c3d", old: mine}, want: notWritten},
		"a definition of custom resources":                 {attempt: attempt{operation: c, resource: "apiextensions.k8s.io/customresourcedefinitions", kind: "CustomResourceDefinition", object: mine}, want: notWritten},
		"an APIService":                                    {attempt: attempt{operation: c, resource: "apiregistration.k8s.io/apiservices", kind: "APIService", object: mine}, want: notWritten},
		"a node":                                           {attempt: attempt{operation: u, resource: "/nodes", kind: "Node", name: "n", old: mine, object: mine}, want: notWritten},
		"a marked PersistentVolume, by another role and its own fence": {attempt: attempt{operation: c, resource: "/persistentvolumes", kind: "PersistentVolume", object: mine}},
		"a PersistentVolume without the mark":                          {attempt: attempt{operation: c, resource: "/persistentvolumes", kind: "PersistentVolume", object: "{}"}, want: notOurs},
		"changing a stranger's PersistentVolume":                       {attempt: attempt{operation: u, resource: "/persistentvolumes", kind: "PersistentVolume", name: "disk", old: "{}", object: mine}, want: notOurs + "persistentvolumes disk"},
		"deleting a stranger's PersistentVolume":                       {attempt: attempt{operation: d, resource: "/persistentvolumes", kind: "PersistentVolume", name: "disk", old: "{}"}, want: notOurs + "persistentvolumes disk"},
		"the status of a PersistentVolume of ours":                     {attempt: attempt{operation: u, resource: "/persistentvolumes/status", kind: "PersistentVolume", name: "disk", old: mine, object: mine}, want: notWritten},
		"a marked custom resource":                                     {attempt: attempt{operation: c, resource: "example.com/widgets", kind: "Widget", namespace: "shop", object: mine, home: mine}},
		"a stranger's custom resource":                                 {attempt: attempt{operation: d, resource: "example.com/widgets", kind: "Widget", namespace: "shop", name: "w", old: "{}", home: mine}, want: notOurs},
		"the status of a custom resource":                              {attempt: attempt{operation: u, resource: "example.com/widgets/status", kind: "Widget", namespace: "shop", name: "w", old: mine, object: mine, home: mine}, want: notWritten},
		"binding a pod to a node":                                      {attempt: attempt{operation: c, resource: "/pods/binding", kind: "Binding", namespace: "shop", name: "a", object: "{}", home: mine}, want: notWritten + "pods/binding"},
		"scaling past the object":                                      {attempt: attempt{operation: u, resource: "apps/deployments/scale", kind: "Scale", namespace: "shop", name: "a", old: mine, object: mine, home: mine}, want: notWritten},
		"a Secret that becomes somebody's token":                       {attempt: attempt{operation: c, resource: "/secrets", kind: "Secret", namespace: "default", object: token, home: "{}"}, want: "Manifold may not create Secrets of type"},
		"a slice of the API server's Service":                          {attempt: attempt{operation: c, resource: "discovery.k8s.io/endpointslices", kind: "EndpointSlice", namespace: "default", object: slice, home: "{}"}, want: notWritten + "the endpoints of the cluster's API server"},
		"endpoints of other clusters without the mark":                 {attempt: attempt{operation: c, resource: "discovery.k8s.io/endpointslices", kind: "EndpointSlice", namespace: "shop", object: elsewhere, home: mine}, want: notOurs},
		"endpoints of other clusters in a stranger's namespace":        {attempt: attempt{operation: c, resource: "discovery.k8s.io/endpointslices", kind: "EndpointSlice", namespace: "bank", object: mine, home: "{}"}, want: notThere},
		"endpoints of other clusters in the place of the cluster's":    {attempt: attempt{operation: u, resource: "discovery.k8s.io/endpointslices", kind: "EndpointSlice", namespace: "shop", name: "web-1", old: "{}", object: mine, home: mine}, want: notOurs + "endpointslices web-1"},
		"the cluster's own endpoints, deleted":                         {attempt: attempt{operation: d, resource: "discovery.k8s.io/endpointslices", kind: "EndpointSlice", namespace: "shop", name: "web-1", old: "{}", home: mine}, want: notOurs + "endpointslices web-1"},
		"such a slice in a namespace of ours":                          {attempt: attempt{operation: c, resource: "discovery.k8s.io/endpointslices", kind: "EndpointSlice", namespace: "shop", object: slice, home: mine}},
		"its own token":                                                {attempt: attempt{operation: c, resource: "/serviceaccounts/token", kind: "TokenRequest", namespace: "manifold-system", name: "manifold-syncer-0a1b2c3d", object: request, home: "{}"}},
		"its own token, not bound":                                     {attempt: attempt{operation: c, resource: "/serviceaccounts/token", kind: "TokenRequest", namespace: "manifold-system", name: "manifold-syncer-0a1b2c3d", object: unbound, home: "{}"}, want: notThere},
		"its own token, bound to another Secret":                       {attempt: attempt{operation: c, resource: "/serviceaccounts/token", kind: "TokenRequest", namespace: "manifold-system", name: "manifold-syncer-0a1b2c3d", object: toOther, home: "{}"}, want: notThere},
		"the token of another logical cluster":                         {attempt: attempt{operation: c, resource: "/serviceaccounts/token", kind: "TokenRequest", namespace: "manifold-system", name: "manifold-syncer-99999999", object: request, home: "{}"}, want: notThere},
		"a token in a namespace of ours":                               {attempt: attempt{operation: c, resource: "/serviceaccounts/token", kind: "TokenRequest", namespace: "shop", name: "manifold-syncer-0a1b2c3d", object: request, home: mine}, want: notWritten},
		"its own ServiceAccount":                                       {attempt: attempt{operation: u, resource: "/serviceaccounts", kind: "ServiceAccount", namespace: "manifold-system", name: "manifold-syncer-0a1b2c3d", object: "{}", old: "{}", home: "{}"}, want: notThere},
		"deleting a pod that a controller made":                        {attempt: attempt{operation: d, resource: "/pods", kind: "Pod", namespace: "shop", name: "a", old: made, home: mine}},
		"deleting a released pod":                                      {attempt: attempt{operation: d, resource: "/pods", kind: "Pod", namespace: "shop", name: "a", old: let, home: mine}},
		"deleting one in default":                                      {attempt: attempt{operation: d, resource: "/pods", kind: "Pod", namespace: "default", name: "a", old: made, home: "{}"}},
		"deleting a stranger's bare pod":                               {attempt: attempt{operation: d, resource: "/pods", kind: "Pod", namespace: "shop", name: "bare", old: bare, home: mine}, want: notOurs + "pods bare"},
		"deleting a pod in a stranger's place":                         {attempt: attempt{operation: d, resource: "/pods", kind: "Pod", namespace: "bank", name: "a", old: made, home: "{}"}, want: notThere + "bank"},
		"labels of a pod that a controller made":                       {attempt: attempt{operation: u, resource: "/pods", kind: "Pod", namespace: "shop", name: "a", old: made, object: let, home: mine}},
		"its status":                                                   {attempt: attempt{operation: u, resource: "/pods/status", kind: "Pod", namespace: "shop", name: "a", old: made, object: made, home: mine}},
		"its debug containers":                                         {attempt: attempt{operation: u, resource: "/pods/ephemeralcontainers", kind: "Pod", namespace: "shop", name: "a", old: made, object: made, home: mine}},
		"a stranger's debug containers":                                {attempt: attempt{operation: u, resource: "/pods/ephemeralcontainers", kind: "Pod", namespace: "shop", name: "bare", old: bare, object: bare, home: mine}, want: notOurs},
		"marking it as an orphan":                                      {attempt: attempt{operation: u, resource: "/pods", kind: "Pod", namespace: "shop", name: "a", old: made, object: marking, home: mine}},
		"marking it as a projection":                                   {attempt: attempt{operation: u, resource: "/pods", kind: "Pod", namespace: "shop", name: "a", old: made, object: stolen, home: mine}, want: notOurs},
		"evicting a pod":                                               {attempt: attempt{operation: c, resource: "/pods/eviction", kind: "Eviction", namespace: "shop", name: "a", object: "{}", home: mine}},
		"evicting a pod of kube-system":                                {attempt: attempt{operation: c, resource: "/pods/eviction", kind: "Eviction", namespace: "kube-system", name: "a", object: "{}", home: "{}"}, want: notThere},
		"exec":                                                         {attempt: attempt{operation: x, resource: "/pods/exec", kind: "PodExecOptions", namespace: "shop", name: "a", object: exec, home: mine}},
		"exec in a stranger's namespace":                               {attempt: attempt{operation: x, resource: "/pods/exec", kind: "PodExecOptions", namespace: "bank", name: "a", object: exec, home: "{}"}, want: notThere},
		"exec in kube-system":                                          {attempt: attempt{operation: x, resource: "/pods/exec", kind: "PodExecOptions", namespace: "kube-system", name: "a", object: exec, home: "{}"}, want: notThere},
		"a proxy to a stranger's Service":                              {attempt: attempt{operation: x, resource: "/services/proxy", kind: "ServiceProxyOptions", namespace: "bank", name: "a", object: exec, home: "{}"}, want: notThere},
		"a proxy to a node":                                            {attempt: attempt{operation: x, resource: "/nodes/proxy", kind: "NodeProxyOptions", name: "n", object: exec}, want: notWritten},
		"deleting a claim of a StatefulSet":                            {attempt: attempt{operation: d, resource: "/persistentvolumeclaims", kind: "PersistentVolumeClaim", namespace: "shop", name: "data-db-0", old: claim, home: mine}},
		"growing it":                                                   {attempt: attempt{operation: u, resource: "/persistentvolumeclaims", kind: "PersistentVolumeClaim", namespace: "shop", name: "data-db-0", old: claim, object: claim, home: mine}},
		"taking it over for the user":                                  {attempt: attempt{operation: u, resource: "/persistentvolumeclaims", kind: "PersistentVolumeClaim", namespace: "shop", name: "data-db-0", old: claim, object: claimed, home: mine}},
		"deleting a stranger's claim":                                  {attempt: attempt{operation: d, resource: "/persistentvolumeclaims", kind: "PersistentVolumeClaim", namespace: "shop", name: "bare", old: bare, home: mine}, want: notOurs},
		"keeping a ReplicaSet of ours":                                 {attempt: attempt{operation: u, resource: "apps/replicasets", kind: "ReplicaSet", namespace: "shop", name: "web-1", old: replica, object: keptSet, home: mine}},
		"keeping one of a stranger":                                    {attempt: attempt{operation: u, resource: "apps/replicasets", kind: "ReplicaSet", namespace: "default", name: "web-1", old: made, object: keptSet, home: "{}"}, want: notOurs},
		"scaling a ReplicaSet that is not marked":                      {attempt: attempt{operation: u, resource: "apps/replicasets", kind: "ReplicaSet", namespace: "shop", name: "web-1", old: replica, object: replica, home: mine}, want: notOurs},
		"the ServiceAccount of our namespace":                          {attempt: attempt{operation: u, resource: "/serviceaccounts", kind: "ServiceAccount", namespace: "shop", name: "default", old: account, object: ours, home: mine}},
		"that of the shared namespace":                                 {attempt: attempt{operation: u, resource: "/serviceaccounts", kind: "ServiceAccount", namespace: "default", name: "default", old: account, object: ours, home: "{}"}, want: notOurs},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(t, fence(testLogical), test.attempt, nil); !fits(got, test.want) {
				t.Errorf("it is told %q, want %q", got, test.want)
			}
		})
	}
}

// TestTheFenceSparesWhatNoRoleHas finds that what the fence does not look at is nothing that the syncer could be allowed to write.
func TestTheFenceSparesWhatNoRoleHas(t *testing.T) {
	spares := func(group, resource string) bool {
		plural, sub, _ := strings.Cut(resource, "/")
		of := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "shop", "a", schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural},
			sub, admission.Update, nil, false, nil)
		return slices.ContainsFunc(fence(testLogical).Spec.MatchConstraints.ExcludeResourceRules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
			matcher := rules.Matcher{Rule: rule.RuleWithOperations, Attr: of}
			return matcher.Matches()
		})
	}
	for _, right := range slices.Concat(rights.Syncer(), ownRights(testLogical), priorityRights(), rights.Volumes(), rights.Renewal("a")) {
		for _, resource := range right.Resources {
			if slices.ContainsFunc(right.Verbs, writes) && spares(right.Group, resource) {
				t.Errorf("the fence does not look at %s of group %q, which the syncer may %v", resource, right.Group, right.Verbs)
			}
		}
	}
	for resource, group := range map[string]string{"leases": "coordination.k8s.io", "deployments/status": "apps", "pods/binding": "", "events": ""} {
		if !spares(group, resource) {
			t.Errorf("the fence looks at %s of group %q, which a cluster's own parts write all the time", resource, group)
		}
	}
}

func TestAccountsFence(t *testing.T) {
	pod := func(account string) string {
		return `{"metadata":{"name":"a"},"spec":{"serviceAccountName":"` + account + `"}}`
	}
	workload := func(account string) string {
		return `{"metadata":{"name":"a"},"spec":{"template":{"spec":{"serviceAccountName":"` + account + `"}}}}`
	}
	const denial = "Manifold does not own ServiceAccount stranger"
	for name, test := range map[string]struct {
		attempt
		want string
	}{
		"a pod as a stranger":              {attempt: attempt{operation: admission.Create, resource: "/pods", kind: "Pod", object: pod("stranger")}, want: denial},
		"a Deployment as a stranger":       {attempt: attempt{operation: admission.Create, resource: "apps/deployments", kind: "Deployment", object: workload("stranger")}, want: denial},
		"a Job that becomes a stranger":    {attempt: attempt{operation: admission.Update, resource: "batch/jobs", kind: "Job", object: workload("stranger"), old: workload("own")}, want: denial},
		"one that runs so, let go of":      {attempt: attempt{operation: admission.Update, resource: "apps/deployments", kind: "Deployment", object: workload("stranger"), old: workload("stranger")}},
		"a pod as a ServiceAccount beside": {attempt: attempt{operation: admission.Create, resource: "/pods", kind: "Pod", object: pod("own")}},
		"a pod that names none":            {attempt: attempt{operation: admission.Create, resource: "/pods", kind: "Pod", object: `{"metadata":{"name":"a"},"spec":{}}`}},
		"somebody else's pod":              {attempt: attempt{user: "admin", operation: admission.Create, resource: "/pods", kind: "Pod", object: pod("stranger")}},
	} {
		t.Run(name, func(t *testing.T) {
			test.namespace, test.home = "default", "{}"
			stranger := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}
			if got := judge(t, accountsFence(testLogical), test.attempt, stranger); !fits(got, test.want) {
				t.Errorf("it is told %q, want %q", got, test.want)
			}
		})
	}
	// The ServiceAccount that pods have which name none is everybody's.
	shared := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	a := attempt{operation: admission.Create, resource: "/pods", kind: "Pod", namespace: "default", home: "{}", object: pod("default")}
	if got := judge(t, accountsFence(testLogical), a, shared); got != "" {
		t.Errorf("a pod as everybody's ServiceAccount is told %q", got)
	}
}

func TestVolumeFence(t *testing.T) {
	volume := func(namespace, claim string) string {
		return `{"metadata":{"name":"disk","labels":` + mine + `},"spec":{"claimRef":{"namespace":"` + namespace + `","name":"` + claim + `"}}}`
	}
	c, u := admission.Create, admission.Update
	for name, test := range map[string]struct {
		attempt
		want string
	}{
		"for a claim in a namespace of ours":          {attempt: attempt{operation: c, object: volume("shop", "data")}},
		"for one in default, which is shared":         {attempt: attempt{operation: c, object: volume("default", "data")}},
		"for one in a stranger's namespace":           {attempt: attempt{operation: c, object: volume("bank", "data")}, want: "Manifold may not create a PersistentVolume here for a claim in namespace bank"},
		"for one in a namespace of the system":        {attempt: attempt{operation: c, object: volume("kube-system", "data")}, want: "Manifold may not create a PersistentVolume here for a claim in namespace kube-system"},
		"for nobody":                                  {attempt: attempt{operation: c, object: `{"metadata":{"name":"disk"},"spec":{}}`}, want: "Manifold may only create PersistentVolumes here that name their claim in spec.claimRef, and disk does not"},
		"changing what else it says":                  {attempt: attempt{operation: u, object: volume("shop", "data"), old: volume("shop", "data")}},
		"changing it where the namespace went":        {attempt: attempt{operation: u, object: volume("bank", "data"), old: volume("bank", "data")}},
		"giving it to another claim":                  {attempt: attempt{operation: u, object: volume("shop", "other"), old: volume("shop", "data")}, want: "Manifold may not reserve PersistentVolume disk for another claim"},
		"giving it to a stranger's claim":             {attempt: attempt{operation: u, object: volume("bank", "data"), old: volume("shop", "data")}, want: "Manifold may not reserve PersistentVolume disk for another claim"},
		"having it be for whoever asks":               {attempt: attempt{operation: u, object: `{"metadata":{"name":"disk"},"spec":{}}`, old: volume("shop", "data")}, want: "Manifold may only create PersistentVolumes here that name their claim in spec.claimRef"},
		"what somebody else does is not its business": {attempt: attempt{user: "admin", operation: c, object: volume("bank", "data")}},
	} {
		t.Run(name, func(t *testing.T) {
			test.resource, test.kind, test.name = "/persistentvolumes", "PersistentVolume", "disk"
			for _, stranger := range []string{"bank", "default", "kube-system"} {
				namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: stranger}}
				got := judge(t, volumeFence(testLogical), test.attempt, namespace)
				// Each of them may refuse it, so that which it is for has to be among them.
				if !fits(got, test.want) && (got != "" || stranger == "bank") {
					t.Errorf("beside namespace %s it is told %q, want %q", stranger, got, test.want)
				}
			}
		})
	}
}

func fits(got, want string) bool { return got == want || want != "" && strings.HasPrefix(got, want) }

// judge returns what a policy says against a request, "" if nothing.
func judge(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, a attempt, params runtime.Object) string {
	t.Helper()
	var namespace *corev1.Namespace
	if a.home != "" {
		namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace, Labels: map[string]string{}}}
		if err := json.Unmarshal([]byte(a.home), &namespace.Labels); err != nil {
			t.Fatal(err)
		}
	}
	attributes := a.attributes(t)
	result := compiled(t, policy).Validate(t.Context(), attributes.GetResource(), attributes, params, namespace, apiservercel.RuntimeCELCostBudget, nil)
	for _, decision := range result.Decisions {
		if decision.Evaluation == validating.EvalError {
			t.Fatalf("it cannot be evaluated: %s", decision.Message)
		}
		if decision.Action == validating.ActionDeny {
			return decision.Message
		}
	}
	return ""
}

func (a attempt) attributes(t *testing.T) *admission.VersionedAttributes {
	t.Helper()
	group, resource, _ := strings.Cut(a.resource, "/")
	resource, subresource, _ := strings.Cut(resource, "/")
	kind := schema.GroupVersionKind{Group: group, Version: "v1", Kind: a.kind}
	who := a.user
	if who == "" {
		who = testSyncer
	}
	object, old := a.parsed(t, kind, a.object), a.parsed(t, kind, a.old)
	out := &admission.VersionedAttributes{VersionedKind: kind, Attributes: admission.NewAttributesRecord(object, old, kind, a.namespace, a.name,
		schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, subresource, a.operation, nil, false, &user.DefaultInfo{Name: who})}
	if object != nil {
		out.VersionedObject.Set(object)
	}
	if old != nil {
		out.VersionedOldObject.Set(old)
	}
	return out
}

func (a attempt) parsed(t *testing.T, kind schema.GroupVersionKind, text string) runtime.Object {
	t.Helper()
	if text == "" {
		return nil
	}
	content := map[string]any{}
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	if _, whole := content["metadata"]; !whole {
		content = map[string]any{"metadata": map[string]any{"name": a.name, "labels": content}}
	}
	if content["metadata"] == nil {
		delete(content, "metadata")
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(kind)
	return out
}

// compiled compiles a policy as the API server does, and with nothing that came after the oldest version that clusters may have.
func compiled(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 30)))
	if err != nil {
		t.Fatal(err)
	}
	has := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		if result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, has, environment.NewExpressions); result.Error != nil {
			t.Fatalf("variable %s: %v", v.Name, result.Error)
		}
	}
	var conditions, validations, messages []cel.ExpressionAccessor
	for _, condition := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&condition))
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	for _, all := range [][]cel.ExpressionAccessor{conditions, validations, messages} {
		for _, e := range all {
			if result := compiler.CompileCELExpression(e, has, environment.NewExpressions); result.Error != nil {
				t.Fatalf("%s: %v", e.GetExpression(), result.Error)
			}
		}
	}
	evaluator := func(of []cel.ExpressionAccessor) cel.ConditionEvaluator {
		return compiler.CompileCondition(of, has, environment.NewExpressions)
	}
	matcher := matchconditions.NewMatcher(evaluator(conditions), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	return validating.NewValidator(evaluator(validations), matcher, evaluator(nil), evaluator(messages), policy.Spec.FailurePolicy, nil)
}
