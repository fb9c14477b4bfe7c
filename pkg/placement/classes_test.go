package placement

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// offering makes the PriorityClasses known that the cluster has.
func (b *clusterBuilder) offering(priorities ...string) *clusterBuilder {
	b.Classes = &v1alpha1.ClusterClasses{PriorityClasses: priorities}
	return b
}

func (b *clusterBuilder) letsIn(upTo int32) *clusterBuilder {
	b.Allows.PriorityClassesUpTo = &upTo
	return b
}

// classed has the pods name a PriorityClass.
func (b *requestBuilder) classed(priority string) *requestBuilder {
	b.Workload.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{PriorityClassName: priority}}
	return b
}

func (b *requestBuilder) bringing(value int32) *requestBuilder {
	b.Workload.Brings = &value
	return b
}

func TestPlaceByClasses(t *testing.T) {
	sandboxed := deployment(2).classed("")
	runtimeClass := "gvisor"
	sandboxed.Workload.Template.Spec.RuntimeClassName = &runtimeClass
	hardened := cluster("west", 1).offering()
	hardened.Classes.RuntimeClasses = []string{"gvisor"}
	claims := deployment(1)
	claims.Workload.StorageClass = "fast"
	fast := cluster("west", 1).offering()
	fast.Classes.StorageClasses = []v1alpha1.ClusterStorageClass{{Name: "fast"}}
	testPlace(t, map[string]placeCase{
		"pods go where their PriorityClass is, not where there is more room": {
			clusters: []*clusterBuilder{cluster("east", 10).offering("low"), cluster("west", 4).offering("high", "low")},
			request:  deployment(2).classed("high"), want: shares("west", 2),
		},
		"what is not known of a cluster is no reason": {
			clusters: []*clusterBuilder{cluster("east", 10), cluster("west", 4).offering("high")},
			request:  deployment(2).classed("high"), want: shares("east", 2),
		},
		"nobody has it": {
			clusters: []*clusterBuilder{cluster("east", 10).offering(), cluster("west", 4).offering("low")},
			request:  deployment(2).classed("high"), unplaced: 2, message: "0/2 clusters can run it: 2 lack PriorityClass high",
		},
		"a RuntimeClass counts as well": {
			clusters: []*clusterBuilder{cluster("east", 10).offering(), hardened}, request: sandboxed, want: shares("west", 2),
		},
		"so does the StorageClass of a claim": {
			clusters: []*clusterBuilder{cluster("east", 10).offering(), fast}, request: claims, want: shares("west", 1),
		},
		"one of the application's own goes along where that is allowed": {
			clusters: []*clusterBuilder{cluster("east", 10).offering(), cluster("west", 4).offering().letsIn(1000)},
			request:  deployment(2).classed("high").bringing(1000), want: shares("west", 2),
		},
		"but not above the bound": {
			clusters: []*clusterBuilder{cluster("east", 10).offering(), cluster("west", 4).offering().letsIn(999)},
			request:  deployment(2).classed("high").bringing(1000), unplaced: 2, message: "0/2 clusters can run it: 2 lack PriorityClass high",
		},
		"what runs stays where its class is gone": {
			clusters: []*clusterBuilder{cluster("east", 10).offering(), cluster("west", 10).offering("high")},
			request:  deployment(2).classed("high").on(shares("east", 2)), want: shares("east", 2),
		},
		"what cannot be made there any more moves": {
			clusters: []*clusterBuilder{cluster("east", 10).offering(), cluster("west", 10).offering("high")},
			request: func() *requestBuilder {
				b := deployment(2).classed("high").on(shares("east", 2))
				b.Stuck = map[string]Stuck{"east": {Replicas: 2, Idle: true, Refused: true, Says: "it has no PriorityClass high"}}
				return b
			}(),
			want: shares("west", 2),
		},
	})
}

func TestWithoutClass(t *testing.T) {
	since := metav1.Now().Time
	w := deployment(3).classed("high").Workload
	w.Refused = map[string]Refusal{"west": {Pods: 1, Since: since, Says: "exceeded quota"}}
	s := snapshot(cluster("east", 1).offering(), cluster("west", 1).offering("high"), cluster("north", 1))
	current := shares("east", 2, "west", 1, "north", 1, "gone", 1)
	want := map[string]Refusal{
		"east": {Pods: 2, Says: "it has no PriorityClass high"},
		"west": {Pods: 1, Since: since, Says: "exceeded quota"},
	}
	if got := s.WithoutClass(&w, current); !reflect.DeepEqual(got, want) {
		t.Errorf("refused %v, want %v", got, want)
	}
	if len(w.Refused) != 1 {
		t.Errorf("the workload was changed: %v", w.Refused)
	}
	w.Template = nil
	if got := s.WithoutClass(&w, current); !reflect.DeepEqual(got, w.Refused) {
		t.Errorf("without a class %v are refused, want %v", got, w.Refused)
	}
}

func TestStorageClassOf(t *testing.T) {
	classes := &v1alpha1.ClusterClasses{StorageClasses: []v1alpha1.ClusterStorageClass{
		{Name: "fast", WaitForFirstConsumer: true}, {Name: "slow", Default: true},
	}}
	none := ""
	fast, absent := "fast", "absent"
	for name, test := range map[string]struct {
		named *string
		beta  string
		want  string
	}{
		"the one that is named":             {named: &fast, want: "fast"},
		"the default if none is":            {want: "slow"},
		"none, if none is to be":            {named: &none},
		"none, if there is none":            {named: &absent},
		"one that the old annotation names": {beta: "fast", want: "fast"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: test.named}}
			if test.beta != "" {
				claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: test.beta}
			}
			got := ""
			if class := StorageClassOf(claim, classes); class != nil {
				got = class.Name
			}
			if got != test.want {
				t.Errorf("class %q, want %q", got, test.want)
			}
		})
	}
}
