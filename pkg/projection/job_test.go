package projection

import (
	"fmt"
	"reflect"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
)

// batch is a Job as the API server stores it.
func batch(edits ...func(*batchv1.Job)) *batchv1.Job {
	labels := map[string]string{"batch.kubernetes.io/controller-uid": "uid-1", "batch.kubernetes.io/job-name": "sums"}
	in := &batchv1.Job{
		ObjectMeta: named("shop", "sums"),
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](10), BackoffLimit: ptr.To[int32](6),
			CompletionMode: ptr.To(batchv1.NonIndexedCompletion), Suspend: ptr.To(false), ManualSelector: ptr.To(false),
			PodReplacementPolicy: ptr.To(batchv1.TerminatingOrFailed),
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": "uid-1"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "sum", Image: "sum:1"}},
				},
			},
		},
	}
	for _, edit := range edits {
		edit(in)
	}
	return in
}

func indexed(in *batchv1.Job)   { in.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }
func suspended(in *batchv1.Job) { in.Spec.Suspend = ptr.To(true) }
func started(in *batchv1.Job)   { in.Status.StartTime = ptr.To(metav1.Now()) }
func workQueue(in *batchv1.Job) { in.Spec.Completions = nil }

func is(of batchv1.JobConditionType) func(*batchv1.Job) {
	return func(in *batchv1.Job) {
		in.Status.Conditions = append(in.Status.Conditions, batchv1.JobCondition{Type: of, Status: corev1.ConditionTrue})
	}
}

func parallelism(n int32) func(*batchv1.Job) {
	return func(in *batchv1.Job) { in.Spec.Parallelism = ptr.To(n) }
}

func completions(n int32) func(*batchv1.Job) {
	return func(in *batchv1.Job) { in.Spec.Completions = ptr.To(n) }
}

// partOf projects a Job to a cluster of a decision.
func partOf(t *testing.T, in *batchv1.Job, decision placement.Decision, cluster string) *batchv1.Job {
	t.Helper()
	out, err := kindOf(t, in).Project(in, Part{Share: decision[cluster], Decision: decision}, Target{LogicalCluster: "lc", Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return out.(*batchv1.Job)
}

func TestAWholeJobKeepsItsSpecButItsTimeToLive(t *testing.T) {
	in := batch(started, func(in *batchv1.Job) {
		in.Spec.TTLSecondsAfterFinished = ptr.To[int32](60)
		in.Spec.ActiveDeadlineSeconds = ptr.To[int64](600)
		in.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob}}}
		in.Spec.ManagedBy = ptr.To(batchv1.JobControllerName)
	})
	want := in.Spec.DeepCopy()
	want.TTLSecondsAfterFinished = nil
	want.ManualSelector = ptr.To(true)
	for _, edit := range []func(*batchv1.Job){func(*batchv1.Job) {}, is(batchv1.JobFailureTarget)} {
		edit(in)
		if got := partOf(t, in, shares(4), "east").Spec; !reflect.DeepEqual(got, *want) {
			t.Errorf("spec = %+v, want %+v", got, *want)
		}
	}
}

// shares makes a decision of a list of replicas for east, west and north.
func shares(replicas ...int32) placement.Decision {
	out := placement.Decision{}
	for i, n := range replicas {
		out[[]string{"east", "west", "north"}[i]] = placement.Share{Replicas: n}
	}
	return out
}

func inCopies(replicas ...int32) placement.Decision {
	out := shares(replicas...)
	for cluster, share := range out {
		share.Copy = true
		out[cluster] = share
	}
	return out
}

func TestPartsOfAJob(t *testing.T) {
	const unset = -1
	// part is parallelism and completions of a cluster.
	type part struct{ parallelism, completions int32 }
	tests := map[string]struct {
		in       *batchv1.Job
		decision placement.Decision
		want     map[string]part
	}{
		"completions go with parallelism": {
			in: batch(), decision: shares(3, 1), want: map[string]part{"east": {3, 8}, "west": {1, 2}},
		},
		"halves": {
			in: batch(), decision: shares(2, 2), want: map[string]part{"east": {2, 5}, "west": {2, 5}},
		},
		"three do not divide ten": {
			in: batch(parallelism(3)), decision: shares(1, 1, 1),
			want: map[string]part{"east": {1, 4}, "north": {1, 3}, "west": {1, 3}},
		},
		"more pods at a time than completions": {
			in: batch(parallelism(50), completions(4)), decision: shares(3, 1), want: map[string]part{"east": {38, 3}, "west": {12, 1}},
		},
		"a queue of work is only divided by how many work on it": {
			in: batch(workQueue), decision: shares(3, 1), want: map[string]part{"east": {3, unset}, "west": {1, unset}},
		},
		"parallelism grew after the decision": {
			in: batch(parallelism(8)), decision: shares(3, 1), want: map[string]part{"east": {6, 8}, "west": {2, 2}},
		},
		"parallelism shrank below the number of clusters": {
			in: batch(parallelism(1)), decision: shares(3, 1), want: map[string]part{"east": {1, 8}, "west": {1, 2}},
		},
		"parallelism of nothing pauses all": {
			in: batch(parallelism(0)), decision: shares(3, 1), want: map[string]part{"east": {0, 8}, "west": {0, 2}},
		},
		"one cluster has all, whatever its share was": {
			in: batch(parallelism(8)), decision: shares(4), want: map[string]part{"east": {8, 10}},
		},
		"one cluster has all of what was decided at a parallelism of nothing": {
			in: batch(), decision: shares(0), want: map[string]part{"east": {4, 10}},
		},
		"copies are whole": {
			in: batch(), decision: inCopies(4, 4), want: map[string]part{"east": {4, 10}, "west": {4, 10}},
		},
		"copies stay whole": {
			in: batch(parallelism(8)), decision: inCopies(4, 4), want: map[string]part{"east": {8, 10}, "west": {8, 10}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := map[string]part{}
			for cluster := range test.decision {
				spec := partOf(t, test.in, test.decision, cluster).Spec
				got[cluster] = part{*spec.Parallelism, ptr.Deref(spec.Completions, unset)}
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("parts are %v, want %v", got, test.want)
			}
		})
	}
}

