package scripts

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
)

// harness is Scripts over caches that a test fills, and a client that writes elsewhere: caches lag behind.
type harness struct {
	*Scripts
	jobs, pods, revisions cache.Indexer
	client                *fake.Clientset
}

func newHarness() *harness {
	by := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	h := &harness{jobs: by(), pods: by(), revisions: by(), client: fake.NewClientset()}
	h.Scripts = New(Options{
		Jobs: batchlisters.NewJobLister(h.jobs), Pods: corelisters.NewPodLister(h.pods), Revisions: listers.NewApplicationRevisionLister(h.revisions),
		Client: func(*v1alpha1.Application) (kubernetes.Interface, error) { return h.client, nil },
	})
	return h
}

// catchUp has the cache of Jobs show what was written.
func (h *harness) catchUp(t *testing.T) *batchv1.Job {
	t.Helper()
	list, err := h.client.BatchV1().Jobs("web").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Jobs and error %v, want one", len(list.Items), err)
	}
	if err := h.jobs.Add(&list.Items[0]); err != nil {
		t.Fatal(err)
	}
	return &list.Items[0]
}

func (h *harness) creates() (n int) {
	for _, action := range h.client.Actions() {
		if action.Matches("create", "jobs") {
			n++
		}
	}
	return n
}

func run() Run {
	return Run{
		Application: &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop", Labels: map[string]string{"team": "red", "a.b/c": "d"}}},
		Release: &v1alpha1.Release{
			ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop-x2f", UID: "1", CreationTimestamp: metav1.Unix(1000, 0)},
			Spec:       v1alpha1.ReleaseSpec{Revision: "shop-v2", TriggeredBy: v1alpha1.ReleaseTrigger{Message: "Add $(HOME) a cart"}},
		},
		Stage: v1alpha1.Stage{ID: "stage-1", Name: v1alpha1.StageScriptRun, With: &runtime.RawExtension{
			Raw: []byte(`{"image":"busybox","run":"echo $$ $(A)","env":{"A":"$(B)","SR_SUMMARY":"mine"},"onRollback":"echo back"}`),
		}},
		Name: "stage-1-0",
	}
}

func TestAScriptRunsOnceAsAJob(t *testing.T) {
	h := newHarness()
	if err := h.revisions.Add(&v1alpha1.ApplicationRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop-v2"}, Spec: v1alpha1.ApplicationRevisionSpec{Origin: &v1alpha1.Origin{URL: "https://git.example/shop.git", Commit: "abc"}},
	}); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the cache does not show it, and somebody else, or a restart, asks again
		got, err := h.Outcome(t.Context(), run())
		if err != nil || got.Phase != delivery.Running {
			t.Fatalf("outcome %+v and error %v, want it to run", got, err)
		}
	}
	job := h.catchUp(t)
	before := h.creates()
	if _, err := h.Outcome(t.Context(), run()); err != nil || h.creates() != before {
		t.Errorf("error %v and %d attempts to make it, want %d", err, h.creates(), before)
	}
	env := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	want := batchv1.JobSpec{
		BackoffLimit: ptr.To(int32(0)), ActiveDeadlineSeconds: ptr.To(int64(6 * 3600)),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelApplication: "shop"}, Annotations: map[string]string{annotationScript: "stage-1-0"}},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{
				Name: "script", Image: "busybox", Command: []string{"/bin/sh", "-c", "echo $$$$ $$(A)"}, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				Env: []corev1.EnvVar{
					env("A", "$$(B)"), env("SR_APPLICATION_ID", "shop"), env("SR_APPLICATION_NAME", "shop"),
					env("SR_CONTEXT_RAW", `{"deploymentID":"shop-x2f","applicationID":"shop","applicationName":"shop","triggeredAt":1000,"triggeredCommitHash":"abc",`+
						`"repositoryURL":"https://git.example/shop.git","summary":"Add $$(HOME) a cart","labels":{"a.b/c":"d","team":"red"},"isRollback":false}`),
					env("SR_DEPLOYMENT_ID", "shop-x2f"), env("SR_IS_ROLLBACK", "false"), env("SR_LABELS_TEAM", "red"), env("SR_REPOSITORY_URL", "https://git.example/shop.git"),
					env("SR_SUMMARY", "mine"), env("SR_TRIGGERED_AT", "1000"), env("SR_TRIGGERED_COMMIT_HASH", "abc"),
				},
			}}},
		},
	}
	if diff := cmp.Diff(want, job.Spec); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !metav1.IsControlledBy(job, run().Release) || job.Labels[v1alpha1.LabelApplication] != "shop" {
		t.Errorf("the Job does not belong to its release: %+v", job.ObjectMeta)
	}
}

