// Package storagetest has what the tests of changed storage share: users, clusters and stores.
package storagetest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // strategies convert
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/registrytest"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
)

// Warnings are those of a response.
type Warnings struct{ Texts []string }

// AddWarning implements warning.Recorder.
func (w *Warnings) AddWarning(_, text string) { w.Texts = append(w.Texts, text) }

// As returns the context of a request of a user, and the warnings that the response will carry.
func As(t *testing.T, name string) (context.Context, *Warnings) {
	seen := &Warnings{}
	ctx := request.WithUser(request.WithNamespace(t.Context(), "shop"), &user.DefaultInfo{Name: name})
	return warning.WithWarningRecorder(ctx, seen), seen
}

// CachedOptions returns options of a store with a watch cache, over an etcd of its own.
func CachedOptions(t *testing.T, resource string) generic.RESTOptions {
	t.Helper()
	config, server := registrytest.NewEtcdStorage(t, "")
	config.EventsHistoryWindow = storagebackend.DefaultEventsHistoryWindow
	t.Cleanup(func() { server.Terminate(t) })
	return generic.RESTOptions{
		StorageConfig: config, Decorator: genericregistry.StorageWithCacher(), DeleteCollectionWorkers: 1, ResourcePrefix: resource,
	}
}

// AwaitCache waits until the watch cache of a store answers: before, watches are refused.
func AwaitCache(t *testing.T, store *genericregistry.Store) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return store.ReadinessCheck() == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// By returns the context of a user's request in namespace "shop".
func By(t *testing.T, user string) context.Context {
	t.Helper()
	ctx, _ := As(t, user)
	return request.WithNamespace(ctx, "shop")
}

// DeletedBelow returns a connection to a cluster that does something above, as its syncer would, while it answers the deletion.
func DeletedBelow(resource string, then func() error) Connections {
	client := fake.NewClientset()
	client.PrependReactor("delete", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, then() })
	return Connections{"east": Cluster(client)}
}

// EastSyncer is the identity of a cluster.
const EastSyncer = "system:manifold:cluster:east"

// Cluster is a connection to a cluster at https://east.example/base.
func Cluster(client *fake.Clientset) *below.Connection {
	if client == nil {
		client = fake.NewClientset(LiveOf("web-1"))
	}
	return &below.Connection{Client: client, Host: &url.URL{Scheme: "https", Host: "east.example", Path: "/base/"}, Transport: http.DefaultTransport}
}

// LiveOf is the pod that a mirror shows, or another of its namespace, as its cluster has it.
func LiveOf(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-below"}}
}

// Known is the identity of the logical cluster.
func Known() (string, error) { return "logical", nil }

// Connections are clusters by name.
type Connections map[string]*below.Connection

// Connection implements below.Connections.
func (c Connections) Connection(name string) (*below.Connection, error) {
	if found, ok := c[name]; ok {
		return found, nil
	}
	return nil, errors.New("it has not joined")
}

// PatchedBelow returns a connection to a cluster that looks at what is stored above when it is told to change something.
func PatchedBelow(resource string, made runtime.Object, refusal error, look func()) Connections {
	client := fake.NewClientset(LiveOf("web-1"))
	client.PrependReactor("patch", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		look()
		return true, made, refusal
	})
	return Connections{"east": Cluster(client)}
}

// Labelling gives an object labels in place of those that it has.
func Labelling(labels map[string]string) rest.UpdatedObjectInfo {
	return rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		out := old.DeepCopyObject()
		out.(metav1.Object).SetLabels(labels)
		return out, nil
	})
}

// Updating returns the context of a user's update in namespace "shop", as the server makes it.
func Updating(t *testing.T, resource string) context.Context {
	t.Helper()
	return request.WithRequestInfo(By(t, "jane"), &request.RequestInfo{
		IsResourceRequest: true, Verb: "update", APIVersion: "v1", Resource: resource, Namespace: "shop",
	})
}

// Manages is the entry of a manager that sets the fields.
func Manages(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// Teapot is the address of a cluster that answers what it is asked, and sends clients elsewhere.
func Teapot(t *testing.T) *url.URL {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/api/v1/elsewhere")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.String())
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Proxied is a request to a proxy.
type Proxied struct {
	ID      string
	Options runtime.Object
	// Want is what arrives at a teapot, and Refusal how it is refused instead.
	Want    string
	Refusal func(error) bool
}

// Proxying sends requests through a proxy.
func Proxying(t *testing.T, proxy rest.Connecter, requests map[string]Proxied) {
	for name, test := range requests {
		t.Run(name, func(t *testing.T) {
			ctx, _ := As(t, "jane")
			handler, err := proxy.Connect(ctx, test.ID, test.Options, nil)
			if test.Refusal != nil {
				if !test.Refusal(err) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x?q=1", nil))
			if w.Code != http.StatusTeapot || w.Body.String() != test.Want || w.Header().Get("Location") != "/api/v1/elsewhere" {
				t.Errorf("%d %s to %s, want %s", w.Code, w.Body, w.Header().Get("Location"), test.Want)
			}
		})
	}
}

// MarkedBelow is what a cluster has of an object of namespace shop that has a UID above.
func MarkedBelow(name string, above types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: "uid-live", Labels: map[string]string{v1alpha1.LabelLogicalCluster: "logical"},
		Annotations: map[string]string{
			v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: name, v1alpha1.AnnotationUID: string(above),
		},
	}
}
