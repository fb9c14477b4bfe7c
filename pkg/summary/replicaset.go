package summary

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	annotationRevision        = "deployment.kubernetes.io/revision"
	annotationRevisionHistory = "deployment.kubernetes.io/revision-history"

	deploymentDomain = "deployment.kubernetes.io/"
	manifoldDomain   = "manifold.dev/"
)

// ReplicaSetShare is a ReplicaSet in one cluster.
type ReplicaSetShare struct {
	// Cluster is the name of the Cluster object.
	Cluster string
	// ReplicaSet is what the cluster has.
	ReplicaSet *appsv1.ReplicaSet
}

// Recorded is a template that a Deployment had, as the logical cluster has seen it.
type Recorded struct {
	Template corev1.PodTemplateSpec
	// Annotations are those of the Deployment at that time.
	Annotations map[string]string
}

// Record returns what is to be kept of a Deployment's template when the Deployment gets another.
func Record(owner *appsv1.Deployment) *Recorded {
	return &Recorded{Template: *owner.Spec.Template.DeepCopy(), Annotations: maps.Clone(owner.Annotations)}
}

// SaneShare is what a cluster says of a ReplicaSet that carries out its share of a Deployment, brought down to what can be. What it has is not
// changed.
func SaneShare(cluster string, rs *appsv1.ReplicaSet, bounds Bounds) ReplicaSetShare {
	out, d := *rs, doubts{Bounds: bounds}
	saneReplicaSet(rs, &out, &d)
	d.maybe("spec.replicas", &out.Spec.Replicas, bounds.Replicas)
	return ReplicaSetShare{Cluster: cluster, ReplicaSet: &out}
}

// ReplicaSetName returns the name of the mirror of the ReplicaSets that carry out the template with that hash: the one that a Deployment
// controller would choose (generateReplicaSetName in k8s.io/kubernetes/pkg/controller/deployment/sync.go).
func ReplicaSetName(owner, templateHash string) string { return hashedName(owner, templateHash) }

// ReplicaSet returns the one mirror of the ReplicaSets that carry out the same upstream template in several clusters: owned by the
// Deployment, replicas and status summed. Existing is the mirror as it is upstream, nil if there is none yet.
//
// Templates come from above alone: a new mirror gets the Deployment's if the hash is that one's, else what was recorded of an old one that the
// Deployment had, nil if nothing was. What a cluster says that a template is would be run everywhere by "rollout undo". An existing mirror
// keeps its template, which is what "rollout undo" goes back to, whatever overrides or webhooks made of it below; it
// stays as history, with zero replicas, when no cluster has a share any more, until Prune names it. The mirror of the template in use
// follows the Deployment's annotations, as a ReplicaSet does. Revisions says which revision annotations belong on it.
//
// The result is nil for a template that the Deployment is not known to have had, and for an old one that has no mirror and runs nowhere: it
// was pruned, and a cluster that keeps a longer history does not bring it back.
func ReplicaSet(
	owner *appsv1.Deployment, templateHash string, recorded *Recorded, existing *appsv1.ReplicaSet, shares []ReplicaSetShare,
) *appsv1.ReplicaSet {
	shares = slices.SortedFunc(slices.Values(shares), func(a, b ReplicaSetShare) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.ReplicaSet.Name, b.ReplicaSet.Name))
	})
	inUse := projection.TemplateHash(&owner.Spec.Template) == templateHash
	replicas := specReplicas(shares)
	var out *appsv1.ReplicaSet
	switch {
	case existing != nil:
		out = existing.DeepCopy()
	case inUse:
		out = newMirror(owner, templateHash, &owner.Spec.Template)
	case recorded != nil && replicas > 0:
		out = newMirror(owner, templateHash, &recorded.Template)
		copyAnnotations(&out.ObjectMeta, recorded.Annotations)
	default:
		return nil
	}
	if inUse {
		copyAnnotations(&out.ObjectMeta, owner.Annotations)
		out.Spec.MinReadySeconds = owner.Spec.MinReadySeconds
	}
	out.Spec.Replicas = ptr.To(replicas)
	out.Status = replicaSetStatus(existing, out, shares)
	locate(out, shares)
	return out
}

