package pods

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/generic/rest"
	"k8s.io/client-go/kubernetes/fake"
	api "k8s.io/kubernetes/pkg/apis/core"
	podstrategy "k8s.io/kubernetes/pkg/registry/core/pod"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// mirror is a pod in a cluster, as the logical cluster stores it. That of no cluster is none.
func mirror(cluster string) *api.Pod {
	pod := &api.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "uid-below", ResourceVersion: "7"},
		Spec:       api.PodSpec{NodeName: cluster, Containers: []api.Container{{Name: "app", Image: "image"}}},
		Status:     api.PodStatus{Phase: api.PodRunning},
	}
	if cluster != "" {
		pod.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster}
	}
	return pod
}

func TestSyncerReportsPodsWithTheUIDAgeAndStatusThatTheyHaveBelow(t *testing.T) {
	for who, want := range map[string]struct {
		uid     types.UID
		created string
		phase   api.PodPhase
		marks   bool
	}{
		storagetest.EastSyncer: {"uid-below", "2026-11-20T12:00:00Z", api.PodRunning, false},
		"jane":                 {"made-above", "0001-01-01T00:00:00Z", api.PodPending, true},
	} {
		t.Run(who, func(t *testing.T) {
			ctx, _ := storagetest.As(t, who)
			pod := mirror("east")
			pod.UID = "made-above"
			pod.Annotations = map[string]string{
				v1alpha1.AnnotationUID: "uid-below", v1alpha1.AnnotationCreated: "2026-11-20T12:00:00Z", "note": "own",
			}
			podStrategy{podstrategy.Strategy}.PrepareForCreate(ctx, pod)
			if pod.UID != want.uid || pod.CreationTimestamp.UTC().Format(time.RFC3339) != want.created || pod.Status.Phase != want.phase {
				t.Errorf("UID %s, created %s, phase %s; want %+v", pod.UID, pod.CreationTimestamp.UTC(), pod.Status.Phase, want)
			}
			_, uid := pod.Annotations[v1alpha1.AnnotationUID]
			_, created := pod.Annotations[v1alpha1.AnnotationCreated]
			if uid != want.marks || created != want.marks || pod.Annotations["note"] != "own" {
				t.Errorf("annotations %v", pod.Annotations)
			}
		})
	}
}

// The store counts no generation of what it takes as it is: it is the cluster's to count.
func TestAMirrorHasTheGenerationOfItsPod(t *testing.T) {
	for name, test := range map[string]struct {
		who, reported string
		want          int64
	}{
		"as its syncer reports it":  {storagetest.EastSyncer, "4", 4},
		"else it stays":             {storagetest.EastSyncer, "", 2},
		"nobody else may report it": {"jane", "4", 2},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, test.who)
			old, pod := mirror("east"), mirror("east")
			old.Generation, pod.Generation = 2, 2
			metadata.SetAnnotation(pod, v1alpha1.AnnotationGeneration, test.reported)
			podStrategy{podstrategy.Strategy}.PrepareForUpdate(ctx, pod, old)
			if _, left := pod.Annotations[v1alpha1.AnnotationGeneration]; pod.Generation != test.want || left && test.who == storagetest.EastSyncer {
				t.Errorf("generation %d, annotations %v; want %d", pod.Generation, pod.Annotations, test.want)
			}
		})
	}
}

func TestSyncerUpdatesSpecAndStatusAtOnce(t *testing.T) {
	for who, want := range map[string]api.PodPhase{storagetest.EastSyncer: api.PodFailed, "jane": api.PodRunning} {
		t.Run(who, func(t *testing.T) {
			ctx, _ := storagetest.As(t, who)
			old, pod := mirror("east"), mirror("east")
			pod.Status.Phase = api.PodFailed
			podStrategy{podstrategy.Strategy}.PrepareForUpdate(ctx, pod, old)
			if pod.Status.Phase != want {
				t.Errorf("phase %s, want %s", pod.Status.Phase, want)
			}
		})
	}
}

