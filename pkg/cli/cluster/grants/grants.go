// Package grants describes what Manifold is given in a physical cluster: the objects that joining makes there, the rights that they grant and the
// admission policies that bound these, and in what an object of the cluster differs from that.
//
// It reaches no cluster: what is there comes in as a value, and what is to be done goes out as one. Package physical carries it out.
package grants

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// FieldManager is the field manager of what joining applies. It differs from the syncer's, so that neither drops the other's fields from an
// object that both apply.
const FieldManager = "manifold-join"

// Piece is one object that joining makes in a cluster.
type Piece struct {
	Resource schema.GroupVersionResource
	Object   *unstructured.Unstructured
	// why says what it is for.
	why string
	// rights are what the rules of a role are made of, row by row.
	rights []rights.Right
}

func (p Piece) String() string {
	name := p.Object.GetName()
	if namespace := p.Object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return p.Object.GetKind() + " " + name
}

// Name names everything that joining makes in a cluster for one logical cluster, so that several can share a cluster.
func Name(logical types.UID) string {
	return rights.Account(string(logical))
}

// Labels are on what joining makes in a cluster. They are not the mark of ownership: that would make the syncer's own
// identity one of the objects that the syncer looks after and removes, and several logical clusters share the namespace.
func Labels() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "manifold"}
}

// Made reports whether an object with these labels is of joining's making.
func Made(of map[string]string) bool {
	return labels.SelectorFromSet(Labels()).Matches(labels.Set(of))
}

// TokenLabels are on the Secrets that the tokens of a logical cluster end with.
func TokenLabels(logical types.UID) map[string]string {
	set := Labels()
	set["app.kubernetes.io/instance"] = Name(logical)
	return set
}

// Allowances are what a cluster's admin grants beside what every cluster grants.
type Allowances struct {
	// Kinds are the custom kinds that Manifold may manage.
	Kinds []schema.GroupResource
	// PriorityClassesUpTo is up to which value PriorityClasses may come along, nil if none may.
	PriorityClassesUpTo *int32
	// Volumes reports whether PersistentVolumes may go along with their claims.
	Volumes bool
	// Pipelines reports whether pipelines may show what is in the cluster beside what Manifold has put there.
	Pipelines bool
	// PodWebhook is how the cluster asks about pods, nil if it does not.
	PodWebhook *PodWebhook
	// PodSecurity is the level of the Pod Security Standards that pods are kept to. It takes from what every cluster grants. "" and Privileged stand
	// for none; for Grant, "" is what was before.
	PodSecurity string
}

// Said is what the logical cluster says of it.
func (a Allowances) Said() manifoldv1alpha1.ClusterAllows {
	out := manifoldv1alpha1.ClusterAllows{
		PriorityClassesUpTo: a.PriorityClassesUpTo, Volumes: a.Volumes, Pipelines: a.Pipelines, PodWebhooks: a.PodWebhook != nil,
	}
	if bounds(a.PodSecurity) {
		out.PodSecurity = a.PodSecurity
	}
	return out
}

// All returns what joining makes in a cluster, with what is allowed beside, in the order in which it has to be made. The fences come before the
// rights that need them.
func All(logical types.UID, beside Allowances) ([]Piece, error) {
	var rows []row
	if bounds(beside.PodSecurity) {
		rows = podSecurity(logical, beside.PodSecurity)
	}
	rows = slices.Concat(rows, everywhere(logical), audit(logical))
	if len(beside.Kinds) > 0 {
		rows = append(rows, kinds(logical, beside.Kinds)...)
	}
	if beside.PriorityClassesUpTo != nil {
		rows = append(rows, priorityClasses(logical, *beside.PriorityClassesUpTo)...)
	}
	if beside.Volumes {
		rows = append(rows, volumes(logical)...)
	}
	if beside.Pipelines {
		rows = append(rows, pipelines(logical)...)
	}
	if beside.PodWebhook != nil {
		rows = append(rows, podWebhook(logical, *beside.PodWebhook))
	}
	return assemble(rows...)
}

