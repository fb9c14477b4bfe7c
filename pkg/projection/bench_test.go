package projection

import (
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func BenchmarkProject(b *testing.B) {
	in := richDeployment()
	kind := kindOf(b, in)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := kind.Project(in, Part{Share: placement.Share{Replicas: 3}}, east); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlan is the usual case: an event about an object that is as it should be.
func BenchmarkPlan(b *testing.B) {
	in := richDeployment()
	kind := kindOf(b, in)
	desired, err := kind.Project(in, Part{Share: placement.Share{Replicas: 3}}, east)
	if err != nil {
		b.Fatal(err)
	}
	live := desired.DeepCopyObject().(Object)
	b.ReportAllocs()
	for b.Loop() {
		if action := kind.Plan(desired, live); action.Step != Nothing {
			b.Fatal(action)
		}
	}
}
