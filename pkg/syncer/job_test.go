package syncer

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var (
	jobResource = batchv1.SchemeGroupVersion.WithResource("jobs")
	jobs, _     = projection.ForResource(jobResource)
	jobKey      = identity.Key{Resource: jobResource, Namespace: "shop", Name: "sums"}
)

// job is one of the logical cluster that is placed on east, in the states that its conditions tell.
func job(conditions ...batchv1.JobConditionType) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: objectMeta("sums")}
	j.Annotations = map[string]string{v1alpha1.AnnotationPlacement: toEast}
	for _, of := range conditions {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: of, Status: corev1.ConditionTrue})
	}
	return j
}

// jobBelow is what a cluster holds of a Job.
func jobBelow(t *testing.T, above *batchv1.Job) *batchv1.Job {
	t.Helper()
	out, err := jobs.Project(above, projection.Part{}, projection.Target{LogicalCluster: logicalCluster, Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	out.SetUID("below")
	return out.(*batchv1.Job)
}

func TestWhatAJobWantsOfItsCluster(t *testing.T) {
	running, failing, done := job(), job(batchv1.JobFailureTarget), job(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	for name, test := range map[string]struct {
		above   *batchv1.Job
		there   bool
		leaving bool
		want    bool
	}{
		"one that is new is made":                            {above: running, want: true},
		"one that somebody deletes below is made again":      {above: running, want: true},
		"one that runs stays in a cluster that goes":         {above: running, there: true, leaving: true, want: true},
		"one that fails as a whole is not begun any more":    {above: failing},
		"what is left of it is to end":                       {above: failing, there: true, want: true},
		"one that has finished is not begun again":           {above: done},
		"it stays to be looked at":                           {above: done, there: true, want: true},
		"but does not hold up the cluster that is to be let": {above: done, there: true, leaving: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.above)
			s := attach(t, u, "east")
			s.Leaving = func(string) (bool, string) { return test.leaving, "" }
			var live projection.Object
			if test.there {
				live = jobBelow(t, test.above)
			}
			desired, _, err := s.desired(jobs, test.above, live)
			if err != nil || (desired != nil) != test.want {
				t.Errorf("desired %v, %v, want one: %t", desired, err, test.want)
			}
		})
	}
}

func TestFinishedJobsAreNotWhatAClusterWaitsFor(t *testing.T) {
	for name, test := range map[string]struct {
		above *batchv1.Job
		want  []string
	}{
		"one that runs":         {job(), []string{"Job shop/sums"}},
		"one that is failing":   {job(batchv1.JobFailureTarget), []string{"Job shop/sums"}},
		"one that has finished": {job(batchv1.JobComplete), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newUpstream(t, test.above).Placed("east"); !slices.Equal(got, test.want) {
				t.Errorf("Placed = %q, want %q", got, test.want)
			}
		})
	}
}

func TestStatusesOfAJobThatChangeWhatIsProjected(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *batchv1.Job
		want          bool
	}{
		"pods come and go": {
			before: job(), after: func() *batchv1.Job { j := job(); j.Status.Active = 3; return j }(),
		},
		"it fails as a whole": {before: job(), after: job(batchv1.JobFailureTarget), want: true},
		"it has failed":       {before: job(batchv1.JobFailureTarget), after: job(batchv1.JobFailureTarget, batchv1.JobFailed)},
	} {
		t.Run(name, func(t *testing.T) {
			test.after.ResourceVersion = "2"
			for _, version := range []*batchv1.Job{test.before, test.after} {
				version.Annotations = map[string]string{v1alpha1.AnnotationPlacement: toEast}
			}
			u := newUpstream(t)
			s := attach(t, u, "east")
			u.router.Objects(jobs).OnUpdate(test.before, test.after)
			if got := slices.Contains(s.enqueued(), identity.KeyOf(jobs, test.after).String()); got != test.want {
				t.Errorf("it is looked at: %t, want %t", got, test.want)
			}
		})
	}
}

func TestATemplateThatThawsIsLookedAtAgain(t *testing.T) {
	s := attach(t, newUpstream(t), "east")
	handler := s.handlers.OfObjects(jobs)
	suspended := jobBelow(t, job())
	suspended.Spec.Suspend, suspended.Status.Active, suspended.Generation, suspended.ResourceVersion = ptr.To(true), 1, 2, "1"
	ended := suspended.DeepCopy()
	ended.Status.Active, ended.ResourceVersion = 0, "2"
	handler.OnUpdate(suspended, ended)
	if got := s.enqueued(); !slices.Equal(got, []string{jobKey.String()}) {
		t.Errorf("looked at %q, want the Job", got)
	}
	again := ended.DeepCopy()
	again.ResourceVersion = "3"
	handler.OnUpdate(ended, again)
	if got := s.enqueued(); len(got) > 0 {
		t.Errorf("looked at %q again", got)
	}
}
