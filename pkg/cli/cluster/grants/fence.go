package grants

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// RBAC grants rights to kinds, not to objects. What the syncer may do with them is said by two admission policies beside its role, which
// allow and do not deny: what none of their expressions foresees is refused. They are CEL of Kubernetes 1.30, and see the request, the
// object before and after it, and the object's namespace. They do not see other objects, but for those that a policy has as its parameters.

// fenceDenial begins what the fence says of a namespace, before its name, and StrangeDenial what it says of an object.
const (
	fenceDenial   = "Manifold does not write in namespace"
	StrangeDenial = "Manifold does not own"
)

// accountsName names the policy about ServiceAccounts in the namespaces that clusters share.
func accountsName(logical types.UID) string { return Name(logical) + "-accounts" }

// fence allows the syncer of a logical cluster to write what carries its mark, in namespaces that do, and denies everything else. Requests of
// others do not match its condition, so they cost next to nothing.
func fence(logical types.UID) *admissionregistrationv1.ValidatingAdmissionPolicy {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: Name(logical), Labels: Labels()},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: ptr.To(admissionregistrationv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{ruleFor([]string{"*"}, []string{"*/*"},
					admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect)},
				ExcludeResourceRules: unfenced(),
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{isTheSyncer(logical)},
		},
	}
	fill := expressionsOf(logical)
	for _, v := range fenceVariables {
		policy.Spec.Variables = append(policy.Spec.Variables, admissionregistrationv1.Variable{Name: v.name, Expression: fill(v.expression)})
	}
	for _, v := range fenceValidations {
		policy.Spec.Validations = append(policy.Spec.Validations, admissionregistrationv1.Validation{
			Expression: fill(v.expression), MessageExpression: fill(v.message), Reason: ptr.To(metav1.StatusReasonForbidden),
		})
	}
	return policy
}

// unfenced are the busiest requests of a cluster's own parts. The condition that tells them from the syncer's is evaluated on the whole object,
// which is dear for the many that are none of ours. No role of the syncer's has them, so RBAC refuses them before any policy does.
func unfenced() []admissionregistrationv1.NamedRuleWithOperations {
	var out []admissionregistrationv1.NamedRuleWithOperations
	for _, rule := range []struct {
		groups, resources []string
	}{
		{[]string{corev1.GroupName}, []string{"events", "nodes", "nodes/status", "pods/binding"}},
		{[]string{coordinationv1.GroupName, eventsv1.GroupName}, []string{"*"}},
		{[]string{appsv1.GroupName, batchv1.GroupName, policyv1.GroupName}, []string{"*/status"}},
	} {
		out = append(out, ruleFor(rule.groups, rule.resources, admissionregistrationv1.OperationAll))
	}
	return out
}

