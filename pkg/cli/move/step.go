package move

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// step is how far a move is.
type step struct {
	text string
	done bool
}

// stepOf reads decision and breakdown: a workload has moved when it is placed on nothing but the chosen clusters, every share is available
// there, and no other cluster has a replica. Everywhere tells that the nodes say how many replicas a share has.
func stepOf(annotations map[string]string, to string, everywhere bool) (step, error) {
	pin, decision, err := chosenBy(annotations, to)
	if err != nil {
		return step{}, err
	}
	breakdown, err := summary.ParseBreakdown(annotations[manifoldv1alpha1.AnnotationStatus])
	if err != nil {
		return step{}, err
	}
	chosen := func(cluster string) bool { return pin.All || slices.Contains(pin.Names, cluster) }
	out := step{done: len(decision) > 0}
	names := map[string]bool{}
	for cluster := range decision {
		names[cluster] = true
	}
	for cluster := range breakdown {
		names[cluster] = true
	}
	var parts []string
	for _, cluster := range slices.Sorted(maps.Keys(names)) {
		share, decided := decision[cluster]
		has := breakdown[cluster]
		switch {
		case decided && chosen(cluster):
			out.done = out.done && has.Available >= share.Replicas && (everywhere || has.Replicas <= share.Replicas)
			parts = append(parts, fmt.Sprintf("%d of %d available in %s", has.Available, share.Replicas, cluster))
		case decided:
			out.done = false
			parts = append(parts, fmt.Sprintf("%d stay in %s until another cluster can take them", share.Replicas, cluster))
		default:
			out.done = false
			parts = append(parts, fmt.Sprintf("%d to leave %s", has.Replicas, cluster))
		}
	}
	out.text = strings.Join(parts, ", ")
	if len(decision) == 0 {
		out.text = "it is placed nowhere"
	}
	return out, nil
}

// chosenBy reads the pin, which must still be the one that the move is for, and the decision.
func chosenBy(annotations map[string]string, to string) (pin manifoldv1alpha1.Pin, decision placement.Decision, err error) {
	if pin, err = manifoldv1alpha1.ParsePin(to); err != nil {
		return pin, nil, err
	}
	if now := annotations[manifoldv1alpha1.AnnotationClusters]; now != to {
		return pin, nil, fmt.Errorf("somebody has chosen other clusters meanwhile: %q", now)
	}
	decision, err = placement.ParseDecision(annotations[manifoldv1alpha1.AnnotationPlacement])
	return pin, decision, err
}

// customStepOf is stepOf for an object of a custom kind, which has moved when all chosen clusters of the decision have a copy, and no other
// cluster has.
func customStepOf(annotations map[string]string, to string) (step, error) {
	pin, decision, err := chosenBy(annotations, to)
	if err != nil {
		return step{}, err
	}
	breakdown, err := summary.ParseCustomBreakdown(annotations[manifoldv1alpha1.AnnotationStatus])
	if err != nil {
		return step{}, err
	}
	if len(decision) == 0 {
		return step{text: "it is placed nowhere"}, nil
	}
	out := step{done: true}
	names := append(decision.Clusters(), breakdown.Clusters()...)
	slices.Sort(names)
	var parts []string
	for _, cluster := range slices.Compact(names) {
		_, decided := decision[cluster]
		has := breakdown[cluster]
		switch {
		case !decided:
			out.done = false
			parts = append(parts, "to leave "+cluster)
		case !pin.All && !slices.Contains(pin.Names, cluster):
			out.done = false
			parts = append(parts, fmt.Sprintf("stays in %s until another cluster can have it", cluster))
		case has.Generation > 0:
			parts = append(parts, "is in "+cluster)
		default:
			out.done = false
			parts = append(parts, "to come to "+cluster)
		}
	}
	out.text = strings.Join(parts, ", ")
	return out, nil
}
