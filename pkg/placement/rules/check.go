package rules

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/words"
)

func checkName(f *Field, k *Candidate) bool {
	if _, named := f.names[k.Name]; named {
		return false
	}
	if f.pinned {
		return k.refuse(words.Reason{Code: words.ReasonNotPinned})
	}
	return k.refuse(words.Reason{Code: words.ReasonNotSelected, Subject: f.Policy})
}

func checkLabels(f *Field, k *Candidate) bool {
	if f.selector.Matches(labels.Set(k.Labels)) {
		return false
	}
	return k.refuse(words.Reason{Code: words.ReasonNotSelected, Subject: f.Policy})
}

// checkGroup finds out which group the cluster belongs to.
func checkGroup(f *Field, k *Candidate) bool {
	group, found := f.groupOf(k.Cluster)
	k.Group = group
	if !found {
		return k.refuse(words.Reason{Code: words.ReasonNoGroup, Subject: f.Policy})
	}
	return false
}

// checkDomain keeps replicas away from clusters of which nobody knows where they are, when that matters.
func checkDomain(f *Field, k *Candidate) bool {
	for i := range f.Spread {
		if _, has := DomainIn(k.Cluster, f.Spread[i].TopologyKey); !has && Strict(&f.Spread[i]) {
			return k.refuse(words.Reason{Code: words.ReasonNoDomain, Subject: f.Spread[i].TopologyKey + ", by which " + f.Policy + " spreads"})
		}
	}
	return false
}

// checkAffinity keeps new replicas from where affinity is not met, or antiAffinity is. What runs stays: workloads that follow
// each other would never come to rest.
func checkAffinity(f *Field, k *Candidate) bool {
	for i := range f.affinities {
		term := &f.affinities[i]
		switch here := term.clusters[k.Name]; {
		case term.weight != 0:
		case term.apart && here:
			return k.refuse(words.Reason{Code: words.ReasonAntiAffinity, Subject: term.text})
		case !term.apart && !here && !term.anywhere:
			return k.refuse(words.Reason{Code: words.ReasonAffinity, Subject: term.text})
		}
	}
	return false
}

// checkKeepers keeps new replicas from where others run that are to be kept apart from them. What runs stays, as with the workload's own
// rule, which says it already of those that both want to be apart.
func checkKeepers(f *Field, k *Candidate) bool {
	name, here := f.keepers[k.Name]
	if !here || slices.ContainsFunc(k.Reasons, func(r words.Reason) bool { return r.Code == words.ReasonAntiAffinity }) {
		return false
	}
	return k.refuse(words.Reason{Code: words.ReasonAntiAffinityOfOthers, Subject: name})
}

// checkClass keeps workloads away from clusters in which no pod of theirs could be made.
func checkClass(f *Field, k *Candidate) bool {
	lacking, is := lacks(k.Cluster, &f.Request.Workload)
	return is && k.refuse(words.Reason{Code: words.ReasonNoClass, Subject: lacking.String()})
}

func checkTaints(f *Field, k *Candidate) bool {
	taint := Untolerated(f.Request.Policy, k.Cluster)
	if taint == nil {
		return false
	}
	return k.refuse(words.Reason{Code: words.ReasonTainted, Subject: nameOf(taint)})
}

// checkHandMade keeps what uses volumes that were made by hand away from clusters to which these cannot go.
func checkHandMade(f *Field, k *Candidate) bool {
	for _, volume := range f.Request.Workload.HandMade {
		switch {
		case k.Runs && volume.Status.Phase == corev1.VolumeBound: // it is there
		case !k.Allows.Volumes:
			return k.refuse(words.Reason{Code: words.ReasonNoHandMade, Subject: volume.Name})
		case !mayReach(k.Cluster, volume):
			return k.refuse(words.Reason{Code: words.ReasonOutOfReach, Subject: volume.Name})
		}
	}
	return false
}

// checkWeight is about static weights alone: a cluster without one gets nothing.
func checkWeight(f *Field, k *Candidate) bool {
	if f.WeightOf(k.Name) > 0 {
		return false
	}
	return k.refuse(words.Reason{Code: words.ReasonNoWeight, Subject: f.Request.Policy.String()})
}

func checkEvict(f *Field, k *Candidate) bool {
	if f.Request.Lost[k.Name] {
		return k.refuse(words.Reason{Code: words.ReasonLost})
	}
	return f.Request.Evict[k.Name] && k.refuse(words.Reason{Code: words.ReasonEvicted, Subject: evictingTaint(f.Request.Policy, k.Cluster)})
}

// checkPolicy keeps everything as it is under a policy that cannot be followed.
func checkPolicy(f *Field, k *Candidate) bool {
	return k.refuse(words.Reason{Code: words.ReasonInvalidPolicy, Subject: f.Request.Policy.String() + ": " + f.problem})
}

func checkReady(_ *Field, k *Candidate) bool {
	switch k.Ready {
	case metav1.ConditionTrue:
		return false
	case metav1.ConditionFalse:
		return k.refuse(words.Reason{Code: words.ReasonNotReady, Detail: k.ReadyMessage})
	default:
		return k.refuse(words.Reason{Code: words.ReasonUnreachable, Detail: k.ReadyMessage})
	}
}

func checkCordon(_ *Field, k *Candidate) bool {
	return k.Unschedulable && k.refuse(words.Reason{Code: words.ReasonCordoned})
}

func checkKind(f *Field, k *Candidate) bool {
	return !slices.ContainsFunc(f.kinds, k.Serves) && k.refuse(words.Reason{Code: words.ReasonNotServed, Subject: f.kind})
}

// checkVolume keeps pods where their data is: a volume does not follow to another cluster.
func checkVolume(f *Field, k *Candidate) bool {
	return !f.Request.Workload.VolumesIn[k.Name] && k.refuse(words.Reason{Code: words.ReasonNoVolume})
}

// checkNodes tells a cluster with nothing at all from one that lacks this or that.
func checkNodes(f *Field, k *Candidate) bool {
	return f.nodeless(k) && f.wantsMore(k) && k.refuse(words.Reason{Code: words.ReasonNoNodes})
}

// locations are the labels of nodes that are known of a cluster where all of its nodes share them, by what they were called before.
var locations = map[string]string{
	corev1.LabelTopologyZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone,
	corev1.LabelTopologyRegion: corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// mayReach reports whether a node of the cluster can reach a volume, as far as is known: by zone and region, if those of the cluster are known.
func mayReach(c *placement.Cluster, volume *corev1.PersistentVolume) bool {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return true
	}
	return slices.ContainsFunc(volume.Spec.NodeAffinity.Required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			is := location(c, locations[r.Key])
			if is == "" {
				return false
			}
			switch r.Operator {
			case corev1.NodeSelectorOpIn:
				return !slices.Contains(r.Values, is)
			case corev1.NodeSelectorOpNotIn:
				return slices.Contains(r.Values, is)
			case corev1.NodeSelectorOpDoesNotExist:
				return true
			}
			return false
		})
	})
}

// location is what a cluster has for the label of a zone or a region, "" if that is not known.
func location(c *placement.Cluster, key string) string {
	if key == "" {
		return ""
	}
	return cmp.Or(c.Topology[key], c.Labels[key])
}