// TestPartsOfAJobSumUp goes through all small Jobs and the decisions that placement makes of them.
func TestPartsOfAJobSumUp(t *testing.T) {
	for pods := range int32(7) {
		for all := range int32(9) {
			in := batch(parallelism(pods), completions(all))
			asked := kindOf(t, in).Demand(in).Replicas
			for east := range asked + 1 {
				decision := shares(east, asked-east)
				for cluster, share := range decision {
					if share.Replicas == 0 && (asked > 0 || cluster == "west") {
						delete(decision, cluster)
					}
				}
				var sum, complete int32
				for cluster := range decision {
					spec := partOf(t, in, decision, cluster).Spec
					sum, complete = sum+*spec.Parallelism, complete+*spec.Completions
					if *spec.Completions == 0 && all > 0 && asked > 0 {
						t.Errorf("%d completions at %d on %s: nothing is left for %s", all, pods, decision, cluster)
					}
				}
				if sum != pods || complete != all {
					t.Errorf("%d completions at %d on %s: the parts have %d at %d", all, pods, decision, complete, sum)
				}
			}
		}
	}
}

func TestWhatIsLeftOfAFailedJobEndsInEveryCluster(t *testing.T) {
	in := batch(started, is(batchv1.JobFailureTarget))
	for _, decision := range []placement.Decision{shares(2, 2), inCopies(4, 4)} {
		if got := partOf(t, in, decision, "west").Spec.ActiveDeadlineSeconds; got == nil || *got != 0 {
			t.Errorf("on %s: activeDeadlineSeconds = %v, want 0", decision, got)
		}
	}
}

