package projection

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// Object is a typed Kubernetes object, such as *appsv1.Deployment.
type Object interface {
	metav1.Object
	runtime.Object
}

// Target is the cluster that a projection is for.
type Target struct {
	// LogicalCluster is the identity of the logical cluster: the UID of its kube-system namespace.
	LogicalCluster string
	// Cluster is the name of the Cluster object.
	Cluster string
}

// Kind is how objects of one kind are projected.
type Kind struct {
	// GVK is the version of the kind that is read above and applied below.
	GVK schema.GroupVersionKind
	// Resource is what the API serves the kind as.
	Resource schema.GroupVersionResource
	// Namespaced reports whether objects of the kind live in namespaces.
	Namespaced bool
	// Workload reports whether objects of the kind end in pods and so carry a decision. The others follow the workloads.
	Workload bool
	// Custom tells that it is a kind of custom resources, which a definition makes.
	Custom bool
	// Divided tells that what a cluster gets of an object depends on what runs of its workloads in all clusters. See Part.
	Divided bool
	// Stays tells that objects of the kind stay in a cluster that nothing needs them in any more, until they are deleted above.
	Stays bool
	// Yields tells that a controller below which takes an object over has the say about it from then on.
	Yields bool
	// Ends tells that what an object stands for ends as soon as the object is deleted, whoever holds it by a finalizer.
	Ends bool
	// ReadsManagers tells that the projection depends on who set which field, so that caches have to keep that.
	ReadsManagers bool
	// Right says what the right to write objects of the kind into clusters is for.
	Right string
	// Delivered says how Applications deal with objects of the kind.
	Delivered Delivered
	// Creator is the name of the ServiceAccount as which a controller of a cluster makes pods for workloads of the kind. It is "" for a kind whose
	// controllers make none themselves.
	Creator string
	// Bounds tells that objects of the kind bound which pods are made, or what they may do, so that none may be made before they are InForce.
	Bounds bool
	// NotMadeThere is a label selector for what the controllers of a cluster itself have not made; "" for a kind of which they make nothing that
	// looks like ours. It is for objects of this kind alone: on any other, its labels are anybody's.
	NotMadeThere string
	// New returns an empty object of the kind.
	New func() Object

	// is reports whether an object is of the kind.
	is func(in Object) bool
	// demand reads what a workload asks of the clusters. It is nil for a kind that is no workload.
	demand func(in Object) Demand
	// fill copies what is projected, metadata and type aside, from in to out. What it puts into out may not be shared with in.
	fill func(in, out Object, part Part)
	// mirror reports whether the object shows what lives below, or is for somebody else to carry out, and so is never projected. It is nil
	// for a kind without such objects.
	mirror func(in Object) bool
	// refuse returns why the object is never projected, or "".
	refuse func(in Object) string
	// replace returns which immutable field keeps live from becoming desired by an update, or "".
	replace func(desired, live Object) string
	// once tells that the object was carried out and is not to be again: when it is gone below, it has ended. It is nil for a kind that
	// is put back.
	once func(in Object) bool
	// frozen reports whether live is in a state in which fields cannot be changed that can be in another. It is nil for a kind without.
	frozen func(live Object) bool
	// keep gives desired what live has in these fields.
	keep func(desired, live Object)
	// references gathers what the object needs by name.
	references func(in Object, r *references)
	// selector selects the pods that the object goes along with; the function is nil for a kind that selects none, and returns nil for an
	// object that does not.
	selector func(in Object) *metav1.LabelSelector
	// controls selects what the controllers of a workload take for its own. It is nil for a kind without controllers.
	controls func(in Object) *metav1.LabelSelector
	// labels reports whether controllers below give pods of a workload a label of that value, beside those of its template. It is nil for a
	// kind whose controllers give them none.
	labels func(in Object, key, value string) bool
	// follows gathers the objects that the object goes along with, wherever they go.
	follows func(in Object, r *references)
	// claims returns the names of the templates by which volume claims are made for the replicas. It is nil for a kind without.
	claims func(in Object) []string
	// general reports whether the object goes wherever its namespace has a workload. It is nil for a kind of which none does.
	general func(in Object) bool
	// requires returns the classes that the object names, beside those of a pod template.
	requires func(in Object) []Requirement
	// inForce reports whether an object below bounds what is made from now on. It is nil for a kind that bounds nothing.
	inForce func(live Object) bool
	// carry gives out, which has the content of a revision, what it has of the object whatever the revision says. It is nil for a kind without.
	carry func(in, out Object)
	// paths say where objects of a custom kind have what their pods are made of. It is nil for all others.
	paths *PodPaths
}

