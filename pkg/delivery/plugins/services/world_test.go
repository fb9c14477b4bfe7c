package services

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/logs"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/calls"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// world is a logical cluster, and who answers the plugins toy and other there.
type world struct {
	*testing.T
	*Server
	client  *fake.Clientset
	factory externalversions.SharedInformerFactory
	stop    func()
	over    chan struct{}

	mu      sync.Mutex
	version int
	// flying are the stages that run, by their IDs.
	flying map[string]calls.InFlight
	said   []logs.Said
	// refuses is what the log answers, and options change those of the server.
	refuses error
}

func newWorld(t *testing.T, options ...func(*Options)) *world {
	w := &world{T: t, client: fake.NewClientset(), flying: map[string]calls.InFlight{}}
	w.factory = externalversions.NewSharedInformerFactory(w.client, 0)
	// The fake does not count versions, and so takes what a real store refuses.
	stamp := func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		record := action.(clienttesting.CreateAction).GetObject().(*v1alpha1.PluginRecord)
		if action.GetVerb() == "update" {
			old, err := w.client.Tracker().Get(action.GetResource(), record.Namespace, record.Name)
			if err != nil {
				return true, nil, err
			}
			if old.(*v1alpha1.PluginRecord).ResourceVersion != record.ResourceVersion {
				return true, nil, apierrors.NewConflict(v1alpha1.Resource("pluginrecords"), record.Name, errors.New("changed"))
			}
		}
		w.version++
		record.ResourceVersion = fmt.Sprint(w.version)
		err := w.client.Tracker().Add(record)
		if action.GetVerb() == "update" {
			err = w.client.Tracker().Update(action.GetResource(), record, record.Namespace)
		} else if apierrors.IsAlreadyExists(err) {
			return true, nil, err
		}
		return true, record, err
	}
	w.client.PrependReactor("create", "pluginrecords", stamp)
	w.client.PrependReactor("update", "pluginrecords", stamp)
	w.restart(options...)
	w.factory.Start(t.Context().Done())
	w.factory.WaitForCacheSync(t.Context().Done())
	w.app("web", "toy", "other")
	w.app("api", "other")
	w.release("web-1", "web", nil)
	t.Cleanup(w.end)
	return w
}

// restart has another server answer, which knows nothing but what is stored.
func (w *world) restart(options ...func(*Options)) {
	w.Helper()
	w.end()
	factory := externalversions.NewSharedInformerFactory(w.client, 0)
	o := Options{Informers: factory, Client: w.client, Calls: w, Logs: w}
	for _, change := range options {
		change(&o)
	}
	var err error
	if w.Server, err = New(o); err != nil {
		w.Fatal(err)
	}
	was := w.factory
	w.factory = factory
	factory.Start(w.Context().Done())
	factory.WaitForCacheSync(w.Context().Done())
	for _, obj := range was.Delivery().V1alpha1().Applications().Informer().GetIndexer().List() {
		w.show(obj)
	}
	for _, obj := range was.Delivery().V1alpha1().Releases().Informer().GetIndexer().List() {
		w.show(obj)
	}
	ctx, stop := context.WithCancel(w.Context())
	w.stop, w.over = stop, make(chan struct{})
	go func(s *Server, over chan struct{}) {
		defer close(over)
		if err := s.Run(ctx); err != nil {
			w.Error(err)
		}
	}(w.Server, w.over)
}

func (w *world) end() {
	if w.stop == nil {
		return
	}
	w.stop()
	select {
	case <-w.over:
	case <-time.After(20 * time.Second):
		w.Error("the server does not end")
	}
}

// show has the caches show an object.
func (w *world) show(obj any) {
	w.Helper()
	ours := w.factory.Delivery().V1alpha1()
	informer := ours.Releases().Informer()
	if _, is := obj.(*v1alpha1.Application); is {
		informer = ours.Applications().Informer()
	}
	if err := informer.GetIndexer().Update(obj); err != nil {
		w.Fatal(err)
	}
}

func (w *world) app(name string, uses ...string) {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	for _, plugin := range uses {
		app.Spec.Plugins = append(app.Spec.Plugins, v1alpha1.ApplicationPlugin{Name: plugin})
	}
	w.show(app)
}

// release is one with a stage of each plugin, copy and look, of which the first runs.
func (w *world) release(name, app string, change func(*v1alpha1.Release)) *v1alpha1.Release {
	out := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}, Spec: v1alpha1.ReleaseSpec{Application: app},
		Status: v1alpha1.ReleaseStatus{
			Phase: v1alpha1.ReleaseRunning,
			Plan: &v1alpha1.ReleasePlan{Stages: []v1alpha1.Stage{
				{ID: "copy", Name: "TOY_COPY", Plugin: "toy", Planned: &v1alpha1.PlannedStage{Metadata: map[string]string{"planned": "yes", "both": "planned"}}},
				{ID: "look", Name: "OTHER_LOOK", Plugin: "other"}, {ID: "wait", Name: "WAIT"},
			}},
			Stages: []v1alpha1.StageStatus{{ID: "copy", Phase: v1alpha1.StageRunning, Attempt: 1}, {ID: "look", Phase: v1alpha1.StageNotStarted}, {ID: "wait", Phase: v1alpha1.StageNotStarted}},
		},
	}
	if change != nil {
		change(out)
	}
	w.show(out)
	return out
}

func (w *world) InFlight(release types.UID, stage string) (calls.InFlight, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, of := range w.flying {
		if (stage == "" || id == stage) && of.Release.UID == release {
			return of, true
		}
	}
	return calls.InFlight{}, false
}

func (w *world) Append(_ context.Context, _ *v1alpha1.Release, said logs.Said) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, said)
	return w.refuses
}

// as is how a plugin calls.
func (w *world) as(plugin string) pipedservice.PluginServiceClient {
	w.Helper()
	address, err := w.Address(plugin)
	if err != nil {
		w.Fatal(err)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	return pipedservice.NewPluginServiceClient(conn)
}

// is fails unless an error has a code.
func (w *world) is(err error, want codes.Code) {
	w.Helper()
	if got := status.Code(err); got != want {
		w.Errorf("%s, want %s: %v", got, want, err)
	}
}

// must returns an answer without an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(answer T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}
