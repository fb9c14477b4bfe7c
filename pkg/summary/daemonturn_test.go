package summary

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// rollingAgents is a DaemonSet of which so many pods may be out of service.
func rollingAgents(most string, change ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	in := agents(2)
	unavailable := intstr.Parse(most)
	in.Spec.Template = templateOf("agent:2")
	in.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{
		Type: appsv1.RollingUpdateDaemonSetStrategyType, RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable},
	}
	for _, c := range change {
		c(in)
	}
	return in
}

func TestClustersUpdateAsManyDaemonsAsTheWholeMayMiss(t *testing.T) {
	one := rollingAgents("1")
	// has is what a cluster has on so many nodes.
	has := func(desired, updated, available int32, change ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
		out := onNodes(2, desired, updated, available).Live.(*appsv1.DaemonSet)
		out.Generation = 17
		out.Annotations = map[string]string{v1alpha1.AnnotationTemplate: projection.TemplateHash(&one.Spec.Template)}
		out.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
		for _, c := range change {
			c(out)
		}
		return out
	}
	old := func(live *appsv1.DaemonSet) { live.Annotations = nil }
	waiting := func(live *appsv1.DaemonSet) { live.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType }
	unseen := func(live *appsv1.DaemonSet) { live.Generation++ }
	surges := rollingAgents("0", func(in *appsv1.DaemonSet) {
		surge := intstr.FromInt32(1)
		in.Spec.UpdateStrategy.RollingUpdate.MaxSurge = &surge
	})
	onDelete := rollingAgents("1", func(in *appsv1.DaemonSet) { in.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType })
	for name, test := range map[string]struct {
		in              *appsv1.DaemonSet
		east, mid, west *appsv1.DaemonSet // mid is not there if it is nil
		midUnknown      bool
		want            string // of east, mid and west, those that wait and for whom
	}{
		"one after another": {
			in: one, east: has(2, 2, 2, old), mid: has(2, 2, 2, old), west: has(2, 2, 2, old), want: "mid: east; west: east mid",
		},
		"the next when one is done": {
			in: one, east: has(2, 2, 2), mid: has(2, 2, 2, old), west: has(2, 0, 2, waiting), want: "west: mid",
		},
		"not when its pods do not serve": {
			in: one, east: has(2, 2, 1), mid: has(2, 0, 2, waiting), west: has(2, 0, 2, waiting), want: "mid: east; west: east mid",
		},
		"nor before that is known": {
			in: one, east: has(2, 2, 2, unseen), mid: has(2, 0, 2, waiting, unseen), west: has(2, 2, 2), want: "mid: east",
		},
		"two at a time if two may be missed": {
			in: rollingAgents("2"), east: has(1, 1, 1, old), mid: has(1, 1, 1, old), west: has(1, 1, 1, old), want: "west: east mid",
		},
		"as many as a part of the whole is": {
			in: rollingAgents("50%"), east: has(4, 4, 4, old), mid: has(4, 4, 4, old), west: has(4, 4, 4, old), want: "",
		},
		"no more than that when it is rounded": {
			in: rollingAgents("10%"), east: has(3, 3, 3, old), mid: has(3, 3, 3, old), west: has(3, 3, 3, old), want: "mid: east; west: east mid",
		},
		"first where they do not serve anyway": {
			in: one, east: has(2, 2, 2, old), mid: has(2, 2, 2, old), west: has(2, 1, 1, old), want: "east: west; mid: east west",
		},
		"who has nothing to update does not wait": {
			in: one, east: has(2, 2, 1), mid: has(2, 2, 2), west: has(2, 2, 1), want: "",
		},
		"a cluster that is not known holds up who waits": {
			in: one, east: has(2, 2, 2), midUnknown: true, west: has(2, 0, 2, waiting), want: "west: mid",
		},
		"and nobody else": {
			in: one, east: has(2, 2, 2), midUnknown: true, west: has(2, 2, 2, old), want: "",
		},
		"new pods beside the old ones are not missed":                          {in: surges, east: has(2, 2, 2, old), mid: has(2, 2, 2, old), west: has(2, 2, 2, old), want: ""},
		"what users delete is not waited for":                                  {in: onDelete, east: has(2, 2, 2, old), mid: has(2, 2, 2, old), west: has(2, 2, 2, old), want: ""},
		"one that is made does not wait, nor is it in the way of who does not": {in: one, east: has(0, 0, 0), mid: has(0, 0, 0), west: has(0, 0, 0), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			lives := map[string]Object{"east": test.east, "west": test.west}
			if test.mid != nil {
				lives["mid"] = test.mid
			}
			if test.midUnknown {
				lives["mid"] = nil
			}
			var got []string
			for _, cluster := range []string{"east", "mid", "west"} {
				behind := daemonSetKind.build().Behind(test.in, lives, cluster)
				slices.Sort(behind)
				if len(behind) > 0 {
					got = append(got, cluster+": "+strings.Join(behind, " "))
				}
			}
			if strings.Join(got, "; ") != test.want {
				t.Errorf("waiting are %q, want %q", strings.Join(got, "; "), test.want)
			}
		})
	}
}