// Part says what of an object a cluster is to hold.
type Part struct {
	// Share is the cluster's share of a workload. While a move goes on it may be more than the decision's.
	Share placement.Share
	// Decision is the whole decision about a workload.
	Decision placement.Decision
	// Waits tells that the cluster is not to update its pods to another template yet. Only kinds that can wait heed it.
	Waits bool
	// Begins is the template that the pods of a paused Deployment have, for a cluster that has none of them yet: one that is made paused makes
	// no pods.
	Begins *corev1.PodTemplateSpec
	// Cluster is the name of the cluster. Project sets it.
	Cluster string
	// Revision is the mark of the revision that the object's content is of, "" for the object as it stands. See RevisionMark.
	Revision string
	// Overrides are what a policy changes of a workload in the cluster.
	Overrides Overrides
	// Workloads are those that an object of a Divided kind goes along with, wherever they run.
	Workloads []Placed
	// API is how the pods of a workload reach the API of the logical cluster; nil if they call that of the cluster.
	API *API
	// PodWebhooks is the value of LabelPodWebhooks that a namespace gets, "" for none.
	PodWebhooks string
	// LeftOut is what the projection does not name, although the object does. See Kind.LeftOut.
	LeftOut []Reference
	// Inward tells that the cluster has a Service because it shares a network with clusters that run its pods, and runs none itself: it is not
	// to be reached from outside there.
	Inward bool
	// Elsewhere are the endpoints in other clusters of a network that a slice leads to which the logical cluster makes of pods.
	Elsewhere []discoveryv1.Endpoint
	// LimitRanges are those of the namespace of an object of a Divided kind. They complete what pods ask for.
	LimitRanges []*corev1.LimitRange
}

// leaves reports whether the cluster is to run none of the workloads, and only has some until they run elsewhere.
func (p Part) leaves() bool {
	for _, w := range p.Workloads {
		if _, decided := w.Decision[p.Cluster]; decided {
			return false
		}
	}
	return len(p.Workloads) > 0
}

// row makes a Kind of functions that are typed by the kind's Go type, so that only this function converts.
type row[T any, P interface {
	*T
	Object
}] struct {
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
	yields     bool
	demand     func(in P) Demand
	fill       func(in, out P, part Part)
	mirror     func(in P) bool
	refuse     func(in P) string
	replace    func(desired, live P) string
	once       func(in P) bool
	stays      bool
	frozen     func(live P) bool
	keep       func(desired, live P)
	references func(in P, r *references)
	selector   func(in P) *metav1.LabelSelector
	labels     func(in P, key, value string) bool
	follows    func(in P, r *references)
	claims     func(in P) []string
	general    func(in P) bool
	divided    bool
	ends       bool
	managers   bool
	requires   func(in P) []Requirement
	inForce    func(live P) bool
	carry      func(in, out P)
	controls   func(in P) *metav1.LabelSelector
	right      string
	delivered  Delivered
	creator    string

	notMadeThere string
}

