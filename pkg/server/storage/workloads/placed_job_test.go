package workloads

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // strategies convert
	jobstrategy "k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

func placingJobs(p *placer) placedStrategy {
	kind, _ := projection.ForGVK(batchv1.SchemeGroupVersion.WithKind("Job"))
	return placedStrategy{Strategy: jobstrategy.Strategy, reader: reader{kind}, placer: p}
}

// job is one in the internal version, of so many pods at a time.
func job(parallelism int32, edits ...func(*batch.Job)) *batch.Job {
	j := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sums", UID: "uid", Generation: 1, ResourceVersion: "1"}}
	j.Spec.Parallelism, j.Spec.Completions, j.Spec.ManualSelector = &parallelism, ptr.To[int32](9), new(bool)
	for _, edit := range edits {
		edit(j)
	}
	return j
}

func onEastAlready(j *batch.Job) {
	metav1.SetMetaDataAnnotation(&j.ObjectMeta, v1alpha1.AnnotationPlacement, onEast(3))
}

func startedJob(j *batch.Job) { j.Status.StartTime = &metav1.Time{} }
func pinnedJob(j *batch.Job) {
	metav1.SetMetaDataAnnotation(&j.ObjectMeta, v1alpha1.AnnotationClusters, "west")
}
func managedJob(j *batch.Job)  { j.Spec.ManagedBy = ptr.To("example.com/queue") }
func managedByUs(j *batch.Job) { j.Spec.ManagedBy = ptr.To(batchv1.JobControllerName) }

func TestAJobThatHasStartedKeepsItsDecision(t *testing.T) {
	for name, test := range map[string]struct {
		old, object *batch.Job
		want        string
		wantAsked   bool
		wantWarning string
	}{
		"one that has not started is placed anew": {
			old: job(3, onEastAlready), object: job(5), want: onEast(5), wantAsked: true,
		},
		"one that has is not, though the update tells no status": {
			old: job(3, onEastAlready, startedJob), object: job(5), want: onEast(3),
		},
		"and says so to who chooses another cluster": {
			old: job(3, onEastAlready, startedJob), object: job(3, pinnedJob), want: onEast(3),
			wantWarning: `Job "sums" stays where it was started`,
		},
		"one that was never placed is": {
			old: job(3, startedJob), object: job(5), want: onEast(5), wantAsked: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, seen := storagetest.As(t, "jane")
			p := &placer{}
			placingJobs(p).PrepareForUpdate(ctx, test.object, test.old)
			if got := test.object.Annotations[v1alpha1.AnnotationPlacement]; got != test.want {
				t.Errorf("decision %q, want %q", got, test.want)
			}
			if asked := len(p.asked) > 0; asked != test.wantAsked {
				t.Errorf("asked %t, want %t", asked, test.wantAsked)
			}
			if got := strings.Join(seen.Texts, "; "); !strings.HasPrefix(got, test.wantWarning) || (got == "") != (test.wantWarning == "") {
				t.Errorf("warnings %q, want %q", got, test.wantWarning)
			}
		})
	}
}

// A queue that resumes a Job says with the same update where it is to run.
func TestAJobIsPlacedAnewByTheUpdateThatResumesIt(t *testing.T) {
	suspended := func(j *batch.Job) {
		j.Spec.Suspend, j.Status.Conditions = ptr.To(true), []batch.JobCondition{{Type: batch.JobSuspended, Status: "True"}}
	}
	resumed := func(j *batch.Job) { j.Spec.Suspend = ptr.To(false) }
	ctx, _ := storagetest.As(t, "jane")
	p := &placer{}
	placingJobs(p).PrepareForUpdate(ctx, job(3, onEastAlready, suspended, resumed, pinnedJob), job(3, onEastAlready, suspended))
	if len(p.asked) != 1 || p.asked[0].Fixed {
		t.Errorf("asked about %+v, want one that may still move", p.asked)
	}
	p = &placer{}
	placingJobs(p).PrepareForUpdate(ctx, job(3, onEastAlready, suspended, resumed, pinnedJob), job(3, onEastAlready, suspended, resumed))
	if len(p.asked) > 0 {
		t.Errorf("asked about %+v, which may have begun", p.asked)
	}
}

func TestAJobOfAnotherControllerIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		managed func(*batch.Job)
		want    bool // placed and held
	}{
		"another controller's":  {managedJob, false},
		"the Job controller's":  {managedByUs, true},
		"the default is theirs": {func(*batch.Job) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, "jane")
			created := job(3, test.managed)
			placingJobs(&placer{}).PrepareForCreate(ctx, created)
			if placed := created.Annotations[v1alpha1.AnnotationPlacement] != ""; placed != test.want {
				t.Errorf("placed on %q", created.Annotations[v1alpha1.AnnotationPlacement])
			}
			if held := len(created.Finalizers) > 0; held != test.want {
				t.Errorf("finalizers %v", created.Finalizers)
			}
			if created.Spec.Selector == nil {
				t.Error("it has no selector: the stock strategy has not seen it")
			}
			updated := created.DeepCopy()
			updated.Labels = map[string]string{"seen": "yes"}
			placingJobs(&placer{}).PrepareForUpdate(ctx, updated, created)
			if placed := updated.Annotations[v1alpha1.AnnotationPlacement] != ""; placed != test.want {
				t.Errorf("an update placed it on %q", updated.Annotations[v1alpha1.AnnotationPlacement])
			}
		})
	}
}
