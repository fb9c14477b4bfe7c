package rules

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestWithoutClass(t *testing.T) {
	since := metav1.Now().Time
	w := build.Deployment(3).Classed("high").Workload
	w.Refused = map[string]placement.Refusal{"west": {Pods: 1, Since: since, Says: "exceeded quota"}}
	s := build.Snapshot(build.Cluster("east", 1).Offering(), build.Cluster("west", 1).Offering("high"), build.Cluster("north", 1))
	current := build.Shares("east", 2, "west", 1, "north", 1, "gone", 1)
	want := map[string]placement.Refusal{
		"east": {Pods: 2, Says: "it has no PriorityClass high"},
		"west": {Pods: 1, Since: since, Says: "exceeded quota"},
	}
	if got := WithoutClass(s, &w, current); !reflect.DeepEqual(got, want) {
		t.Errorf("refused %v, want %v", got, want)
	}
	if len(w.Refused) != 1 {
		t.Errorf("the workload was changed: %v", w.Refused)
	}
	w.Template = nil
	if got := WithoutClass(s, &w, current); !reflect.DeepEqual(got, w.Refused) {
		t.Errorf("without a class %v are refused, want %v", got, w.Refused)
	}
}
