package cluster

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// piece is one object that joining makes in a cluster.
type piece struct {
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
}

func (p piece) String() string {
	name := p.object.GetName()
	if namespace := p.object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return p.object.GetKind() + " " + name
}

// syncerName names everything that joining makes in a cluster for one logical cluster, so that several can share a cluster.
func syncerName(logical types.UID) string {
	return "manifold-syncer-" + string(logical[:min(8, len(logical))])
}

// madeByManifold labels what joining makes in a cluster. It is not the mark of ownership: that would make the syncer's own
// identity one of the objects that the syncer looks after and removes, and several logical clusters share the namespace.
func madeByManifold() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "manifold"}
}

// pieces returns what joining makes in a cluster, in the order in which it has to be made. The fence against kube-* namespaces
// comes before the rights that need it.
func pieces(logical types.UID) ([]piece, error) {
	name := syncerName(logical)
	meta := metav1.ObjectMeta{Name: name, Labels: madeByManifold()}
	inSystem := *meta.DeepCopy()
	inSystem.Namespace = manifoldv1alpha1.SystemNamespace
	token := *inSystem.DeepCopy()
	token.Annotations = map[string]string{corev1.ServiceAccountNameKey: name}

	objects := []struct {
		version  schema.GroupVersion
		kind     string
		resource string
		object   runtime.Object
	}{
		{admissionregistrationv1.SchemeGroupVersion, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", fence(meta)},
		{
			admissionregistrationv1.SchemeGroupVersion, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings",
			fenceBinding(meta),
		},
		{corev1.SchemeGroupVersion, "Namespace", "namespaces", &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: manifoldv1alpha1.SystemNamespace, Labels: madeByManifold()},
		}},
		{corev1.SchemeGroupVersion, "ServiceAccount", "serviceaccounts", &corev1.ServiceAccount{
			ObjectMeta: inSystem, AutomountServiceAccountToken: ptr.To(false),
		}},
		{corev1.SchemeGroupVersion, "Secret", "secrets", &corev1.Secret{
			ObjectMeta: token, Type: corev1.SecretTypeServiceAccountToken,
		}},
		{rbacv1.SchemeGroupVersion, "ClusterRole", "clusterroles", &rbacv1.ClusterRole{
			ObjectMeta: meta, Rules: policyRules(SyncerRights()),
		}},
		{rbacv1.SchemeGroupVersion, "ClusterRoleBinding", "clusterrolebindings", &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: manifoldv1alpha1.SystemNamespace, Name: name,
			}},
		}},
	}
	all := make([]piece, 0, len(objects))
	for _, o := range objects {
		made, err := newPiece(o.version, o.kind, o.resource, o.object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.kind, name, err)
		}
		all = append(all, made)
	}
	return all, nil
}

func newPiece(version schema.GroupVersion, kind, resource string, from runtime.Object) (piece, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return piece{}, err
	}
	// A status is not ours to apply.
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(version.WithKind(kind))
	return piece{resource: version.WithResource(resource), object: object}, nil
}

// fenceDenial begins what the fence says, before the name of the namespace.
const fenceDenial = "Manifold does not write in namespace"

// fence denies the syncer every write in kube-* namespaces and in the one that holds its own credential. Requests of others do
// not match its condition, so they cost next to nothing.
func fence(meta metav1.ObjectMeta) *admissionregistrationv1.ValidatingAdmissionPolicy {
	user := serviceaccount.MakeUsername(manifoldv1alpha1.SystemNamespace, meta.Name)
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{
							admissionregistrationv1.Create, admissionregistrationv1.Update,
							admissionregistrationv1.Delete, admissionregistrationv1.Connect,
						},
						Rule: admissionregistrationv1.Rule{
							APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"},
							Scope: ptr.To(admissionregistrationv1.AllScopes),
						},
					},
				}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "is-the-syncer", Expression: fmt.Sprintf("request.userInfo.username == %q", user)},
			},
			Variables: []admissionregistrationv1.Variable{
				// A namespace is in itself. While it is created, its name may stand in the object alone.
				{Name: "place", Expression: `has(request.namespace) && request.namespace != "" ? request.namespace : ` +
					`request.kind.kind != "Namespace" ? "" : ` +
					`request.operation == "CREATE" ? object.metadata.name : request.name`},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf(`!variables.place.startsWith("kube-") && variables.place != %q`,
					manifoldv1alpha1.SystemNamespace),
				MessageExpression: fmt.Sprintf(`"%s " + variables.place`, fenceDenial),
				Reason:            ptr.To(metav1.StatusReasonForbidden),
			}},
		},
	}
}

func fenceBinding(meta metav1.ObjectMeta) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        meta.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}