// locate notes on a mirror where it is. Once nothing controls it any more, as when the Deployment is deleted and leaves it behind, it is a
// workload that has this for its decision. Where a cluster calls it otherwise, that ReplicaSet becomes another workload.
func locate(out *appsv1.ReplicaSet, shares []ReplicaSetShare) {
	decision := placement.Decision{}
	for _, share := range shares {
		if share.ReplicaSet.Name == out.Name {
			decision[share.Cluster] = placement.Share{Replicas: ptr.Deref(share.ReplicaSet.Spec.Replicas, 1)}
		}
	}
	delete(out.Annotations, v1alpha1.AnnotationPlacement)
	if len(decision) > 0 {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, v1alpha1.AnnotationPlacement, decision.String())
	}
}

// OrphanedReplicaSet returns the workload upstream that ReplicaSets become, of one name in some clusters, which their Deployment leaves
// behind and which have no mirror of that name. The template is the Deployment's of that time; of the clusters it has no more than the hash
// that their Kubernetes made of it, by which the pods there are selected. It is nil if there is no such hash, which is the end of the name.
func OrphanedReplicaSet(owner *appsv1.Deployment, of Recorded, shares []ReplicaSetShare) *appsv1.ReplicaSet {
	below := shares[0].ReplicaSet
	hash := below.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if hash == "" || len(validation.IsValidLabelValue(hash)) > 0 || below.Name != ReplicaSetName(owner.Name, hash) {
		return nil
	}
	out := newMirror(owner, hash, &of.Template)
	out.OwnerReferences, out.Finalizers = nil, []string{v1alpha1.FinalizerProjection}
	out.Spec.Replicas = ptr.To(specReplicas(shares))
	copyAnnotations(&out.ObjectMeta, of.Annotations)
	locate(out, shares)
	return out
}

// ReplicaSetHash returns the hash of the upstream template that a mirror carries out. One that the user made, and that the Deployment has
// taken over, is not labelled with it. Without a mirror, the shares tell.
func ReplicaSetHash(existing *appsv1.ReplicaSet, shares []ReplicaSetShare) string {
	switch {
	case existing == nil && len(shares) == 0:
		return ""
	case existing == nil:
		return shares[0].ReplicaSet.Annotations[v1alpha1.AnnotationTemplate]
	case madeByHand(existing):
		return projection.TemplateHash(&existing.Spec.Template)
	}
	return existing.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
}

// madeByHand reports whether a mirror was a ReplicaSet of the user's before the Deployment took it over.
func madeByHand(mirror *appsv1.ReplicaSet) bool {
	return mirror.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == ""
}

// CurrentReplicaSet returns the name of the mirror that carries out the template in use. One that was made by hand does if it has that
// template and no other has.
func CurrentReplicaSet(owner *appsv1.Deployment, mirrors []*appsv1.ReplicaSet) string {
	hash := projection.TemplateHash(&owner.Spec.Template)
	name := ReplicaSetName(owner.Name, hash)
	other := ""
	for _, mirror := range mirrors {
		switch {
		case mirror.Name == name:
			return name
		case other == "" && madeByHand(mirror) && ReplicaSetHash(mirror, nil) == hash:
			other = mirror.Name
		}
	}
	return cmp.Or(other, name)
}

func specReplicas(shares []ReplicaSetShare) int32 {
	var sum int32
	for _, share := range shares {
		sum = addUp(sum, ptr.Deref(share.ReplicaSet.Spec.Replicas, 1))
	}
	return sum
}