// everywhere is what joining makes in every cluster, but for what its audit is told by.
func everywhere(logical types.UID) []row {
	name := Name(logical)
	meta := metav1.ObjectMeta{Name: name, Labels: Labels()}
	inSystem := *meta.DeepCopy()
	inSystem.Namespace = manifoldv1alpha1.SystemNamespace
	toSecrets := *meta.DeepCopy()
	toSecrets.Name = rights.SecretsRole(string(logical))

	return []row{
		policy(fence(logical), "What Manifold may write of what its role allows: objects that carry its mark, in namespaces that do."),
		policyBinding(fenceBinding(name), "Puts that in force."),
		policy(accountsFence(logical), "In namespaces that Manifold shares with others, pods that it makes do not run as ServiceAccounts of these."),
		policyBinding(accountsBinding(logical), "Puts that in force, for each ServiceAccount that is not Manifold's."),
		{
			version: corev1.SchemeGroupVersion, kind: "Namespace", resource: "namespaces",
			object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: manifoldv1alpha1.SystemNamespace, Labels: Labels()}},
			why:    "Holds Manifold's identity, and nothing that runs.",
		},
		{
			version: corev1.SchemeGroupVersion, kind: "ServiceAccount", resource: "serviceaccounts",
			object: &corev1.ServiceAccount{ObjectMeta: inSystem, AutomountServiceAccountToken: ptr.To(false)}, why: "Manifold's identity.",
		},
		role(inSystem, rights.Renewal(name), "Its right to renew its own token. Each is bound to a Secret that joining makes, and deleting that revokes it."),
		roleBinding(inSystem, logical),
		clusterRole(meta, slices.Concat(rights.Syncer(), ownRights(logical)), "What it may do. The policies above bound what of it may be written."),
		clusterRole(toSecrets, rights.Secrets(),
			"What it may do in namespaces of its own that have Secrets. It binds itself to this there, which the first policy bounds."),
		clusterRoleBinding(meta, logical),
	}
}

// row is what a piece is made of.
type row struct {
	version             schema.GroupVersion
	kind, resource, why string
	object              interface {
		runtime.Object
		metav1.Object
	}
	rights []rights.Right
}

func policy(object *admissionregistrationv1.ValidatingAdmissionPolicy, why string) row {
	return row{
		version: admissionregistrationv1.SchemeGroupVersion, kind: "ValidatingAdmissionPolicy", resource: "validatingadmissionpolicies",
		object: object, why: why,
	}
}

func policyBinding(object *admissionregistrationv1.ValidatingAdmissionPolicyBinding, why string) row {
	return row{
		version: admissionregistrationv1.SchemeGroupVersion, kind: "ValidatingAdmissionPolicyBinding", resource: "validatingadmissionpolicybindings",
		object: object, why: why,
	}
}

func role(meta metav1.ObjectMeta, granted []rights.Right, why string) row {
	return row{
		version: rbacv1.SchemeGroupVersion, kind: "Role", resource: "roles",
		object: &rbacv1.Role{ObjectMeta: meta, Rules: policyRules(granted)}, rights: granted, why: why,
	}
}

func clusterRole(meta metav1.ObjectMeta, granted []rights.Right, why string) row {
	return row{
		version: rbacv1.SchemeGroupVersion, kind: "ClusterRole", resource: "clusterroles",
		object: &rbacv1.ClusterRole{ObjectMeta: meta, Rules: policyRules(granted)}, rights: granted, why: why,
	}
}

// roleBinding gives the syncer the Role of that name.
func roleBinding(meta metav1.ObjectMeta, logical types.UID) row {
	return row{
		version: rbacv1.SchemeGroupVersion, kind: "RoleBinding", resource: "rolebindings", why: "Gives it that.",
		object: &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects(logical), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		},
	}
}

// clusterRoleBinding gives the syncer the ClusterRole of that name.
func clusterRoleBinding(meta metav1.ObjectMeta, logical types.UID) row {
	return row{
		version: rbacv1.SchemeGroupVersion, kind: "ClusterRoleBinding", resource: "clusterrolebindings", why: "Gives it that.",
		object: &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: subjects(logical), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		},
	}
}

// subjects are those of every binding that joining makes: the syncer alone.
func subjects(logical types.UID) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: manifoldv1alpha1.SystemNamespace, Name: Name(logical)}}
}

// BindsSyncer reports whether the syncer of a logical cluster is among the subjects of a binding.
func BindsSyncer(logical types.UID, of []rbacv1.Subject) bool {
	return slices.ContainsFunc(of, func(s rbacv1.Subject) bool { return sameSubject(s, subjects(logical)[0]) })
}

// assemble makes the pieces of rows.
func assemble(rows ...row) ([]Piece, error) {
	out := make([]Piece, 0, len(rows))
	for _, r := range rows {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.kind, r.object.GetName(), err)
		}
		// A status is not ours to apply.
		delete(content, "status")
		object := &unstructured.Unstructured{Object: content}
		object.SetGroupVersionKind(r.version.WithKind(r.kind))
		out = append(out, Piece{Resource: r.version.WithResource(r.resource), Object: object, why: r.why, rights: r.rights})
	}
	return out, nil
}