func (r row[T, P]) build() Kind {
	kind := Kind{
		GVK:        r.resource.GroupVersion().WithKind(r.kind),
		Resource:   r.resource,
		Namespaced: r.namespaced,
		Workload:   r.demand != nil,
		Divided:    r.divided,
		Stays:      r.stays,
		Yields:     r.yields,
		Ends:       r.ends,
		Right:      r.right,
		Delivered:  r.delivered,
		Creator:    r.creator,
		Bounds:     r.inForce != nil,
		New:        func() Object { return P(new(T)) },
		is:         func(in Object) bool { _, ok := in.(P); return ok },
		fill:       func(in, out Object, part Part) { r.fill(in.(P), out.(P), part) },
		refuse:     func(Object) string { return "" },
		replace:    func(Object, Object) string { return "" },
		references: func(Object, *references) {},
		follows:    func(Object, *references) {},
		requires:   func(Object) []Requirement { return nil },

		ReadsManagers: r.managers,
		NotMadeThere:  r.notMadeThere,
	}
	if r.demand != nil {
		kind.demand = func(in Object) Demand { return r.demand(in.(P)) }
		kind.Right = rightWorkloads
	}
	if r.mirror != nil {
		kind.mirror = func(in Object) bool { return r.mirror(in.(P)) }
	}
	if r.refuse != nil {
		kind.refuse = func(in Object) string { return r.refuse(in.(P)) }
	}
	if r.replace != nil {
		kind.replace = func(desired, live Object) string { return r.replace(desired.(P), live.(P)) }
	}
	if r.once != nil {
		kind.once = func(in Object) bool { return r.once(in.(P)) }
	}
	if r.frozen != nil {
		kind.frozen = func(live Object) bool { return r.frozen(live.(P)) }
		kind.keep = func(desired, live Object) { r.keep(desired.(P), live.(P)) }
	}
	if r.references != nil {
		kind.references = func(in Object, refs *references) { r.references(in.(P), refs) }
	}
	if r.selector != nil {
		kind.selector = func(in Object) *metav1.LabelSelector { return r.selector(in.(P)) }
	}
	if r.controls != nil {
		kind.controls = func(in Object) *metav1.LabelSelector { return r.controls(in.(P)) }
	}
	if r.labels != nil {
		kind.labels = func(in Object, key, value string) bool { return r.labels(in.(P), key, value) }
	}
	if r.follows != nil {
		kind.follows = func(in Object, refs *references) { r.follows(in.(P), refs) }
	}
	if r.claims != nil {
		kind.claims = func(in Object) []string { return r.claims(in.(P)) }
	}
	if r.general != nil {
		kind.general = func(in Object) bool { return r.general(in.(P)) }
	}
	if r.carry != nil {
		kind.carry = func(in, out Object) { r.carry(in.(P), out.(P)) }
	}
	if r.requires != nil {
		kind.requires = func(in Object) []Requirement { return r.requires(in.(P)) }
	}
	if r.inForce != nil {
		kind.inForce = func(live Object) bool { return r.inForce(live.(P)) }
	}
	return kind
}

// kinds is the table of all kinds. A namespace comes before what lives in it, and dependents before workloads, so that applying in
// this order lets pods start at once. Nothing may change it.
var kinds = []Kind{
	namespace.build(),
	serviceAccount.build(),
	secret.build(),
	configMap.build(),
	limitRange.build(),
	resourceQuota.build(),
	persistentVolumeClaim.build(),
	networkPolicy.build(),
	podDisruptionBudget.build(),
	service.build(),
	endpoints.build(),
	endpointSlice.build(),
	ingress.build(),
	deployment.build(),
	statefulSet.build(),
	daemonSet.build(),
	replicaSet.build(),
	replicationController.build(),
	pod.build(),
	job.build(),
}

// Kinds returns every kind that is projected, in the order in which objects of them should be applied. The caller may not change it.
func Kinds() []Kind { return slices.Clip(kinds) }

// ForGVK returns the kind of that group, version and kind name.
func ForGVK(gvk schema.GroupVersionKind) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.GVK == gvk })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// ForResource returns the kind that is served as that resource.
func ForResource(gvr schema.GroupVersionResource) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Resource == gvr })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// RefusedError is returned for an object that is never projected.
type RefusedError struct {
	// Kind is the kind name of the object.
	Kind string
	// Namespace and Name are those of the object.
	Namespace, Name string
	// Reason says why, as the end of a sentence.
	Reason string
}

