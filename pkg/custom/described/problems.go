package described

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/record"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
)

// ReasonInvalid is the reason of the event that a policy describes a custom kind as something that it is not.
const ReasonInvalid = "InvalidCustomWorkload"

// Problems returns by policy what is wrong with the first of its descriptions of which anything is. All are the descriptions of each kind, and
// definitions are those that make the kinds.
func Problems(all map[string][]engine.Description, definitions map[string]*apiextensionsv1.CustomResourceDefinition) map[string]string {
	out := map[string]string{}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		for _, of := range all[kind] {
			if problem := check(of, all[kind][0], definitions[kind]); problem != "" && out[of.Policy] == "" {
				out[of.Policy] = problem
			}
		}
	}
	return out
}

// Teller tells what is wrong with descriptions, once. It is not safe for concurrent use.
type Teller struct {
	Policies listers.ClusterPlacementPolicyLister
	Recorder record.EventRecorder
	// Trouble learns what is wrong with a description of a policy, "" if nothing is. It may be nil.
	Trouble func(policy, problem string)

	last map[string]string
}

// Tell tells of problems that are new, and of those that are gone.
func (t *Teller) Tell(problems map[string]string) {
	last := t.last
	t.last = problems
	for policy := range last {
		if _, still := problems[policy]; !still {
			t.trouble(policy, "")
		}
	}
	for policy, problem := range problems {
		if last[policy] == problem {
			continue
		}
		t.trouble(policy, problem)
		if of, err := t.Policies.Get(policy); err == nil {
			t.Recorder.Event(&corev1.ObjectReference{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterPlacementPolicy", Name: policy, UID: of.UID,
			}, corev1.EventTypeWarning, ReasonInvalid, problem)
		}
	}
}

func (t *Teller) trouble(policy, problem string) {
	if t.Trouble != nil {
		t.Trouble(policy, problem)
	}
}