func TestDemandOfAJob(t *testing.T) {
	tests := map[string]struct {
		in   *batchv1.Job
		want Demand
	}{
		"pods at a time": {
			in: batch(), want: Demand{Replicas: 4, Division: placement.DivisibleByName, Unstarted: true},
		},
		"no more pods than completions": {
			in: batch(completions(2)), want: Demand{Replicas: 2, Division: placement.DivisibleByName, Unstarted: true},
		},
		"a queue of work": {
			in: batch(workQueue), want: Demand{Replicas: 4, Division: placement.DivisibleByName, Unstarted: true},
		},
		"indexes start at 0 in every cluster": {
			in: batch(indexed), want: Demand{Replicas: 4, Whole: "an Indexed Job counts its indexes from 0 wherever it runs", Unstarted: true},
		},
		"a group of pods": {
			in:   batch(func(in *batchv1.Job) { in.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{} }),
			want: Demand{Replicas: 4, Whole: "its pods are scheduled as a group", Unstarted: true},
		},
		"started": {
			in: batch(started), want: Demand{Replicas: 4, Division: placement.DivisibleByName, Fixed: true, Unstarted: true},
		},
		"suspended before it ran": {
			in: batch(suspended, is(batchv1.JobSuspended)), want: Demand{Replicas: 4, Division: placement.DivisibleByName, Unstarted: true},
		},
		"resumed, and its status does not know yet": {
			in:   batch(is(batchv1.JobSuspended)),
			want: Demand{Replicas: 4, Division: placement.DivisibleByName, Fixed: true, Unstarted: true},
		},
		"suspended after some pods": {
			in:   batch(suspended, func(in *batchv1.Job) { in.Status.Succeeded = 1 }),
			want: Demand{Replicas: 4, Division: placement.DivisibleByName, Fixed: true},
		},
		"failing": {
			in:   batch(started, is(batchv1.JobFailureTarget)),
			want: Demand{Replicas: 4, Division: placement.DivisibleByName, Fixed: true, Unstarted: true},
		},
		"complete": {
			in:   batch(started, is(batchv1.JobComplete)),
			want: Demand{Replicas: 4, Division: placement.DivisibleByName, Fixed: true, Finished: true, Unstarted: true},
		},
		"failed": {
			in:   batch(started, is(batchv1.JobFailed)),
			want: Demand{Replicas: 4, Division: placement.DivisibleByName, Fixed: true, Finished: true, Unstarted: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Template, test.want.Restarts = &test.in.Spec.Template, true
			if got := kindOf(t, test.in).Demand(test.in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("Demand = %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAJobOfAnotherControllerStaysAbove(t *testing.T) {
	for manager, want := range map[string]bool{"": false, batchv1.JobControllerName: false, "kueue.x-k8s.io/multikueue": true} {
		in := batch()
		if manager != "" {
			in.Spec.ManagedBy = &manager
		}
		if got := kindOf(t, in).Mirror(in); got != want {
			t.Errorf("managed by %q: Mirror = %t, want %t", manager, got, want)
		}
	}
}

func TestPlanForAJobThatIsThere(t *testing.T) {
	image := func(in *batchv1.Job) { in.Spec.Template.Spec.Containers[0].Image = "sum:2" }
	sidecar := func(in *batchv1.Job) {
		in.Spec.Template.Spec.Containers = append(in.Spec.Template.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1"})
	}
	active := func(in *batchv1.Job) { in.Status.Active = 1 }
	tests := map[string]struct {
		above, before *batchv1.Job
		below         []func(*batchv1.Job)
		want          Step
		// wantImage is that of the projection that is applied.
		wantImage string
	}{
		"nothing has changed": {
			above: batch(), below: []func(*batchv1.Job){started, active}, want: Nothing, wantImage: "sum:1",
		},
		"its template was changed on its way in, and cannot be put back": {
			above: batch(), below: []func(*batchv1.Job){image, sidecar, started}, want: Nothing, wantImage: "sum:2",
		},
		"parallelism": {
			above: batch(parallelism(2)), below: []func(*batchv1.Job){parallelism(4), started}, want: Apply, wantImage: "sum:1",
		},
		"suspended": {
			above: batch(suspended), before: batch(), below: []func(*batchv1.Job){started, active}, want: Apply, wantImage: "sum:1",
		},
		"suspended with another template, of which the running one is not told yet": {
			above: batch(suspended, image), before: batch(), below: []func(*batchv1.Job){started, active}, want: Apply, wantImage: "sum:1",
		},
		"another template while it is suspended and has never run": {
			above: batch(suspended, image), before: batch(suspended), want: Apply, wantImage: "sum:2",
		},
		"another template while it is suspended again": {
			above: batch(suspended, image), before: batch(suspended), below: []func(*batchv1.Job){started, is(batchv1.JobSuspended)},
			want: Apply, wantImage: "sum:2",
		},
		"another template while the last pods end": {
			above: batch(suspended, image), before: batch(suspended), below: []func(*batchv1.Job){started, is(batchv1.JobSuspended), active},
			want: Apply, wantImage: "sum:1",
		},
		"other completions, after another decision": {
			above: batch(completions(5)), before: batch(), want: Replace, wantImage: "sum:1",
		},
		"completions where there were none": {
			above: batch(), before: batch(workQueue), want: Replace, wantImage: "sum:1",
		},
		"more indexes, with as many pods": {
			above: batch(indexed, completions(5), parallelism(5)), before: batch(indexed, completions(3), parallelism(3)),
			below: []func(*batchv1.Job){started}, want: Apply, wantImage: "sum:1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind := kindOf(t, test.above)
			if test.before == nil {
				test.before = test.above
			}
			live := partOf(t, test.before, shares(4), "east")
			for _, edit := range test.below {
				edit(live)
			}
			desired := partOf(t, test.above, shares(4), "east")
			kind.Keep(desired, live)
			if got := kind.Plan(desired, live); got.Step != test.want {
				t.Errorf("Plan = %+v, want %s", got, test.want)
			}
			if got := desired.Spec.Template.Spec.Containers[0].Image; got != test.wantImage {
				t.Errorf("image %q, want %q", got, test.wantImage)
			}
		})
	}
}

func TestASidecarIsNotTakenForOurs(t *testing.T) {
	desired, live := partOf(t, batch(), shares(4), "east"), partOf(t, batch(started), shares(4), "east")
	started(live)
	live.Spec.Template.Spec.Containers = append(live.Spec.Template.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1"})
	kindOf(t, live).Keep(desired, live)
	if got := len(desired.Spec.Template.Spec.Containers); got != 1 {
		t.Errorf("%d containers are projected, want the one of the Job alone", got)
	}
}

func TestTheTemplateOfAJobIsLookedAtAgainWhenItThaws(t *testing.T) {
	running, paused := batch(started), batch(started, suspended, is(batchv1.JobSuspended))
	kind := kindOf(t, running)
	for _, test := range []struct {
		before, after *batchv1.Job
		want          bool
	}{
		{running, paused, true}, {paused, running, false}, {running, running, false}, {paused, paused, false},
	} {
		if got := kind.Thaw(test.before, test.after); got != test.want {
			t.Errorf("Thaw(%s, %s) = %t, want %t", state(test.before), state(test.after), got, test.want)
		}
	}
}

func state(in *batchv1.Job) string { return fmt.Sprintf("suspend: %t", *in.Spec.Suspend) }
