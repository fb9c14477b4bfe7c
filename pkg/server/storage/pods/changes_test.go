package pods

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// stockChange stands for a stock endpoint: it applies what it is given, and refuses to store.
type stockChange struct {
	patchStorage
	t   *testing.T
	pod *api.Pod
}

func (s stockChange) Update(ctx context.Context, _ string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if !dryrun.IsDryRun(options.DryRun) && mirrored(s.pod) {
		s.t.Error("the stock endpoint was to store a mirror")
	}
	obj, err := info.UpdatedObject(ctx, s.pod)
	return obj, false, err
}

// mirrors is a watch of mirrors.
type mirrors struct{ *watch.FakeWatcher }

func (m mirrors) Watch(context.Context, *metainternalversion.ListOptions) (watch.Interface, error) {
	return m.FakeWatcher, nil
}

func debugged(pod *api.Pod) *api.Pod {
	out := pod.DeepCopy()
	out.Spec.EphemeralContainers = []api.EphemeralContainer{{EphemeralContainerCommon: api.EphemeralContainerCommon{Name: "debugger", Image: "tools"}}}
	return out
}

func TestChangeOfAMirroredPodIsMadeBelow(t *testing.T) {
	const patch = `{"metadata":{"uid":"uid-below"},"spec":{` +
		`"ephemeralContainers":[{"image":"tools","name":"debugger","resources":{}}]}}`
	unchanged := func(pod *api.Pod) *api.Pod { return pod.DeepCopy() }
	for name, test := range map[string]struct {
		pod     *api.Pod
		change  func(*api.Pod) *api.Pod
		dryRun  []string
		refusal error // of the cluster
		want    string
		wantErr func(error) bool
		version string // of the answer
	}{
		"and the answer is the mirror that follows": {pod: mirror("east"), change: debugged, want: patch, version: "9"},
		"and tried there as well":                   {pod: mirror("east"), change: debugged, dryRun: []string{"All"}, want: patch, version: "7"},
		"unless there is none":                      {pod: mirror("east"), change: unchanged, version: "7"},
		"unless the cluster refuses":                {pod: mirror("east"), change: debugged, refusal: apierrors.NewForbidden(api.Resource("pods"), "web-1", errors.New("no")), want: patch, wantErr: apierrors.IsForbidden},
		"unless the cluster is silent":              {pod: mirror("east"), change: debugged, refusal: errors.New("connection refused"), want: patch, wantErr: apierrors.IsServiceUnavailable},
		"unless it is not known":                    {pod: mirror("west"), change: debugged, wantErr: apierrors.IsServiceUnavailable},
		"unless it runs nowhere":                    {pod: mirror(""), change: debugged, version: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(storagetest.LiveOf("web-1"))
			var got clienttesting.PatchActionImpl
			client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				got = action.(clienttesting.PatchActionImpl)
				made := &corev1.Pod{}
				made.Spec.EphemeralContainers = []corev1.EphemeralContainer{
					{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "tools"}},
				}
				return true, made, test.refusal
			})
			watcher := watch.NewFakeWithChanSize(2, false)
			watcher.Modify(test.pod)
			shown := debugged(test.pod)
			shown.ResourceVersion = "9"
			watcher.Modify(shown)
			r := &podChangeREST{
				patchStorage: stockChange{t: t, pod: test.pod}, subresource: "ephemeralcontainers", same: sameEphemeralContainers,
				below: foundIn(test.pod, storagetest.Connections{"east": storagetest.Cluster(client)}), pods: mirrors{watcher},
			}
			ctx, _ := storagetest.As(t, "jane")
			info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
				return test.change(old.(*api.Pod)), nil
			})
			answer, _, err := r.Update(ctx, "web-1", info, nil, nil, false, &metav1.UpdateOptions{DryRun: test.dryRun})
			if string(got.GetPatch()) != test.want || test.want != "" && got.GetSubresource() != "ephemeralcontainers" {
				t.Errorf("patch of %q below %s, want\n%s", got.GetSubresource(), got.GetPatch(), test.want)
			}
			if len(got.PatchOptions.DryRun) != len(test.dryRun) {
				t.Errorf("dry run below: %q, want %q", got.PatchOptions.DryRun, test.dryRun)
			}
			if test.wantErr != nil {
				if !test.wantErr(err) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if version := answer.(*api.Pod).ResourceVersion; version != test.version {
				t.Errorf("the answer is version %s, want %s", version, test.version)
			}
		})
	}
}

func TestAnswerDoesNotWaitForAMirrorThatIsGone(t *testing.T) {
	watcher := watch.NewFakeWithChanSize(1, false)
	watcher.Delete(mirror("east"))
	want := debugged(mirror("east"))
	r := &podChangeREST{same: sameEphemeralContainers, pods: mirrors{watcher}}
	if got := r.awaitMirror(t.Context(), want, want); got != want {
		t.Errorf("answer %+v, want what it was to become", got)
	}
}

func TestResourcesAreCompared(t *testing.T) {
	cpu := func(v string) api.ResourceRequirements {
		return api.ResourceRequirements{Requests: api.ResourceList{api.ResourceCPU: resource.MustParse(v)}}
	}
	pod := func(v string) *api.Pod {
		return &api.Pod{Spec: api.PodSpec{Containers: []api.Container{{Resources: cpu(v)}}}}
	}
	sidecar, whole := pod("1"), pod("1")
	sidecar.Spec.InitContainers = []api.Container{{Resources: cpu("1")}}
	requirements := cpu("1")
	whole.Spec.Resources = &requirements
	for name, test := range map[string]struct {
		a, b *api.Pod
		want bool
	}{
		"the same":                    {pod("1"), pod("1"), true},
		"the same in other words":     {pod("1"), pod("1000m"), true},
		"a container's differ":        {pod("1"), pod("2"), false},
		"an init container's are new": {pod("1"), sidecar, false},
		"the pod's are new":           {pod("1"), whole, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sameResources(test.a, test.b); got != test.want {
				t.Errorf("the same: %t", got)
			}
		})
	}
}