// Error names the object and says why it is not projected.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s %s is not projected: %s", e.Kind, qualified(e.Namespace, e.Name), e.Reason)
}

// Mirror reports whether the object is not for Manifold to carry out: it shows what lives below, or has another controller.
func (k Kind) Mirror(in Object) bool { return k.mirror != nil && k.mirror(in) }

// Ended reports whether the object was carried out in its cluster, so that what is gone there is not to be made again.
func (k Kind) Ended(in Object) bool { return k.once != nil && k.once(in) }

// ListedAs is how a policy names the kind. A custom kind may have the name of another one.
func (k Kind) ListedAs() string {
	if k.Custom {
		return k.GVK.Kind + "." + k.GVK.Group
	}
	return k.GVK.Kind
}

// Arrived is how many replicas the status of one cluster's copy of a custom object says are there, false if nobody knows where it would say so.
func (k Kind) Arrived(status map[string]any) (count int32, told bool) { return k.paths.Arrived(status) }

// InForce reports whether an object below, of a kind that Bounds, bounds what is made from now on.
func (k Kind) InForce(live Object) bool { return k.inForce == nil || k.inForce(live) }

// Projectable reports whether the object may be projected to any cluster at all, and if not, why.
func (k Kind) Projectable(in Object) (ok bool, reason string) {
	if in.GetNamespace() != "" {
		if reason, refused := NamespaceRefusal(in.GetNamespace()); refused {
			return false, reason
		}
	}
	reason = k.refuse(in)
	return reason == "", reason
}

// Project returns what the target cluster should hold for in: an object of the same Go type with the cluster's part of it, the
// ownership marks, and nothing that only means something upstream. It does not change in, and shares no memory with it.
//
// The error is a *RefusedError for an object that is not Projectable. Asking for another kind's object is an error as well.
func (k Kind) Project(in Object, part Part, to Target) (Object, error) {
	out := k.New()
	if !k.is(in) {
		return nil, fmt.Errorf("project %T %s to cluster %q: want a %T", in, qualified(in.GetNamespace(), in.GetName()), to.Cluster, out)
	}
	if ok, reason := k.Projectable(in); !ok {
		return nil, &RefusedError{Kind: k.GVK.Kind, Namespace: in.GetNamespace(), Name: in.GetName(), Reason: reason}
	}
	out.GetObjectKind().SetGroupVersionKind(k.GVK)
	own(in, out, to)
	part.Cluster = to.Cluster
	k.fill(in, out, part)
	if k.Workload {
		overridden, err := part.Overrides.apply(k, out)
		if err != nil {
			return nil, fmt.Errorf("project %s %s to cluster %q: %w", k.GVK.Kind, qualified(in.GetNamespace(), in.GetName()), to.Cluster, err)
		}
		out = overridden
	}
	if part.API != nil && k.demand != nil {
		_, pods := podsOf(k, out)
		part.API.give(pods, to)
	}
	leftOut(part.LeftOut).from(k, out)
	err := k.confine(out)
	if err != nil {
		return nil, err
	}
	if part.API != nil && k.demand != nil {
		meta, _ := podMeta(k, out)
		part.API.tell(meta)
	}
	markRevision(out, part.Revision)
	if out, err = k.routed(in, out, to.Cluster); err != nil {
		return nil, fmt.Errorf("project %s %s to cluster %q: %w", k.GVK.Kind, qualified(in.GetNamespace(), in.GetName()), to.Cluster, err)
	}
	if err := seal(out); err != nil {
		return nil, fmt.Errorf("project %s %s to cluster %q: %w", k.GVK.Kind, qualified(in.GetNamespace(), in.GetName()), to.Cluster, err)
	}
	return out, nil
}

// qualified writes a name as messages show it.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