// fenceVariables are evaluated only where they are used. A variable may use those before it. What they are for is a comment in the expression,
// so that who looks at the policy in a cluster finds it there.
var fenceVariables = []struct{ name, expression string }{
	{"isNamespace", `request.resource.group == "" && request.resource.resource == "namespaces"`},
	{"place", `// A namespace is in itself. While it is created, its name may stand in the object alone.
has(request.namespace) && request.namespace != "" ? request.namespace :
!variables.isNamespace ? "" :
request.operation == "CREATE" ? object.metadata.name : request.name`},
	{"isShared", `variables.place in SHARED`},
	{"resource", `request.resource.resource + (has(request.subResource) && request.subResource != "" ? "/" + request.subResource : "")`},
	{"name", `has(request.name) ? request.name : ""`},
	{"before", `// The mark before the request: the identity of the logical cluster that owns the object, empty for nobody.
oldObject != null && has(oldObject.metadata) && has(oldObject.metadata.labels) && MARK in oldObject.metadata.labels ?
string(oldObject.metadata.labels[MARK]) : ""`},
	{"after", `// The mark after it.
object != null && has(object.metadata) && has(object.metadata.labels) && MARK in object.metadata.labels ?
string(object.metadata.labels[MARK]) : ""`},
	{"isHome", `variables.isShared ||
namespaceObject != null && has(namespaceObject.metadata.labels) && MARK in namespaceObject.metadata.labels && namespaceObject.metadata.labels[MARK] == ID`},
	{"isLetGo", `// What is Manifold's may be deleted and let go of wherever it is, so that taking the mark off a namespace does not keep it there.
variables.before == ID && (request.operation == "DELETE" || request.operation == "UPDATE" && variables.after == "")`},
	{"isOwnToken", `// Its own token, renewed: bound to a Secret of its name, so that deleting that revokes the token.
request.resource.group == "" && variables.resource == "serviceaccounts/token" && request.operation == "CREATE" &&
variables.place == SYSTEM && request.name == NAME &&
has(object.spec.boundObjectRef) && object.spec.boundObjectRef.kind == "Secret" &&
has(object.spec.boundObjectRef.name) && object.spec.boundObjectRef.name.startsWith(NAME)`},
	{"isOwnBinding", `// The right to read Secrets where they are its own, for itself.
request.resource.group == "rbac.authorization.k8s.io" && variables.resource == "rolebindings" && !variables.isShared &&
(request.operation == "DELETE" && request.name == SECRETS_ROLE || request.operation == "CREATE" && object.metadata.name == SECRETS_ROLE &&
object.roleRef.kind == "ClusterRole" && object.roleRef.name == SECRETS_ROLE && has(object.subjects) &&
object.subjects.all(s, s.kind == "ServiceAccount" && has(s.namespace) && s.namespace == SYSTEM && s.name == NAME))`},
	{"isMadePod", `// What controllers of the cluster make does not carry the mark. Users delete, label and debug their pods, which have the name
// or the reference that such a controller gives them.
request.resource.group == "" && request.resource.resource == "pods" && oldObject != null && variables.before == "" &&
(has(oldObject.metadata.generateName) && oldObject.metadata.generateName != "" ||
has(oldObject.metadata.ownerReferences) && oldObject.metadata.ownerReferences.exists(r, has(r.controller) && r.controller))`},
	{"isMadeClaim", `// Users delete and grow the claims of their StatefulSets, which end with an ordinal, and of their pods.
request.resource.group == "" && variables.resource == "persistentvolumeclaims" && oldObject != null && variables.before == "" &&
(oldObject.metadata.name.matches("-[0-9]+$") || has(oldObject.metadata.ownerReferences) && size(oldObject.metadata.ownerReferences) > 0)`},
	{"isMadeReplicaSet", `// ReplicaSets have the annotations of their Deployment. They are marked before they outlive it.
request.resource.group == "apps" && variables.resource == "replicasets" && oldObject != null && variables.before == "" &&
has(oldObject.metadata.annotations) && UID_MARK in oldObject.metadata.annotations`},
	{"isMadeAccount", `// The ServiceAccount that the cluster makes in a namespace of Manifold's, if the user says something about it.
request.resource.group == "" && variables.resource == "serviceaccounts" && oldObject != null && variables.before == "" &&
oldObject.metadata.name == "default" && !variables.isShared`},
	{"isOrphan", `// It outlives its owner.
object != null && has(object.metadata.labels) && ORPHAN in object.metadata.labels && object.metadata.labels[ORPHAN] == "true"`},
	{"isOfTheAPIServer", `// Who writes these decides where the whole cluster finds its API server.
variables.place == "default" && object != null && (
variables.resource == "endpoints" && has(object.metadata.name) && object.metadata.name == "kubernetes" ||
variables.resource == "endpointslices" && has(object.metadata.labels) && "kubernetes.io/service-name" in object.metadata.labels &&
object.metadata.labels["kubernetes.io/service-name"] == "kubernetes")`},
}

// fenceValidations all have to hold. The first that does not is what the syncer is told.
var fenceValidations = []struct{ expression, message string }{
	{
		`// It writes in namespaces that carry its mark, and in those that clusters share, and never in those of the system.
variables.isOwnToken || variables.place == "" ||
!(variables.place in PROTECTED) && (variables.isNamespace || variables.isHome || variables.isLetGo)`,
		`"` + fenceDenial + ` " + variables.place`,
	},
	{
		`// It writes what its role is for, and kinds of custom resources, if it has a role for them.
variables.isOwnToken || variables.isOwnBinding || (request.resource.group + "/" + variables.resource) in WRITTEN ||
!(request.resource.group in BUILT_IN) && !has(request.subResource)`,
		`"Manifold may not write " + variables.resource`,
	},
	{
		`// It makes nothing without its mark.
variables.isOwnToken || request.operation != "CREATE" || has(request.subResource) || variables.after == ID`,
		`"` + StrangeDenial + ` a new object of " + variables.resource + " that lacks its mark"`,
	},
	{
		`// It changes what carries its mark, and may let go of it. What does not becomes Manifold's only if it was made for it.
variables.isOwnToken || request.operation != "UPDATE" ||
variables.before == ID && variables.after in [ID, ""] ||
variables.after == "" && (variables.isMadePod || variables.isMadeClaim) ||
variables.after == ID && (variables.isOrphan && (variables.isMadePod || variables.isMadeReplicaSet) || variables.isMadeClaim || variables.isMadeAccount)`,
		`"` + StrangeDenial + ` " + variables.resource + " " + variables.name`,
	},
	{
		`// It deletes what carries its mark, and what was made for it.
request.operation != "DELETE" || variables.before == ID || variables.isMadePod || variables.isMadeClaim`,
		`"` + StrangeDenial + ` " + variables.resource + " " + variables.name`,
	},
	{
		`// The cluster would put a token of any ServiceAccount of the namespace into such a Secret.
variables.resource != "secrets" || object == null || !has(object.type) || object.type != "kubernetes.io/service-account-token"`,
		`"Manifold may not create Secrets of type kubernetes.io/service-account-token"`,
	},
	{`!variables.isOfTheAPIServer`, `"Manifold may not write the endpoints of the cluster's API server"`},
}

