package pods

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/await"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// Whether a controller below is right to let go of a pod is read from its mirror, so that must say so before the controller can.
func TestLabelsOfAMirrorAreStoredBeforeItsPodHasThem(t *testing.T) {
	want := map[string]string{"app": "broken"}
	refusal := apierrors.NewForbidden(api.Resource("pods"), "web-1", errors.New("no"))
	for name, test := range map[string]struct {
		refusal error
		dryRun  []string
		// wantThen are those above when the cluster is told, wantLast those in the end.
		wantThen, wantLast map[string]string
	}{
		"and stay":                      {wantThen: want, wantLast: want},
		"unless the cluster refuses":    {refusal: refusal, wantThen: want},
		"unless it is only to be tried": {dryRun: []string{metav1.DryRunAll}},
	} {
		t.Run(name, func(t *testing.T) {
			pods, _ := cachedPods(t)
			stored := func() map[string]string {
				obj, err := pods.Get(storagetest.By(t, "jane"), "web-1", &metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return obj.(*api.Pod).Labels
			}
			var then map[string]string
			below := podsBelow{get: pods.Store.Get, identity: storagetest.Known, connections: storagetest.PatchedBelow("pods", &corev1.Pod{}, test.refusal, func() { then = stored() })}
			r := &podChangeREST{patchStorage: pods, same: sameMarks, below: below, pods: pods.Store}
			// The watch shows nothing more of labels that are stored by then, so who waits for that would wait to the end.
			ctx, cancel := context.WithTimeout(storagetest.Updating(t, "pods"), await.MirrorTimeout-time.Second)
			defer cancel()
			_, _, err := r.Update(ctx, "web-1", storagetest.Labelling(want), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: test.dryRun})
			if ctx.Err() != nil {
				t.Error("the answer has waited for what does not come")
			}
			if apierrors.IsForbidden(err) != (test.refusal != nil) || err != nil && test.refusal == nil {
				t.Fatalf("error %v, want that of the cluster: %v", err, test.refusal)
			}
			if !maps.Equal(then, test.wantThen) {
				t.Errorf("labels %v above when the cluster is told, want %v", then, test.wantThen)
			}
			if got := stored(); !maps.Equal(got, test.wantLast) {
				t.Errorf("labels %v above in the end, want %v", got, test.wantLast)
			}
		})
	}
}

// A pod has finalizers that its mirror does not show, so those that are taken off are named.
func TestAFinalizerOfAMirrorIsTakenOffItsPod(t *testing.T) {
	of := func(finalizers ...string) *api.Pod {
		return &api.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: finalizers}}
	}
	for name, test := range map[string]struct {
		old, want *api.Pod
		patch     string
	}{
		"one of two": {of("x/a", "x/b"), of("x/b"), `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/a"],"labels":{"a":"b"},"uid":"uid-below"}}`},
		"all":        {of("x/a"), of(), `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/a"],"labels":{"a":"b"},"uid":"uid-below"}}`},
		"none":       {of("x/a"), of("x/a"), `{"metadata":{"labels":{"a":"b"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := withMetadata([]byte(`{"metadata":{"labels":{"a":"b"}}}`), "uid-below", nil, takenOff(test.old, test.want))
			if err != nil || string(got) != test.patch {
				t.Errorf("patch %s (%v), want %s", got, err, test.patch)
			}
		})
	}
}

func TestWhatMayBeChangedOfAMirror(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*api.Pod)
		want   bool
	}{
		"a label":                       {func(p *api.Pod) { p.Labels = map[string]string{"role": "master"} }, true},
		"a finalizer that is taken off": {func(p *api.Pod) { p.Finalizers = nil }, true},
		"not one that is new":           {func(p *api.Pod) { p.Finalizers = append(p.Finalizers, "x/b") }, false},
		"not its spec":                  {func(p *api.Pod) { p.Spec.Hostname = "other" }, false},
		"a gate that is taken off":      {func(p *api.Pod) { p.Spec.SchedulingGates = p.Spec.SchedulingGates[1:] }, true},
		"all gates":                     {func(p *api.Pod) { p.Spec.SchedulingGates = nil }, true},
		"not a gate that is new":        {func(p *api.Pod) { p.Spec.SchedulingGates[0].Name = "x/new" }, false},
		"not a gate and its spec":       {func(p *api.Pod) { p.Spec.SchedulingGates, p.Spec.Hostname = nil, "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			old := mirror("east")
			old.Finalizers = []string{"x/a"}
			old.Spec.SchedulingGates = []api.PodSchedulingGate{{Name: "x/queue"}, {Name: "x/quota"}}
			changed := old.DeepCopy()
			test.change(changed)
			if got := labelledAnew(changed, old); got != test.want {
				t.Errorf("it may be changed: %t, want %t", got, test.want)
			}
		})
	}
}

// Nobody takes finalizers off a mirror whose pod is gone, or whose cluster is.
func TestAMirrorIsTakenAwayWhateverHeldItsPod(t *testing.T) {
	for name, who := range map[string]string{"by the syncer of its cluster": storagetest.EastSyncer, "by Manifold, for a cluster that is lost": v1alpha1.RemovalUser} {
		t.Run(name, func(t *testing.T) {
			pods, made := cachedPods(t)
			pod := made.DeepCopy()
			pod.Name, pod.ResourceVersion, pod.UID, pod.Finalizers = "web-2", "", "", []string{"x/a"}
			pod.Annotations[v1alpha1.AnnotationUID] = "uid-of-web-2"
			if _, err := pods.Create(storagetest.By(t, storagetest.EastSyncer), pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			ctx := request.WithRequestInfo(storagetest.By(t, who), &request.RequestInfo{
				IsResourceRequest: true, Verb: "delete", APIVersion: "v1", Resource: "pods", Namespace: "shop",
			})
			if _, _, err := (&podREST{REST: pods}).Delete(ctx, "web-2", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
				t.Fatal(err)
			}
			if _, err := pods.Get(storagetest.By(t, "jane"), "web-2", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("reading it gives error %v, want that it is not found", err)
			}
		})
	}
}
