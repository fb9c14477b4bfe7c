package cluster

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// piece is one object that joining makes in a cluster.
type piece struct {
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
	// why says what it is for.
	why string
	// rights are what the rules of a role are made of, row by row.
	rights []Right
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
	return rights.Account(string(logical))
}

// madeByManifold labels what joining makes in a cluster. It is not the mark of ownership: that would make the syncer's own
// identity one of the objects that the syncer looks after and removes, and several logical clusters share the namespace.
func madeByManifold() map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "manifold"}
}

// pieces returns what joining makes in a cluster, but for what --allow-kind adds, in the order in which it has to be made. The fences come
// before the rights that need them.
func pieces(logical types.UID) ([]piece, error) {
	name := syncerName(logical)
	meta := metav1.ObjectMeta{Name: name, Labels: madeByManifold()}
	inSystem := *meta.DeepCopy()
	inSystem.Namespace = manifoldv1alpha1.SystemNamespace
	renewal, renewalBinding := tokenPieces(inSystem)
	granted := slices.Concat(SyncerRights(), ownRights(logical))
	toSecrets := *meta.DeepCopy()
	toSecrets.Name = rights.SecretsRole(string(logical))

	return assemble(name, []row{
		{
			version: admissionregistrationv1.SchemeGroupVersion, kind: "ValidatingAdmissionPolicy", resource: "validatingadmissionpolicies",
			object: fence(logical), why: "What Manifold may write of what its role allows: objects that carry its mark, in namespaces that do.",
		},
		{
			version: admissionregistrationv1.SchemeGroupVersion, kind: "ValidatingAdmissionPolicyBinding", resource: "validatingadmissionpolicybindings",
			object: fenceBinding(name), why: "Puts that in force.",
		},
		{
			version: admissionregistrationv1.SchemeGroupVersion, kind: "ValidatingAdmissionPolicy", resource: "validatingadmissionpolicies",
			object: accountsFence(logical),
			why:    "In namespaces that Manifold shares with others, pods that it makes do not run as ServiceAccounts of these.",
		},
		{
			version: admissionregistrationv1.SchemeGroupVersion, kind: "ValidatingAdmissionPolicyBinding", resource: "validatingadmissionpolicybindings",
			object: accountsBinding(logical), why: "Puts that in force, for each ServiceAccount that is not Manifold's.",
		},
		{
			version: corev1.SchemeGroupVersion, kind: "Namespace", resource: "namespaces",
			object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: manifoldv1alpha1.SystemNamespace, Labels: madeByManifold()}},
			why:    "Holds Manifold's identity, and nothing that runs.",
		},
		{
			version: corev1.SchemeGroupVersion, kind: "ServiceAccount", resource: "serviceaccounts",
			object: &corev1.ServiceAccount{ObjectMeta: inSystem, AutomountServiceAccountToken: ptr.To(false)}, why: "Manifold's identity.",
		},
		{
			version: rbacv1.SchemeGroupVersion, kind: "Role", resource: "roles", object: renewal, rights: rights.Renewal(name),
			why: "Its right to renew its own token. Each is bound to a Secret that joining makes, and deleting that revokes it.",
		},
		{version: rbacv1.SchemeGroupVersion, kind: "RoleBinding", resource: "rolebindings", object: renewalBinding, why: "Gives it that."},
		{
			version: rbacv1.SchemeGroupVersion, kind: "ClusterRole", resource: "clusterroles",
			object: &rbacv1.ClusterRole{ObjectMeta: meta, Rules: policyRules(granted)}, rights: granted,
			why: "What it may do. The policies above bound what of it may be written.",
		},
		{
			version: rbacv1.SchemeGroupVersion, kind: "ClusterRole", resource: "clusterroles",
			object: &rbacv1.ClusterRole{ObjectMeta: toSecrets, Rules: policyRules(rights.Secrets())}, rights: rights.Secrets(),
			why: "What it may do in namespaces of its own that have Secrets. It binds itself to this there, which the first policy bounds.",
		},
		{
			version: rbacv1.SchemeGroupVersion, kind: "ClusterRoleBinding", resource: "clusterrolebindings",
			object: &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects:   syncerAlone(logical),
			},
			why: "Gives it that.",
		},
	})
}

// allowances are what a cluster's admin has granted beside what every cluster grants.
type allowances struct {
	// kinds are the custom kinds that Manifold may manage.
	kinds []schema.GroupResource
	// priorities is up to which value PriorityClasses may come along, nil if none may.
	priorities *int32
	// volumes reports whether PersistentVolumes may go along with their claims.
	volumes bool
	// asks is how the cluster asks about pods, nil if it does not.
	asks *asking
}

// row is what a piece is made of.
type row struct {
	version             schema.GroupVersion
	kind, resource, why string
	object              runtime.Object
	rights              []Right
}

// assemble makes the pieces of rows. The name is for errors.
func assemble(name string, rows []row) ([]piece, error) {
	out := make([]piece, 0, len(rows))
	for _, r := range rows {
		made, err := newPiece(r.version, r.kind, r.resource, r.object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.kind, name, err)
		}
		made.why, made.rights = r.why, r.rights
		out = append(out, made)
	}
	return out, nil
}

// everything returns all that joining makes in a cluster, with what is allowed beside.
func everything(logical types.UID, beside allowances) ([]piece, error) {
	all, err := pieces(logical)
	if err != nil {
		return nil, err
	}
	telling, err := tellingPieces(logical)
	if err != nil {
		return nil, err
	}
	all = append(all, telling...)
	if len(beside.kinds) > 0 {
		custom, err := kindPieces(logical, beside.kinds)
		if err != nil {
			return nil, err
		}
		all = append(all, custom...)
	}
	if beside.priorities != nil {
		priorities, err := priorityPieces(logical, *beside.priorities)
		if err != nil {
			return nil, err
		}
		all = append(all, priorities...)
	}
	if beside.volumes {
		volumes, err := volumePieces(logical)
		if err != nil {
			return nil, err
		}
		all = append(all, volumes...)
	}
	if beside.asks != nil {
		hooks, err := podHookPieces(logical, *beside.asks)
		if err != nil {
			return nil, err
		}
		all = append(all, hooks...)
	}
	return all, nil
}

// syncerAlone is the subject of every binding that joining makes.
func syncerAlone(logical types.UID) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: manifoldv1alpha1.SystemNamespace, Name: syncerName(logical)}}
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
