//go:build !race

package upstream

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// converted reads an object as the API server does before it validates it.
func converted[T any](t *testing.T, obj summary.Object) *T {
	t.Helper()
	legacyscheme.Scheme.Default(obj)
	out := new(T)
	if err := legacyscheme.Scheme.Convert(obj, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// takers are what the API has against the status of an object of each kind.
var takers = map[string]struct {
	empty   summary.Object
	refuses func(t *testing.T, after, before summary.Object) field.ErrorList
}{
	"deployments": {&appsv1.Deployment{}, func(t *testing.T, after, before summary.Object) field.ErrorList {
		return appsvalidation.ValidateDeploymentStatusUpdate(converted[apps.Deployment](t, after), converted[apps.Deployment](t, before))
	}},
	"statefulsets": {&appsv1.StatefulSet{}, func(t *testing.T, after, before summary.Object) field.ErrorList {
		return appsvalidation.ValidateStatefulSetStatusUpdate(converted[apps.StatefulSet](t, after), converted[apps.StatefulSet](t, before))
	}},
	"daemonsets": {&appsv1.DaemonSet{}, func(t *testing.T, after, before summary.Object) field.ErrorList {
		return appsvalidation.ValidateDaemonSetStatusUpdate(converted[apps.DaemonSet](t, after), converted[apps.DaemonSet](t, before))
	}},
	"replicasets": {&appsv1.ReplicaSet{}, func(t *testing.T, after, before summary.Object) field.ErrorList {
		return appsvalidation.ValidateReplicaSetStatusUpdate(converted[apps.ReplicaSet](t, after), converted[apps.ReplicaSet](t, before))
	}},
	"replicationcontrollers": {&corev1.ReplicationController{}, func(t *testing.T, after, before summary.Object) field.ErrorList {
		return corevalidation.ValidateReplicationControllerStatusUpdate(
			converted[core.ReplicationController](t, after), converted[core.ReplicationController](t, before))
	}},
	"jobs": {&batchv1.Job{}, func(t *testing.T, after, before summary.Object) field.ErrorList {
		return batchvalidation.ValidateJobUpdateStatus(converted[batch.Job](t, after), converted[batch.Job](t, before), batchvalidation.JobStatusValidationOptions{
			RejectDecreasingSucceededCounter: true, RejectDecreasingFailedCounter: true, RejectInvalidCompletedIndexes: true,
			RejectInvalidFailedIndexes: true, RejectCompletedIndexesForNonIndexedJob: true, RejectFailedIndexesForNoBackoffLimitPerIndex: true,
			RejectFailedIndexesOverlappingCompleted: true, RejectFinishedJobWithActivePods: true, RejectFinishedJobWithoutStartTime: true,
			RejectFinishedJobWithUncountedTerminatedPods: true, RejectCompleteJobWithFailedCondition: true,
			RejectCompleteJobWithFailureTargetCondition: true, RejectNotCompleteJobWithCompletionTime: true,
			RejectCompleteJobWithoutCompletionTime: true, RejectCompletionTimeBeforeStartTime: true, RejectMoreReadyThanActivePods: true,
			RejectFinishedJobWithTerminatingPods: true, RejectFailedJobWithoutFailureTarget: true, RejectCompleteJobWithoutSuccessCriteriaMet: true,
		})
	}},
	"services": {&corev1.Service{}, func(t *testing.T, after, before summary.Object) field.ErrorList {
		return corevalidation.ValidateServiceStatusUpdate(converted[core.Service](t, after), converted[core.Service](t, before))
	}},
	"persistentvolumeclaims": {&corev1.PersistentVolumeClaim{}, func(t *testing.T, after, before summary.Object) field.ErrorList {
		return corevalidation.ValidatePersistentVolumeClaimStatusUpdate(
			converted[core.PersistentVolumeClaim](t, after), converted[core.PersistentVolumeClaim](t, before),
			corevalidation.PersistentVolumeClaimSpecValidationOptions{EnableRecoverFromExpansionFailure: true})
	}},
	"ingresses": {&networkingv1.Ingress{}, func(t *testing.T, after, before summary.Object) field.ErrorList {
		return networkingvalidation.ValidateIngressStatusUpdate(converted[networking.Ingress](t, after), converted[networking.Ingress](t, before))
	}},
}

// liar fills values with what nobody expects, as bytes choose it. When these are read it says nothing: a value that is longer, or deeper, needs more
// of them, and each says one thing, so that who looks for other values can change what is there bit by bit.
type liar struct{ choices []byte }

// IntN returns the next choice among as many.
func (l *liar) IntN(n int) int {
	if len(l.choices) == 0 {
		return 0
	}
	choice := int(l.choices[0])
	l.choices = l.choices[1:]
	return choice % n
}

func (l *liar) one(of ...string) string { return of[l.IntN(len(of))] }

func (l *liar) number() int64 {
	return []int64{0, 1, 2, 3, -1, 1000, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}[l.IntN(10)]
}

func (l *liar) fill(v reflect.Value, depth int) {
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		at.Time = time.Unix(l.number(), 0)
		return
	case *resource.Quantity:
		*at = resource.MustParse(l.one("0", "1Gi", "-1", "1000E", "1m", "9223372036854775807"))
		return
	}
	switch v.Kind() {
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(int32(l.number())))
	case reflect.Bool:
		v.SetBool(l.IntN(2) == 0)
	case reflect.String:
		v.SetString(l.one("", "True", "False", "Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended", "Progressing", "Available",
			"ReplicaFailure", "0-2", "3,1", "web-1", "192.0.2.1", "300.1.1.1", "a.example.com", "\xff\x1b[2J", strings.Repeat("x", 5000), "Bound", "VIP", "TCP", "storage"))
	case reflect.Pointer:
		if l.IntN(3) > 0 && depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			l.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), l.IntN(5), 5))
			for i := range v.Len() {
				l.fill(v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		if depth > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range l.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				l.fill(key, 0)
				l.fill(value, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				l.fill(v.Field(i), depth-1)
			}
		}
	}
}