// accountsFence keeps the pods of the syncer from running as a ServiceAccount of somebody else's in a namespace that clusters share: it is
// evaluated for each of these, as its parameter. In namespaces of ours all ServiceAccounts are guests.
func accountsFence(logical types.UID) *admissionregistrationv1.ValidatingAdmissionPolicy {
	writes := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: accountsName(logical), Labels: Labels()},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			ParamKind:     &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ServiceAccount"},
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: ptr.To(admissionregistrationv1.Equivalent), ObjectSelector: &metav1.LabelSelector{},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceDefault}},
				ResourceRules:     rulesForWorkloads(writes...),
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{isTheSyncer(logical)},
			Variables: []admissionregistrationv1.Variable{
				{Name: "spec", Expression: `// The parameter is a ServiceAccount of somebody else's, each in its turn.
request.resource.resource == "pods" ? object.spec : object.spec.template.spec`},
				{Name: "account", Expression: `has(variables.spec.serviceAccountName) ? variables.spec.serviceAccountName : "default"`},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: `// What runs already is not asked again: it may be about to be let go of, after its ServiceAccount.
variables.account == "default" || variables.account != params.metadata.name ||
request.operation == "UPDATE" && object.spec == oldObject.spec`,
				MessageExpression: `"` + StrangeDenial + ` ServiceAccount " + params.metadata.name + ", which the pods would run as"`,
				Reason:            ptr.To(metav1.StatusReasonForbidden),
			}},
		},
	}
}

// rulesForWorkloads are about all kinds of workloads.
func rulesForWorkloads(on ...admissionregistrationv1.OperationType) (out []admissionregistrationv1.NamedRuleWithOperations) {
	for _, row := range rights.Workloads() {
		out = append(out, ruleFor([]string{row.Group}, row.Resources, on...))
	}
	return out
}

// ruleFor matches requests about resources, whatever their scope.
func ruleFor(groups, resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: groups, APIVersions: []string{"*"}, Resources: resources, Scope: ptr.To(admissionregistrationv1.AllScopes),
		},
	}}
}

func isTheSyncer(logical types.UID) admissionregistrationv1.MatchCondition {
	user := serviceaccount.MakeUsername(manifoldv1alpha1.SystemNamespace, Name(logical))
	return admissionregistrationv1.MatchCondition{Name: "is-the-syncer", Expression: fmt.Sprintf("request.userInfo.username == %q", user)}
}

// expressionsOf returns what puts the names of a logical cluster into expressions.
func expressionsOf(logical types.UID) func(string) string {
	return strings.NewReplacer(
		"UID_MARK", fmt.Sprintf("%q", manifoldv1alpha1.AnnotationUID),
		"PROTECTED", listOf(manifoldv1alpha1.ProtectedNamespaces()),
		"SHARED", listOf([]string{metav1.NamespaceDefault}),
		"WRITTEN", listOf(written()),
		"BUILT_IN", listOf(builtIn()),
		"SECRETS_ROLE", fmt.Sprintf("%q", rights.SecretsRole(string(logical))),
		"SYSTEM", fmt.Sprintf("%q", manifoldv1alpha1.SystemNamespace),
		"ORPHAN", fmt.Sprintf("%q", manifoldv1alpha1.LabelOrphan),
		"MARK", fmt.Sprintf("%q", manifoldv1alpha1.LabelLogicalCluster),
		"NAME", fmt.Sprintf("%q", Name(logical)),
		"ID", fmt.Sprintf("%q", logical),
	).Replace
}

// written are the resources that the role lets the syncer write, and those that another one may, as GROUP/RESOURCE.
func written() []string {
	var out []string
	for _, right := range slices.Concat(rights.Syncer(), priorityRights(), rights.Volumes()) {
		if !slices.ContainsFunc(right.Verbs, writes) {
			continue
		}
		for _, resource := range right.Resources {
			out = append(out, right.Group+"/"+resource)
		}
	}
	return out
}

func writes(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }

// builtIn are the API groups whose kinds are no custom resources, among them those that extend the API or say who may do what.
func builtIn() []string {
	groups := sets.New("apiextensions.k8s.io", "apiregistration.k8s.io", "metrics.k8s.io")
	for _, version := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		groups.Insert(version.Group)
	}
	return sets.List(groups)
}

func listOf(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = fmt.Sprintf("%q", value)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// fenceBinding puts the policy of that name in force.
func fenceBinding(name string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: Labels()},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

// accountsBinding has the policy about ServiceAccounts look at those of others in the namespaces that clusters share.
func accountsBinding(logical types.UID) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	binding := fenceBinding(accountsName(logical))
	binding.Spec.ParamRef = &admissionregistrationv1.ParamRef{
		Namespace: metav1.NamespaceDefault,
		Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: manifoldv1alpha1.LabelLogicalCluster, Operator: metav1.LabelSelectorOpNotIn, Values: []string{string(logical)},
		}}},
		ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction),
	}
	return binding
}