// measuring is a run of the Job that stage-1 measures by, counted from 0.
func measuring(job string, number int32) Run {
	r := run()
	r.Stage.Name, r.Stage.With = v1alpha1.StageAnalysis, &runtime.RawExtension{Raw: []byte(`{"jobs":[` + job + `]}`)}
	r.Metric, r.Name = "jobs-0", delivery.MeasurementName("stage-1", 0, "jobs-0", number)
	return r
}

func TestAMeasurementIsAJobAsThatOfAScript(t *testing.T) {
	for name, test := range map[string]struct {
		job     string
		command []string
		args    []string
		backoff int32
		within  int64
		account string
	}{
		"of the image's own":    {job: `{"image":"busybox","env":{"A":"$(B)"}}`, within: 3600},
		"of a command":          {job: `{"image":"busybox","env":{"A":"$(B)"},"command":["a"],"args":["$(A)"],"timeout":"90s"}`, command: []string{"a"}, args: []string{"$(A)"}, within: 90},
		"of a script":           {job: `{"image":"busybox","env":{"A":"$(B)"},"run":"echo $(A)","timeout":"1ms"}`, command: []string{"/bin/sh", "-c", "echo $$(A)"}, within: 1},
		"with rights and tries": {job: `{"image":"busybox","env":{"A":"$(B)"},"serviceAccountName":"probe","backoffLimit":2}`, backoff: 2, within: 3600, account: "probe"},
	} {
		t.Run(name, func(t *testing.T) {
			h, r := newHarness(), measuring(test.job, 3)
			if got, err := h.Outcome(t.Context(), r); err != nil || got.Phase != delivery.Running {
				t.Fatalf("outcome %+v and error %v, want it to run", got, err)
			}
			got, script := h.catchUp(t), newHarness()
			got.CreationTimestamp = metav1.Unix(2000, 0)
			if running, err := h.Outcome(t.Context(), r); err != nil || !running.Since.Equal(time.Unix(2000, 0)) {
				t.Errorf("outcome %+v and error %v, want one since when it runs", running, err)
			}
			if _, err := script.Outcome(t.Context(), run()); err != nil {
				t.Fatal(err)
			}
			want := script.catchUp(t)
			pod := &want.Spec.Template.Spec
			pod.Containers[0].Command, pod.Containers[0].Args = test.command, test.args
			pod.ServiceAccountName, pod.AutomountServiceAccountToken = test.account, ptr.To(test.account != "")
			for i, of := range pod.Containers[0].Env {
				if of.Name == "SR_SUMMARY" { // the script of the test has its own
					pod.Containers[0].Env[i].Value = "Add $$(HOME) a cart"
				}
			}
			want.Spec.BackoffLimit, want.Spec.ActiveDeadlineSeconds = &test.backoff, &test.within
			want.Spec.Template.Annotations = map[string]string{annotationScript: "stage-1-0/jobs-0/3"}
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !strings.HasPrefix(got.Name, "shop-x2f-stage-1-0-jobs-0-3-") {
				t.Errorf("it is called %s", got.Name)
			}
		})
	}
}

func TestNamesOfJobs(t *testing.T) {
	name := func(change func(*Run)) string {
		r := run()
		change(&r)
		return jobName(r)
	}
	plain := name(func(*Run) {})
	if !regexp.MustCompile(`^shop-x2f-stage-1-0-[0-9a-f]{10}$`).MatchString(plain) {
		t.Errorf("the name is %s", plain)
	}
	seen := map[string]bool{plain: true}
	for what, change := range map[string]func(*Run){
		"another attempt":                 func(r *Run) { r.Name = "stage-1-1" },
		"a release that had the name":     func(r *Run) { r.Release.UID = "2" },
		"a long name":                     func(r *Run) { r.Release.Name = strings.Repeat("a.", 90) + "b" },
		"a long name that begins like it": func(r *Run) { r.Release.Name, r.Name = strings.Repeat("a.", 90)+"b", "c-0" },
		"a stage that is no name":         func(r *Run) { r.Name = "Größe 1" },
	} {
		got := name(change)
		if seen[got] || len(got) > 63 || !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(got) {
			t.Errorf("%s: the name is %s", what, got)
		}
		seen[got] = true
	}
}

