package wanted

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// of returns the name of the policy that a workload follows. All workloads of the primary follow one; each of a copy has its own numbers.
func (p *policies) of(workload Object) string {
	name := p.app.Name + "-" + workload.Variant
	division := &manifold.Division{Type: manifold.Duplicate}
	switch weights := p.weights(); {
	case workload.Variant != delivery.Primary:
		sum := sha256.Sum256([]byte(workload.Key.String()))
		name += "-" + hex.EncodeToString(sum[:4])
		division = byReplicas(workload)
	case weights != nil:
		division = &manifold.Division{Type: manifold.Divide, By: manifold.ByWeights, Weights: weights}
	}
	if p.made[name] == nil {
		p.made[name] = p.app.policy(name, workload.Variant, division)
	}
	return name
}

// byReplicas divides a copy by the replicas that its clusters are to have.
func byReplicas(workload Object) *manifold.Division {
	weights := map[string]int32{}
	for cluster, share := range workload.Clusters {
		if share.Replicas != nil && *share.Replicas > 0 {
			weights[cluster] = *share.Replicas
		}
	}
	return &manifold.Division{Type: manifold.Divide, By: manifold.ByWeights, Weights: weights}
}

// weights are those of the clusters of the primary, nil if each of them gets the whole number. The clusters of a target have the same part of its
// weight, and targets without one the same part of what the others leave.
func (p *policies) weights() map[string]int32 {
	if len(p.app.Weights) == 0 {
		return nil
	}
	targets := map[string][]string{}
	parts := p.set[delivery.Primary].Clusters
	for _, cluster := range slices.Sorted(maps.Keys(parts)) {
		targets[parts[cluster].Target] = append(targets[parts[cluster].Target], cluster)
	}
	left, without := int32(100), int32(0)
	for target := range targets {
		if weight, has := p.app.Weights[target]; has {
			left -= weight
		} else {
			without++
		}
	}
	out := map[string]int32{}
	for target, clusters := range targets {
		const fine = 100 // so that a percent can be divided
		weight, has := p.app.Weights[target]
		total := weight * fine
		if !has {
			total = max(0, left) * fine / without
		}
		for _, cluster := range clusters {
			out[cluster] = total / int32(len(clusters))
		}
	}
	return out
}

func (app Application) policy(name, variant string, division *manifold.Division) *manifold.PlacementPolicy {
	return &manifold.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: app.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{app.Owner()},
			Labels:      map[string]string{v1alpha1.LabelApplication: app.Name},
			Annotations: map[string]string{v1alpha1.AnnotationVariant: variant},
		},
		Spec: manifold.PlacementPolicySpec{
			Priority: policyPriority, Division: division,
			Workloads: &manifold.WorkloadSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelPlacement: name}}},
		},
	}
}
