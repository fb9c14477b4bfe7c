package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func release(spec v1alpha1.ReleaseSpec) *v1alpha1.Release {
	if spec.TriggeredBy.Cause == "" {
		spec.TriggeredBy.Cause = v1alpha1.CauseCommand
	}
	return &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x2f", ResourceVersion: "1"}, Spec: spec}
}

func TestValidateRelease(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1alpha1.ReleaseSpec
		want []string
	}{
		"a revision is enough": {spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v7"}},
		"some targets by a strategy": {spec: v1alpha1.ReleaseSpec{
			Application: "web", Revision: "web-v7", Strategy: v1alpha1.StrategyPipeline, Targets: []string{"east", "west"}, RollbackOf: "web-abc",
		}},
		"nothing at all": {want: []string{"spec.application: Required value", "spec.revision: Required value"}},
		"a revision of another application": {
			spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "shop-v7"}, want: []string{`spec.revision: Invalid value: "shop-v7": must be the name of a revision`},
		},
		"a chunk": {spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v7-1"}, want: []string{`spec.revision: Invalid value: "web-v7-1"`}},
		"a strategy that there isn't": {
			spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v7", Strategy: "BlueGreen"}, want: []string{`spec.strategy: Unsupported value: "BlueGreen"`},
		},
		"targets that cannot be, twice": {
			spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v7", Targets: []string{"a", "A", "a"}},
			want: []string{`spec.targets[2]: Duplicate value: "a"`, `spec.targets[1]: Invalid value: "A"`},
		},
		"a rollback of itself": {
			spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v7", RollbackOf: "web-x2f"}, want: []string{`spec.rollbackOf: Invalid value: "web-x2f": must be another`},
		},
		"a cause that there isn't": {
			spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v7", TriggeredBy: v1alpha1.ReleaseTrigger{Cause: "Mood", Message: strings.Repeat("a", 4097)}},
			want: []string{`spec.triggeredBy.cause: Unsupported value: "Mood"`, "spec.triggeredBy.message: Too long"},
		},
	} {
		t.Run(name, func(t *testing.T) { check(t, ValidateRelease(release(test.spec)), test.want) })
	}
}

func TestReleasesNeverChange(t *testing.T) {
	old := release(v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v7"})
	check(t, ValidateReleaseUpdate(old.DeepCopy(), old), nil)
	changed := old.DeepCopy()
	changed.Spec.Revision = "web-v8"
	check(t, ValidateReleaseUpdate(changed, old), []string{"spec: Forbidden: a release never changes"})
}

func TestStatusOfReleaseMakesSense(t *testing.T) {
	r := release(v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v7"})
	r.Status = v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseRunning, Stages: []v1alpha1.StageStatus{{ID: "a", Phase: v1alpha1.StageRunning}, {ID: "b"}}}
	check(t, ValidateReleaseStatusUpdate(r, r), nil)
	r.Status = v1alpha1.ReleaseStatus{Phase: "Asleep", Stages: []v1alpha1.StageStatus{{ID: "a"}, {ID: "a", Phase: "Odd"}}}
	check(t, ValidateReleaseStatusUpdate(r, r), []string{
		`status.phase: Unsupported value: "Asleep"`, `status.stages[1].id: Duplicate value: "a"`, `status.stages[1].phase: Unsupported value: "Odd"`,
	})
}

func TestValidateRequest(t *testing.T) {
	check(t, ValidateRequest("fine", []string{"east"}), nil)
	check(t, ValidateRequest(strings.Repeat("a", 4097), []string{"A"}), []string{"comment: Too long", `targets[0]: Invalid value: "A"`})
}
