package wanted

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// policyPriority has the policies of applications win over others of the namespace.
const policyPriority = 1000

// policies gathers those that the workloads of an application follow.
type policies struct {
	app  Application
	set  delivery.Set
	made map[string]*manifold.PlacementPolicy
}

// of returns the name of the policy that a workload follows. All workloads of the primary follow one, but for those whose targets say different numbers; each
// of a copy has its own.
func (p *policies) of(workload Object) string {
	name := p.app.Name + "-" + workload.Variant
	division := &manifold.Division{Type: manifold.Duplicate}
	switch weights := p.weights(); {
	case workload.Variant != delivery.Primary:
		name += "-" + brief(workload.Key.String(), 4)
		division = byReplicas(workload)
	case workload.Portions != nil:
		name += "-" + brief(workload.Key.String(), 4)
		division = byNumbers(workload, workload.Portions)
	case weights != nil:
		division = &manifold.Division{Type: manifold.Divide, By: manifold.ByWeights, Weights: weights}
	}
	name = fitting(name)
	if p.made[name] == nil {
		p.made[name] = p.app.policy(name, workload.Variant, division)
	}
	return name
}

// fitting is a name that workloads can name in a label. One that is too long is cut, and ends in a hash of all of it instead: what begins alike stays apart.
func fitting(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	tail := "-" + brief(name, 8)
	return strings.TrimRight(name[:validation.LabelValueMaxLength-len(tail)], "-.") + tail
}

// brief is a hash of a text of which some bytes are kept.
func brief(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}

// byReplicas divides a copy by the replicas that its clusters are to have.
func byReplicas(workload Object) *manifold.Division {
	numbers := map[string]int32{}
	for cluster, share := range workload.Clusters {
		if share.Replicas != nil {
			numbers[cluster] = *share.Replicas
		}
	}
	return byNumbers(workload, numbers)
}

// byNumbers divides a workload so that each cluster has its number of the sum of all.
func byNumbers(workload Object, numbers map[string]int32) *manifold.Division {
	weights := maps.Clone(numbers)
	maps.DeleteFunc(weights, func(_ string, n int32) bool { return n <= 0 })
	if len(weights) == 0 { // there is nothing to divide, and where it belongs all the same
		for cluster := range workload.Clusters {
			weights[cluster] = 1
		}
	}
	return &manifold.Division{Type: manifold.Divide, By: manifold.ByWeights, Weights: weights}
}

// weights are those of the clusters of the primary, nil if each of them gets the whole number. The clusters of a target share its weight. One that was given
// none, while others have got theirs by the release that is on its way, counts as much as these do on average: it is not to run empty meanwhile.
func (p *policies) weights() map[string]int32 {
	parts := p.set[delivery.Primary].Clusters
	sharing, weights, sum := map[string]int32{}, map[string]int32{}, int32(0)
	for cluster, part := range parts {
		sharing[part.Target]++
		if part.Weight != nil {
			weights[cluster] = *part.Weight
			sum += *part.Weight
		}
	}
	if len(weights) == 0 {
		return nil
	}
	out := map[string]int32{}
	for cluster, part := range parts {
		const fine = 100 // so that a percent can be divided
		weight, has := weights[cluster]
		if !has {
			weight = max(1, sum/int32(len(weights)))
		}
		out[cluster] = weight * fine / sharing[part.Target]
	}
	return out
}

// nowhere selects no cluster.
var nowhere = manifold.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
	{Key: v1alpha1.LabelPlacement, Operator: metav1.LabelSelectorOpExists}, {Key: v1alpha1.LabelPlacement, Operator: metav1.LabelSelectorOpDoesNotExist},
}}}

// policy is one that workloads follow which name it in a label. Those of the application are pinned, so it chooses no clusters for them. Whoever else writes
// that label gets none by it: a policy of the namespace wins over those by which admins keep the namespace off clusters.
func (app Application) policy(name, variant string, division *manifold.Division) *manifold.PlacementPolicy {
	return &manifold.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: app.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{app.Owner()},
			Labels:      map[string]string{v1alpha1.LabelApplication: app.Name},
			Annotations: map[string]string{v1alpha1.AnnotationVariant: variant},
		},
		Spec: manifold.PlacementPolicySpec{
			Priority: policyPriority, Clusters: nowhere.DeepCopy(), Division: division,
			Workloads: &manifold.WorkloadSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelPlacement: name}}},
		},
	}
}