// of returns an object of a kind, as a cluster has it that lies about its status.
func (l *liar) of(empty summary.Object) summary.Object {
	out := empty.DeepCopyObject().(summary.Object)
	out.SetGeneration(2)
	l.fill(reflect.ValueOf(out).Elem().FieldByName("Status"), 6)
	return out
}

// FuzzHostileReports has two clusters say anything of an object of a kind, several times: the status that comes of it must be one that the
// API takes, and no counter more than what the clusters were told. What is sane stays so, and the same reports make the same status.
func FuzzHostileReports(f *testing.F) {
	kinds := summary.Kinds()
	for of := range kinds {
		f.Add(uint8(of), []byte{}) // nothing is said
		for seed := range uint64(300) {
			random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(of)})
			choices := make([]byte, 16<<(seed%9)) // the longest are as much as is ever read
			_, _ = random.Read(choices)           // it never fails
			f.Add(uint8(of), choices)
		}
	}
	f.Fuzz(func(t *testing.T, of uint8, choices []byte) {
		l := &liar{choices}
		now := metav1.NewTime(time.Unix(1_800_000_000, 0))
		kind := kinds[int(of)%len(kinds)]
		taker := takers[kind.Resource.Resource]
		in := above(l, taker.empty)
		for range 3 {
			reports := map[string]summary.Report{}
			for _, cluster := range []string{"east", "west"} {
				bounds := summary.Bounds{Replicas: 3, Now: now}
				live, doubts := kind.Sane(in, l.of(taker.empty), bounds)
				if again, more := kind.Sane(in, live, bounds); len(more) > 0 || !equality.Semantic.DeepEqual(again, live) {
					t.Fatalf("what was sane of %s is not: %v", kind.Resource.Resource, more)
				}
				reports[cluster] = summary.Report{Live: live, Doubts: doubts, Generation: int64(l.IntN(3))}
			}
			from := summary.Input{Decision: placement.Decision{"east": {Replicas: 2}, "west": {Replicas: 2}}, Reports: reports, Now: now}
			next := kind.Summarise(in, from)
			if again := kind.Summarise(next, from); !equality.Semantic.DeepEqual(again, next) {
				t.Fatalf("the same reports make of %s\n%+v\nand then\n%+v", kind.Resource.Resource, next, again)
			}
			if errs := taker.refuses(t, next, in); len(errs) > 0 {
				t.Fatalf("the API does not take what two clusters make of %s: %v", kind.Resource.Resource, errs)
			}
			if kind.Breakdown {
				if _, err := summary.ParseBreakdown(kind.BreakdownOf(reports).String()); err != nil {
					t.Fatal(err)
				}
			}
			if d, ok := next.(*appsv1.Deployment); ok && (d.Status.Replicas > 6 || d.Status.AvailableReplicas > 6) {
				t.Fatalf("two clusters that have 3 replicas each have %+v", d.Status)
			}
			in = next
		}
	})
}

// above is an object of a kind as the logical cluster has it, of which nothing is known yet.
func above(l *liar, empty summary.Object) summary.Object {
	out := empty.DeepCopyObject().(summary.Object)
	out.SetName("web")
	out.SetNamespace("shop")
	out.SetUID("uid-of-web")
	out.SetGeneration(2)
	out.SetResourceVersion("1")
	out.SetCreationTimestamp(metav1.NewTime(time.Unix(1_700_000_000, 0)))
	switch o := out.(type) {
	case *appsv1.Deployment:
		o.Spec.Replicas = ptr.To[int32](4)
	case *appsv1.StatefulSet:
		o.Spec.Replicas = ptr.To[int32](4)
	case *batchv1.Job:
		o.Spec.Completions, o.Spec.Parallelism = ptr.To[int32](4), ptr.To[int32](2) // the succeeded of an elastic one may go back
		if l.IntN(2) == 0 {
			o.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		}
	case *corev1.Service:
		o.Spec.Type = corev1.ServiceType(l.one(string(corev1.ServiceTypeClusterIP), string(corev1.ServiceTypeLoadBalancer)))
	case *corev1.PersistentVolumeClaim:
		o.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	return out
}
