package moves

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestRecorded(t *testing.T) {
	recorded := func(start, replicas int32) *placement.Share {
		return &placement.Share{Start: start, Replicas: replicas}
	}
	for name, test := range map[string]struct {
		decision, status string
		ordinals         bool
		want             map[string]Member
		rests            bool
	}{
		"nothing of what is placed nowhere": {want: map[string]Member{}, rests: true},
		"a share that runs": {
			decision: `{"north":{"replicas":3}}`, status: `{"north":{"replicas":3}}`, want: map[string]Member{"north": {Recorded: recorded(0, 3)}}, rests: true,
		},
		"a share that is not all there": {
			decision: `{"north":{"replicas":3}}`, status: `{"north":{"replicas":2}}`, want: map[string]Member{"north": {Recorded: recorded(0, 2)}},
		},
		"a share of which nothing was heard": {decision: `{"north":{"replicas":3}}`, want: map[string]Member{"north": {}}},
		"no replicas, which nobody has to tell of": {
			decision: `{"north":{"replicas":0}}`, want: map[string]Member{"north": {}}, rests: true,
		},
		"what is left where it is not to be": {
			decision: `{"north":{"replicas":3}}`, status: `{"north":{"replicas":3},"south":{}}`,
			want: map[string]Member{"north": {Recorded: recorded(0, 3)}, "south": {Recorded: recorded(0, 0)}},
		},
		"a problem": {
			decision: `{"north":{"replicas":3}}`, status: `{"north":{"replicas":3,"problem":"no room"}}`,
			want: map[string]Member{"north": {Failed: true, Recorded: recorded(0, 3)}},
		},
		"silence, in which a share goes on": {
			decision: `{"silent":{"replicas":3}}`, status: `{"silent":{"replicas":3}}`,
			want: map[string]Member{"silent": {Silent: true, Recorded: recorded(0, 3)}}, rests: true,
		},
		"a report that is old, although the cluster answers again": {
			decision: `{"north":{"replicas":3}}`, status: `{"north":{"replicas":3,"stale":true}}`,
			want: map[string]Member{"north": {Silent: true, Recorded: recorded(0, 3)}}, rests: true,
		},
		"a cluster that goes": {
			decision: `{"going":{"replicas":3}}`, status: `{"going":{"replicas":3}}`,
			want: map[string]Member{"going": {Leaving: true, Recorded: recorded(0, 3)}},
		},
		"a cluster that is gone": {
			decision: `{"north":{"replicas":3}}`, status: `{"gone":{"replicas":3},"north":{"replicas":3}}`,
			want: map[string]Member{"gone": {Silent: true, Leaving: true, Forgotten: true, Recorded: recorded(0, 3)}, "north": {Recorded: recorded(0, 3)}},
		},
		"ordinals that run": {
			decision: `{"north":{"replicas":2,"start":1}}`, status: `{"north":{"replicas":2,"start":11}}`, ordinals: true,
			want: map[string]Member{"north": {Recorded: recorded(11, 2)}}, rests: true,
		},
		"as many ordinals, but others": {
			decision: `{"north":{"replicas":2,"start":1}}`, status: `{"north":{"replicas":2,"start":10}}`, ordinals: true,
			want: map[string]Member{"north": {Recorded: recorded(10, 2)}},
		},
		"an empty range, wherever it begins": {
			decision: `{"north":{"replicas":0,"start":3}}`, status: `{"north":{}}`, ordinals: true,
			want: map[string]Member{"north": {Recorded: recorded(0, 0)}}, rests: true,
		},
		"ordinals that are given up": {
			decision: `{"north":{"replicas":2}}`, status: `{"north":{"replicas":2,"start":10},"silent":{"replicas":2,"start":10}}`, ordinals: true,
			want: map[string]Member{"north": {Recorded: recorded(10, 2)}, "silent": {Silent: true, Lost: true, Recorded: recorded(10, 2)}},
		},
		"what is damaged says nothing": {decision: `{"north":{"replicas":3}}`, status: `{"north":`, want: map[string]Member{"north": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := map[string]*v1alpha1.Cluster{
				"north": joined(metav1.ConditionTrue), "south": joined(metav1.ConditionTrue),
				"silent": joined(metav1.ConditionUnknown), "going": joined(metav1.ConditionTrue),
			}
			clusters["going"].DeletionTimestamp = &metav1.Time{}
			fleets := New(Options{
				Leaving: func(cluster string) (bool, string) { return Leaving(clusters[cluster]) },
				Silent:  func(cluster string) bool { return Silent(clusters[cluster]) },
				Lost:    func(_ placement.Workload, cluster string) bool { return cluster == "silent" },
			})
			got := fleets.Recorded(recordedWorkload(test.ordinals, test.decision, test.status))
			if diff := cmp.Diff(test.want, got.Members); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
			if got.Rests() != test.rests {
				t.Errorf("it rests: %t, want %t", got.Rests(), test.rests)
			}
		})
	}
}

// What only a part of a kind's workloads run at a time, or nodes give, is not compared with a share.
func TestRestsWhateverRuns(t *testing.T) {
	for name, division := range map[string]placement.Division{"a DaemonSet": placement.Everywhere, "a Job": placement.Indivisible} {
		f := Fleet{Division: division, Decision: whole("north", 3), Members: map[string]Member{"north": {Recorded: &placement.Share{Replicas: 1}}}}
		if !f.Rests() {
			t.Errorf("%s does not rest where 1 of 3 pods run", name)
		}
		f.Members["south"] = Member{Recorded: &placement.Share{}}
		if f.Rests() {
			t.Errorf("%s rests while a cluster is to let go of it", name)
		}
	}
}

func joined(ready metav1.ConditionStatus) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{Status: v1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: ready}}}}
}

// recordedWorkload is a workload of 3 replicas, the first of which has the ordinal 10 if they have ordinals.
func recordedWorkload(ordinals bool, decision, status string) identity.Workload {
	annotations := map[string]string{v1alpha1.AnnotationPlacement: decision, v1alpha1.AnnotationStatus: status}
	resource, object := identity.Deployments, projection.Object(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)},
	})
	if ordinals {
		resource, object = identity.StatefulSets, &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
			Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3), Ordinals: &appsv1.StatefulSetOrdinals{Start: 10}},
		}
	}
	kind, _ := projection.ForResource(resource)
	return identity.Workload{Kind: kind, Object: object}
}