func TestOutcome(t *testing.T) {
	ended := func(kind batchv1.JobConditionType, reason, message string) batchv1.JobStatus {
		return batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: kind, Status: "True", Reason: reason, Message: message}}}
	}
	waits := &corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such\nimage"}}}}}
	spoke := &corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "one\ntwo\x1b[31m\n\n"}}}}}
	for name, test := range map[string]struct {
		status batchv1.JobStatus
		pod    *corev1.PodStatus
		silent bool
		want   delivery.Outcome
	}{
		"no pod yet":                  {want: delivery.Outcome{Phase: delivery.Running, Message: "its pod is not there yet"}},
		"a pod that waits":            {pod: waits, want: delivery.Outcome{Phase: delivery.Running, Message: "ErrImagePull: no such image"}},
		"a pod that runs":             {pod: &corev1.PodStatus{}, want: delivery.Outcome{Phase: delivery.Running}},
		"it has succeeded":            {status: ended(batchv1.JobComplete, "", ""), pod: spoke, want: delivery.Outcome{Phase: delivery.Succeeded, Message: "fake logs"}},
		"it has failed":               {status: ended(batchv1.JobFailed, "BackoffLimitExceeded", "no retries"), pod: spoke, want: delivery.Outcome{Phase: delivery.Failed, Message: "the script has failed: no retries: fake logs"}},
		"its cluster does not answer": {status: ended(batchv1.JobFailed, "", "no retries"), pod: spoke, silent: true, want: delivery.Outcome{Phase: delivery.Failed, Message: "the script has failed: no retries: two^[[31m"}},
		"its pod is gone":             {status: ended(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "x"), want: delivery.Outcome{Phase: delivery.Failed, Message: "the script has failed: it has not ended within 90s"}},
		"a condition that is not true": {
			status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "False"}}}, pod: &corev1.PodStatus{}, want: delivery.Outcome{Phase: delivery.Running},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, r := newHarness(), run()
			r.Stage.Timeout = &metav1.Duration{Duration: 90 * time.Second}
			if _, err := h.Outcome(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			job := h.catchUp(t)
			job.Status, job.UID = test.status, "job"
			if test.pod != nil {
				owner := []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a", Labels: map[string]string{batchv1.JobNameLabel: job.Name}, OwnerReferences: owner}, Status: *test.pod}
				other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "b", Labels: pod.Labels, CreationTimestamp: metav1.Now()}}
				if err := errors.Join(h.pods.Add(pod), h.pods.Add(other)); err != nil {
					t.Fatal(err)
				}
			}
			if test.silent {
				h.Client = func(*v1alpha1.Application) (kubernetes.Interface, error) { return nil, errors.New("away") }
			}
			got, err := h.Outcome(t.Context(), r)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestWhatIsNoScriptFails(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*Run)
		refusal error
		says    string
	}{
		"another stage":           {change: func(r *Run) { r.Stage.Name, r.Stage.With = v1alpha1.StageWait, nil }, says: "WAIT has no script"},
		"options that are none":   {change: func(r *Run) { r.Stage.With.Raw = []byte(`{"a":1}`) }, says: "no such option"},
		"a Job that there is not": {change: func(r *Run) { *r = measuring(`{"image":"a"}`, 0); r.Metric = "jobs-1" }, says: `there is no Job "jobs-1"`},
		"a Job without an image":  {change: func(r *Run) { *r = measuring(`{"run":"a"}`, 0) }, says: "jobs[0]: image is needed"},
		"nothing to take back":    {change: func(r *Run) { r.Stage.With.Raw, r.Undo = []byte(`{"image":"a","run":"b"}`), true }, says: "image and script are needed"},
		"a Job that is refused":   {refusal: apierrors.NewForbidden(batchv1.Resource("jobs"), "a", errors.New("exceeded quota")), says: "exceeded quota"},
		"a Job that is too much":  {refusal: apierrors.NewInvalid(batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), "a", nil), says: "is refused"},
	} {
		t.Run(name, func(t *testing.T) {
			h, r := newHarness(), run()
			if test.change != nil {
				test.change(&r)
			}
			if test.refusal != nil {
				h.client.PrependReactor("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.refusal })
			}
			got, err := h.Outcome(t.Context(), r)
			if err != nil || got.Phase != delivery.Failed || !strings.Contains(got.Message, test.says) {
				t.Errorf("outcome %+v and error %v, want a failure that says %q", got, err, test.says)
			}
		})
	}
}

