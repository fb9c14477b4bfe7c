package summary

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// daemonsBehind returns the clusters that one is to update its pods after, so that no more pods of the whole are out of service than its
// maxUnavailable says: each cluster takes that for its own nodes. Clusters whose pods do not serve anyway come first, then it goes by name,
// and as many at a time as may have their pods replaced.
//
// A cluster that nobody hears of is as it was heard of last. As on one cluster, where a node is lost, that may hold up a rollout. One that
// has not been heard of since a start holds up those that wait already.
func daemonsBehind(in *appsv1.DaemonSet, lives map[string]*appsv1.DaemonSet, cluster string) []string {
	live := lives[cluster]
	if len(lives) < 2 || live == nil || !replacesPods(in) || !daemonsAhead(in, live) {
		return nil
	}
	most := unavailableOf(in, daemonsWanted(lives))
	var busy int32
	var behind []string
	for _, other := range daemonOrder(lives) {
		if other == cluster {
			break
		}
		if has := lives[other]; has == nil && keepsPods(live) || has != nil && !daemonsDone(in, has) {
			behind = append(behind, other)
			busy += unavailableOf(in, wanted(has))
		}
	}
	if busy == 0 || busy+unavailableOf(in, wanted(live)) <= most {
		return nil
	}
	return behind
}

// replacesPods reports whether a rollout takes pods out of service before there are others.
func replacesPods(in *appsv1.DaemonSet) bool {
	rolling := in.Spec.UpdateStrategy.RollingUpdate
	if in.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return false
	}
	return rolling == nil || rolling.MaxSurge == nil || *rolling.MaxSurge == intstr.FromInt32(0) || *rolling.MaxSurge == intstr.FromString("0%")
}

// unavailableOf is how many of so many pods may be out of service at a time, as the stock controller reads it.
func unavailableOf(in *appsv1.DaemonSet, desired int32) int32 {
	one := intstr.FromInt32(1)
	rolling := in.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil {
		return 1
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxUnavailable, one), int(desired), true)
	if err != nil {
		return 1 // validation refuses it
	}
	return max(1, min(int32(most), desired))
}

func daemonsWanted(lives map[string]*appsv1.DaemonSet) int32 {
	var sum int32
	for _, live := range lives {
		sum += wanted(live)
	}
	return sum
}

// wanted is how many pods a cluster is to have, 0 for one that is not known.
func wanted(live *appsv1.DaemonSet) int32 {
	if live == nil {
		return 0
	}
	return live.Status.DesiredNumberScheduled
}

// keepsPods reports whether a projection was told to wait with its pods.
func keepsPods(live *appsv1.DaemonSet) bool {
	return live.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
}

// daemonOrder is that in which clusters update their pods.
func daemonOrder(lives map[string]*appsv1.DaemonSet) []string {
	serves := func(cluster string) int {
		if live := lives[cluster]; live == nil || live.Status.NumberAvailable < wanted(live) {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(lives), func(a, b string) int {
		return cmp.Or(cmp.Compare(serves(a), serves(b)), cmp.Compare(a, b))
	})
}

// daemonsAhead reports whether a cluster has pods to update.
func daemonsAhead(in, live *appsv1.DaemonSet) bool {
	s := live.Status
	switch {
	case live.Annotations[v1alpha1.AnnotationTemplate] != projection.TemplateHash(&in.Spec.Template):
		return true
	case s.ObservedGeneration < live.Generation:
		return keepsPods(live)
	}
	return s.UpdatedNumberScheduled < s.DesiredNumberScheduled
}

// daemonsDone reports whether a cluster has updated its pods and all of them serve.
func daemonsDone(in, live *appsv1.DaemonSet) bool {
	s := live.Status
	return live.Annotations[v1alpha1.AnnotationTemplate] == projection.TemplateHash(&in.Spec.Template) &&
		s.ObservedGeneration >= live.Generation && s.UpdatedNumberScheduled >= s.DesiredNumberScheduled && s.NumberAvailable >= s.DesiredNumberScheduled
}