// newMirror makes the parts of a mirror that never change.
func newMirror(owner *appsv1.Deployment, templateHash string, template *corev1.PodTemplateSpec) *appsv1.ReplicaSet {
	out := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            ReplicaSetName(owner.Name, templateHash),
			Namespace:       owner.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			MinReadySeconds: owner.Spec.MinReadySeconds,
			Selector:        owner.Spec.Selector.DeepCopy(),
			Template:        *template.DeepCopy(),
		},
	}
	if out.Spec.Selector == nil {
		out.Spec.Selector = &metav1.LabelSelector{}
	}
	out.Spec.Selector.MatchLabels = withHash(out.Spec.Selector.MatchLabels, templateHash)
	out.Spec.Template.Labels = withHash(out.Spec.Template.Labels, templateHash)
	out.Labels = maps.Clone(out.Spec.Template.Labels)
	return out
}

// withHash also replaces the hash that a share from below brings along, which differs where overrides change the template.
func withHash(labels map[string]string, templateHash string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[appsv1.DefaultDeploymentUniqueLabelKey] = templateHash
	return out
}

// copyAnnotations gives the mirror the annotations of the user, such as the cause of a change, and never takes one away: they tell what
// was when the template was in use.
func copyAnnotations(out *metav1.ObjectMeta, from map[string]string) {
	for key, value := range from {
		if key == corev1.LastAppliedConfigAnnotation || key == appsv1.DeprecatedRollbackTo ||
			strings.HasPrefix(key, deploymentDomain) || strings.HasPrefix(key, manifoldDomain) {
			continue
		}
		metav1.SetMetaDataAnnotation(out, key, value)
	}
}

// replicaSetStatus sums the shares' status. What is observed is the generation that the mirror has once its spec is written, if every
// cluster has observed its own.
func replicaSetStatus(existing, out *appsv1.ReplicaSet, shares []ReplicaSetShare) appsv1.ReplicaSetStatus {
	var sum appsv1.ReplicaSetStatus
	observed := true
	for _, share := range shares {
		status := share.ReplicaSet.Status
		sum.Replicas = addUp(sum.Replicas, status.Replicas)
		sum.FullyLabeledReplicas = addUp(sum.FullyLabeledReplicas, status.FullyLabeledReplicas)
		sum.ReadyReplicas = addUp(sum.ReadyReplicas, status.ReadyReplicas)
		sum.AvailableReplicas = addUp(sum.AvailableReplicas, status.AvailableReplicas)
		if status.TerminatingReplicas != nil {
			sum.TerminatingReplicas = ptr.To(addUp(ptr.Deref(sum.TerminatingReplicas, 0), *status.TerminatingReplicas))
		}
		observed = observed && status.ObservedGeneration >= share.ReplicaSet.Generation
	}
	sum.Conditions = replicaSetConditions(existing, shares)
	switch {
	case observed:
		sum.ObservedGeneration = nextGeneration(existing, out)
	case existing != nil:
		sum.ObservedGeneration = existing.Status.ObservedGeneration
	}
	return sum
}

// nextGeneration is the generation that writing out gives the mirror.
func nextGeneration(existing, out *appsv1.ReplicaSet) int64 {
	switch {
	case existing == nil:
		return 1
	case ptr.Equal(existing.Spec.Replicas, out.Spec.Replicas) && existing.Spec.MinReadySeconds == out.Spec.MinReadySeconds:
		return existing.Generation
	}
	return existing.Generation + 1
}

// replicaSetConditions joins the only condition that ReplicaSets have: that pods cannot be made or removed.
func replicaSetConditions(existing *appsv1.ReplicaSet, shares []ReplicaSetShare) []appsv1.ReplicaSetCondition {
	var failures blame
	var out appsv1.ReplicaSetCondition
	for _, share := range shares {
		for _, c := range share.ReplicaSet.Status.Conditions {
			if c.Type != appsv1.ReplicaSetReplicaFailure || c.Status != corev1.ConditionTrue {
				continue
			}
			if len(failures) == 0 {
				out = c
			}
			failures.add(share.Cluster, c.Message)
		}
	}
	if len(failures) == 0 {
		return nil
	}
	out.Message = failures.String()
	if existing != nil {
		for _, old := range existing.Status.Conditions {
			if old.Type == out.Type && old.Status == out.Status {
				out.LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	return []appsv1.ReplicaSetCondition{out}
}