func TestAnErrorThatMayPassIsTriedAgain(t *testing.T) {
	h := newHarness()
	h.client.PrependReactor("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("webhook does not answer"))
	})
	if got, err := h.Outcome(t.Context(), run()); err == nil || !strings.Contains(err.Error(), "script stage-1-0 of release web/shop-x2f") {
		t.Errorf("outcome %+v and error %v", got, err)
	}
}

func TestAJobOfSomebodyElseIsLeftAlone(t *testing.T) {
	h := newHarness()
	theirs := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: jobName(run())}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}}}
	if err := h.client.Tracker().Add(theirs); err != nil {
		t.Fatal(err)
	}
	got, err := h.Outcome(t.Context(), run())
	if err != nil || got.Phase != delivery.Failed || !strings.Contains(got.Message, "not of this release") {
		t.Errorf("outcome %+v and error %v, want a failure", got, err)
	}
}

func TestStopEndsWhatIsNotKept(t *testing.T) {
	h := newHarness()
	for _, name := range []string{"kept", "dropped", "ended"} {
		r := run()
		r.Name = name
		if _, err := h.Outcome(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	other := run()
	other.Release.UID, other.Name = "2", "of another release"
	if _, err := h.Outcome(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	list, err := h.client.BatchV1().Jobs("web").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range list.Items {
		if job.Annotations[annotationScript] == "ended" {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True"}}
		}
		if err := h.jobs.Add(&job); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Stop(t.Context(), run().Application, run().Release, func(name string) bool { return name == "kept" }); err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, action := range h.client.Actions() {
		if del, ok := action.(clienttesting.DeleteAction); ok {
			deleted = append(deleted, del.GetName())
		}
	}
	r := run()
	r.Name = "dropped"
	if diff := cmp.Diff([]string{jobName(r)}, deleted); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOfTheJobsThatHaveMeasuredTheLastStay(t *testing.T) {
	h := newHarness()
	for number := range int32(8) {
		if _, err := h.Outcome(t.Context(), measuring(`{"image":"a"}`, number)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := h.client.BatchV1().Jobs("web").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range list.Items {
		if job.Annotations[annotationScript] != measuring("", 7).Name { // that one runs
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True"}}
		}
		if err := h.jobs.Add(&job); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Stop(t.Context(), run().Application, run().Release, func(name string) bool { return name == measuring("", 7).Name }); err != nil {
		t.Fatal(err)
	}
	left, err := h.client.BatchV1().Jobs("web").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, job := range left.Items {
		names = append(names, job.Annotations[annotationScript])
	}
	slices.Sort(names)
	if want := []string{"stage-1-0/jobs-0/3", "stage-1-0/jobs-0/4", "stage-1-0/jobs-0/5", "stage-1-0/jobs-0/6", "stage-1-0/jobs-0/7"}; !slices.Equal(names, want) {
		t.Errorf("left are %v, want %v", names, want)
	}
}

func TestAGoodMeasurementIsTakenWithoutTheLogOfItsPod(t *testing.T) {
	h, r := newHarness(), measuring(`{"image":"a"}`, 0)
	if _, err := h.Outcome(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	job := h.catchUp(t)
	job.UID, job.Status.Conditions = "job", []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a", Labels: map[string]string{batchv1.JobNameLabel: job.Name}, OwnerReferences: owner}}
	if err := h.pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Outcome(t.Context(), r); err != nil || got.Phase != delivery.Succeeded || got.Message != "" {
		t.Errorf("outcome %+v and error %v", got, err)
	}
}

func TestAJobThatHasFailedIsToldAsOne(t *testing.T) {
	h, r := newHarness(), measuring(`{"image":"a"}`, 0)
	if _, err := h.Outcome(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	h.catchUp(t).Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", Message: "no retries"}}
	if got, err := h.Outcome(t.Context(), r); err != nil || got.Phase != delivery.Failed || got.Message != "the Job has failed: no retries" {
		t.Errorf("outcome %+v and error %v", got, err)
	}
}

func TestOutput(t *testing.T) {
	h := newHarness()
	if _, err := h.Output(t.Context(), run()); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want one that says that it is not there", err)
	}
	if got := linesOf(strings.Repeat("a\n", 150) + "b\r\n \n"); len(got) != lastLines || got[lastLines-1] != "b" {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}
