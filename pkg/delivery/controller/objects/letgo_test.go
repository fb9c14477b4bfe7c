package objects

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	ourfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// A release that has come to all targets lets go what no stage has: clusters of none of them, or that placement has added meanwhile.
func TestAReleaseThatHasSucceededLetsAllGo(t *testing.T) {
	const begun, settled = `{"east":{"replicas":2,"revision":"web-v1","target":"default"},"west":{"replicas":1}}`,
		`{\"east\":{\"replicas\":2,\"revision\":\"web-v1\",\"target\":\"default\"},\"west\":{\"replicas\":1,\"revision\":\"web-v1\",\"target\":\"default\"}}`
	for name, test := range map[string]struct {
		awaits, placement string
		releases          bool
		want              string
	}{
		"what waits nowhere is let alone":                 {placement: begun, releases: true},
		"before its end all wait that it has not come to": {awaits: "web", placement: begun},
		"at its end they take over what others hold": {
			awaits: "web", placement: begun, releases: true,
			want: `{"metadata":{"annotations":{"manifold.dev/awaits":null,"manifold.dev/placement":"` + settled + `"},"resourceVersion":"7","uid":"web"}}`,
		},
		"or the object as it stands, where it has come to none of its clusters": {
			awaits: "web", placement: `{"west":{"replicas":1}}`, releases: true,
			want: `{"metadata":{"annotations":{"manifold.dev/awaits":null},"resourceVersion":"7","uid":"web"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			kube := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0)
			store, err := NewStore(kube, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			present := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", ResourceVersion: "7", Annotations: map[string]string{
				v1alpha1.AnnotationApplied: "hash", manifold.AnnotationPlacement: test.placement,
			}}}
			if test.awaits != "" {
				present.Annotations[manifold.AnnotationAwaits] = test.awaits
			}
			if err := kube.Apps().V1().Deployments().Informer().GetIndexer().Add(present); err != nil {
				t.Fatal(err)
			}
			got := ""
			client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
			client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				got += string(action.(clienttesting.PatchAction).GetPatch())
				return true, &unstructured.Unstructured{}, nil
			})
			carrier := &Carrier{Manifold: ourfake.NewClientset(), Writer: NewWriter(store, func(account Account) (dynamic.Interface, error) {
				if account.ServiceAccount != "" {
					t.Errorf("it is written as ServiceAccount %s", account.ServiceAccount)
				}
				return client, nil
			}, nil)}
			order := Order{
				Account: Account{Namespace: "shop", ServiceAccount: "deployer"}, Owner: Owner{Namespace: "shop", Name: "web", UID: "app", Selected: true},
				Settled: true, Releases: test.releases,
				Wanted: wanted.Wanted{Objects: []wanted.Object{{
					Key: wanted.Key{Group: "apps", Kind: "Deployment", Name: "web"}, Variant: delivery.Primary, Workload: true, Held: true, Hash: "hash",
					Clusters: map[string]copies.Share{"east": {Revision: "web-v1", Target: "default"}}, Manifest: &unstructured.Unstructured{Object: map[string]any{}},
				}}},
			}
			if done, err := carrier.Bring(t.Context(), order, &Memory{}); err != nil || !done {
				t.Fatalf("done: %t, %v", done, err)
			}
			if got != test.want {
				t.Errorf("written is %s, want %s", got, test.want)
			}
		})
	}
}

// What a user has made anew has no label of its Application yet, and the release that had it is looked at again.
func TestWhatIsMadeAnewIsToldToItsApplication(t *testing.T) {
	kube := informers.NewSharedInformerFactory(kubefake.NewClientset(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{manifold.AnnotationAwaits: "web"}},
	}), 0)
	store, err := NewStore(kube, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan cache.ObjectName, 10)
	if _, err := store.Watch(func(name cache.ObjectName) { told <- name }); err != nil {
		t.Fatal(err)
	}
	kube.Start(t.Context().Done())
	if name := <-told; name != cache.NewObjectName("shop", "web") {
		t.Errorf("told is %s", name)
	}
}
