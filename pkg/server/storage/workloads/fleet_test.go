package workloads

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	identities "github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// single is a storage that has one Deployment.
type single struct{ rest.Storage }

func (single) New() runtime.Object { return &apps.Deployment{} }

func (single) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if name != "web" {
		return nil, apierrors.NewNotFound(apps.Resource("deployments"), name)
	}
	out := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	out.Spec.Replicas = 3
	out.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":3}}`}
	return out, nil
}

func TestAFleetIsReadOfItsWorkload(t *testing.T) {
	kind, _ := projection.ForResource(identities.Deployments)
	fleets := moves.New(moves.Options{
		Clusters: func() []moves.Cluster { return nil },
		Cluster:  func(string) (moves.Cluster, bool) { return nil, false },
	})
	storage := map[string]rest.Storage{"deployments": single{}}
	if err := addFleet(storage, "deployments", reader{kind}, fleets); err != nil {
		t.Fatal(err)
	}
	subresource := storage["deployments/fleet"].(*fleetREST)
	if _, is := subresource.New().(*apps.Deployment); !is {
		t.Errorf("it belongs to a %T", subresource.New())
	}
	found, err := subresource.Get(t.Context(), "web", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	body, _, format, err := found.(rest.ResourceStreamer).InputStream(t.Context(), "", "")
	if err != nil || format != "application/json" {
		t.Fatalf("it is %s, %v", format, err)
	}
	var got moves.Standing
	if content, err := io.ReadAll(body); err != nil || json.Unmarshal(content, &got) != nil {
		t.Fatalf("it reads %s, %v", content, err)
	}
	want := moves.Standing{
		Fleet: moves.Fleet{
			Division: placement.Divisible, Replicas: 3, Decision: placement.Decision{"east": {Replicas: 3}}, Members: map[string]moves.Member{"east": {}},
			Rollout: got.Fleet.Rollout,
		},
		Steps: map[string]moves.Step{"east": {Share: placement.Share{Replicas: 3}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it stands (-want +got):\n%s", diff)
	}
	if _, err := subresource.Get(t.Context(), "api", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("of one that is not there: %v", err)
	}
	if err := addFleet(map[string]rest.Storage{}, "deployments", reader{kind}, fleets); err == nil {
		t.Error("a resource that cannot be read gets a fleet")
	}
}