func TestWhoMayReportAndEditMirrors(t *testing.T) {
	anonymous := mirror("east")
	anonymous.UID = ""
	edited := mirror("east")
	edited.Spec.Containers[0].Image = "other"
	// own is a pod that a user made and that is decided to run in west; east may have it, with a node or without.
	own := func(has, node string) *api.Pod {
		pod := mirror("")
		pod.Spec.NodeName = node
		pod.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"west":{"replicas":1}}`}
		if has != "" || node != "" {
			pod.Annotations[v1alpha1.AnnotationPodUID] = "below"
		}
		if has != "" {
			pod.Annotations[v1alpha1.AnnotationPodCluster] = has
		}
		return pod
	}
	const cluster = "metadata.annotations[manifold.dev/cluster]"
	for name, test := range map[string]struct {
		who         string
		old, object *api.Pod // old is nil for a new pod
		want        string   // the field that the error is about; "" for none
	}{
		"a syncer reports a pod of its own cluster":           {storagetest.EastSyncer, nil, mirror("east"), ""},
		"a syncer updates a pod of its own cluster":           {storagetest.EastSyncer, mirror("east"), mirror("east"), ""},
		"a syncer may not report another cluster's pod":       {storagetest.EastSyncer, nil, mirror("west"), "spec.nodeName"},
		"a syncer may not report a pod of no cluster":         {storagetest.EastSyncer, nil, mirror(""), "metadata.annotations[manifold.dev/cluster]"},
		"a syncer may not take over another cluster's pod":    {storagetest.EastSyncer, mirror("west"), mirror("east"), "spec.nodeName"},
		"a syncer may not give its pod to another cluster":    {storagetest.EastSyncer, mirror("east"), mirror("west"), "spec.nodeName"},
		"a mirror carries the UID of its pod":                 {storagetest.EastSyncer, nil, anonymous, "metadata.annotations[manifold.dev/uid]"},
		"a syncer tells that a pod has left, which waited":    {storagetest.EastSyncer, own("east", ""), own("", ""), ""},
		"or that it has got a node after all":                 {storagetest.EastSyncer, own("east", ""), own("", "east"), ""},
		"or that it goes on waiting":                          {storagetest.EastSyncer, own("east", ""), own("east", ""), ""},
		"a pod that waits where its user wants it is":         {storagetest.EastSyncer, own("east", "east"), own("east", "east"), ""},
		"and is not another syncer's to report":               {storagetest.EastSyncer, own("west", "east"), own("west", "east"), cluster + " " + cluster},
		"a pod that runs has not left":                        {storagetest.EastSyncer, own("", "east"), own("", ""), cluster},
		"a pod that waits is not reported by another syncer":  {storagetest.EastSyncer, own("west", ""), own("west", ""), cluster + " " + cluster},
		"nor told to have left by one":                        {storagetest.EastSyncer, own("west", ""), own("", ""), cluster},
		"a pod that is decided to run elsewhere is not taken": {storagetest.EastSyncer, own("", ""), own("east", ""), cluster},
		"a user may not edit a mirror":                        {"jane", mirror("east"), edited, "metadata.name"},
		"Manifold's own controllers may not edit one either":  {v1alpha1.PlacementUser, mirror("east"), edited, "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, test.who)
			s := podStrategy{podstrategy.Strategy}
			var fields []string
			if test.old == nil {
				for _, err := range s.Validate(ctx, test.object) {
					fields = append(fields, err.Field)
				}
			} else {
				for _, err := range s.ValidateUpdate(ctx, test.object, test.old) {
					fields = append(fields, err.Field)
				}
			}
			var want []string
			if test.want != "" {
				want = strings.Fields(test.want)
			}
			if !slices.Equal(fields, want) {
				t.Errorf("errors about %v, want %v", fields, want)
			}
		})
	}
}

func TestPreconditionsOfADeletionAreCheckedAbove(t *testing.T) {
	uid := func(v string) *types.UID { u := types.UID(v); return &u }
	for name, test := range map[string]struct {
		preconditions *metav1.Preconditions
		want          bool
	}{
		"none":                     {nil, true},
		"empty ones":               {&metav1.Preconditions{}, true},
		"its UID":                  {&metav1.Preconditions{UID: uid("uid-below")}, true},
		"its version":              {&metav1.Preconditions{ResourceVersion: new("7")}, true},
		"another UID":              {&metav1.Preconditions{UID: uid("another")}, false},
		"another version":          {&metav1.Preconditions{ResourceVersion: new("8")}, false},
		"its UID, another version": {&metav1.Preconditions{UID: uid("uid-below"), ResourceVersion: new("8")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkPreconditions(mirror("east"), test.preconditions)
			if (err == nil) != test.want || err != nil && !apierrors.IsConflict(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestErrorsOfAClusterAreToldFromItsSilence(t *testing.T) {
	refusal := apierrors.NewForbidden(api.Resource("pods"), "web-1", errors.New("no"))
	if got := fromCluster(refusal, mirror("east")); got != error(refusal) {
		t.Errorf("%v, want the cluster's own answer", got)
	}
	silence := fromCluster(&url.Error{Op: "Delete", URL: "https://east", Err: context.DeadlineExceeded}, mirror("east"))
	if !apierrors.IsServiceUnavailable(silence) || !strings.Contains(silence.Error(), `cluster "east"`) {
		t.Errorf("%v, want that the cluster does not answer", silence)
	}
}

func foundIn(pod *api.Pod, c storagetest.Connections) podsBelow {
	return podsBelow{connections: c, identity: storagetest.Known, get: func(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
		if name != pod.Name {
			return nil, apierrors.NewNotFound(api.Resource("pods"), name)
		}
		return pod, nil
	}}
}

func TestLocationOfASubresource(t *testing.T) {
	lines := int64(5)
	for name, test := range map[string]struct {
		name, subresource string
		options           runtime.Object
		want              string
	}{
		"exec with its options": {"web-1", "exec",
			&api.PodExecOptions{Container: "app", Command: []string{"sh", "-c", "echo a b"}, Stdin: true, Stdout: true, TTY: true},
			"https://east.example/base/api/v1/namespaces/shop/pods/web-1/exec?command=sh&command=-c&command=echo+a+b&container=app&stdin=true&stdout=true&tty=true"},
		"attach": {"web-1", "attach", &api.PodAttachOptions{Stdout: true}, "https://east.example/base/api/v1/namespaces/shop/pods/web-1/attach?stdout=true"},
		"port-forward": {"web-1", "portforward", &api.PodPortForwardOptions{Ports: []int32{80, 443}},
			"https://east.example/base/api/v1/namespaces/shop/pods/web-1/portforward?ports=80&ports=443"},
		"a log": {"web-1", "log", &api.PodLogOptions{Follow: true, TailLines: &lines},
			"https://east.example/base/api/v1/namespaces/shop/pods/web-1/log?follow=true&tailLines=5"},
		"a port of a pod": {"http:web-1:8080", "proxy", &api.PodProxyOptions{},
			"https://east.example/base/api/v1/namespaces/shop/pods/http:web-1:8080/proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			connection := storagetest.Cluster(nil)
			got, err := location(connection, mirror("east"), test.name, test.subresource, test.options)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != test.want {
				t.Errorf("%s, want\n%s", got, test.want)
			}
			if connection.Host.Path != "/base/" || connection.Host.RawQuery != "" {
				t.Errorf("the connection's address was changed to %s", connection.Host)
			}
		})
	}
}

func TestPodIsFoundInItsCluster(t *testing.T) {
	east := storagetest.Cluster(nil)
	gone, replaced := storagetest.Cluster(fake.NewClientset()), storagetest.LiveOf("web-1")
	replaced.UID = "next"
	own := func(annotations map[string]string) *api.Pod {
		pod := mirror("")
		pod.Spec.NodeName, pod.Annotations = "east", annotations
		return pod
	}
	for name, test := range map[string]struct {
		pod  *api.Pod
		name string
		want func(error) bool // nil if it is found
	}{
		"not where a user has written that it runs": {own(nil), "web-1", apierrors.IsBadRequest},
		"nor where it was decided to run then":      {own(map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`}), "web-1", apierrors.IsBadRequest},
		"nor where it waits":                        {own(map[string]string{v1alpha1.AnnotationPodUID: "uid-below", v1alpha1.AnnotationPodCluster: "east"}), "web-1", apierrors.IsBadRequest},
		"not as a stranger's of its name":           {own(map[string]string{v1alpha1.AnnotationPodUID: "uid-below"}), "web-1", apierrors.IsConflict},
		"a mirror":                                  {mirror("east"), "web-1", nil},
		"a pod that is not there":                   {mirror("east"), "web-2", apierrors.IsNotFound},
		"a pod that runs nowhere":                   {mirror(""), "web-1", apierrors.IsBadRequest},
		"one of a cluster that is not":              {mirror("west"), "web-1", apierrors.IsServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			pod, connection, err := foundIn(test.pod, storagetest.Connections{"east": east}).find(t.Context(), test.name)
			if test.want == nil {
				if err != nil || pod != test.pod || connection != east {
					t.Errorf("found %v at %v, %v", pod, connection, err)
				}
				return
			}
			if !test.want(err) {
				t.Errorf("error %v", err)
			}
		})
	}
	for name, test := range map[string]struct {
		cluster *below.Connection
		want    func(error) bool
	}{
		"a mirror whose pod has gone":        {gone, apierrors.IsNotFound},
		"a mirror whose pod has a successor": {storagetest.Cluster(fake.NewClientset(replaced)), apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := foundIn(mirror("east"), storagetest.Connections{"east": test.cluster}).find(t.Context(), "web-1"); !test.want(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestLogIsStreamedFromTheCluster(t *testing.T) {
	r := &logREST{foundIn(mirror("east"), storagetest.Connections{"east": storagetest.Cluster(nil)})}
	got, err := r.Get(t.Context(), "web-1", &api.PodLogOptions{Container: "app", Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	streamer := got.(*genericrest.LocationStreamer)
	if !strings.HasPrefix(streamer.Location.String(), "https://east.example/base/api/v1/namespaces/shop/pods/web-1/log?") || !streamer.Flush {
		t.Errorf("streams %s, flushed %t", streamer.Location, streamer.Flush)
	}
	tail := int64(-1)
	if _, err := r.Get(t.Context(), "web-1", &api.PodLogOptions{TailLines: &tail}); !apierrors.IsInvalid(err) {
		t.Errorf("error %v of invalid options", err)
	}
}

// verbs allows some verbs.
type verbs []string

func (v verbs) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(v, a.GetVerb()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "no rule", nil
}

// A WebSocket is opened by GET, which must not need less than kubectl's POST.
func TestStreamsNeedTheRightToCreate(t *testing.T) {
	for name, test := range map[string]struct {
		verb    string
		allowed verbs
		want    bool
	}{
		"a POST was authorized before":     {"create", nil, true},
		"a GET by one who may create":      {"get", verbs{"get", "create"}, true},
		"a GET by one who may only get is": {"get", verbs{"get"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, "jane")
			ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
				IsResourceRequest: true, Verb: test.verb, Resource: "pods", Subresource: "exec", Namespace: "shop", Name: "web-1",
			})
			b := foundIn(mirror("east"), storagetest.Connections{"east": storagetest.Cluster(nil)})
			b.authorizer = test.allowed
			_, err := (&execREST{stream{b}}).Connect(ctx, "web-1", &api.PodExecOptions{Container: "app"}, nil)
			if (err == nil) != test.want || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestAReportOfASyncerLeavesTheManagersOfAPodAlone(t *testing.T) {
	ctx, _ := storagetest.As(t, storagetest.EastSyncer)
	users := []metav1.ManagedFieldsEntry{storagetest.Manages("jane", `{"f:metadata":{"f:labels":{"f:color":{}}}}`)}
	pod, before := mirror("east"), mirror("east")
	before.ManagedFields = users
	pod.ManagedFields = []metav1.ManagedFieldsEntry{storagetest.Manages("manifold", `{"f:metadata":{"f:labels":{"f:color":{}}}}`)}
	podStrategy{podstrategy.Strategy}.PrepareForUpdate(ctx, pod, before)
	if !reflect.DeepEqual(pod.ManagedFields, users) {
		t.Errorf("the managers are %v, want %v", pod.ManagedFields, users)
	}
}
