package objects

import (
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/contained"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// of is the metadata of an object that an application has, applied or not.
func of(name string, applied bool) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: "uid", Labels: map[string]string{v1alpha1.LabelApplication: "web"},
		OwnerReferences: []metav1.OwnerReference{{UID: "app"}}, Annotations: map[string]string{v1alpha1.AnnotationVariant: "primary"},
	}
	if applied {
		out.Annotations[v1alpha1.AnnotationApplied] = "h"
	}
	return out
}

func TestWhatServiceAccountsWriteIsKnownByWatch(t *testing.T) {
	kube := informers.NewSharedInformerFactory(kubefake.NewClientset(
		&rbacv1.Role{ObjectMeta: of("reader", true)}, &rbacv1.RoleBinding{ObjectMeta: of("readers", true)},
		// The controller of slices gives them the labels of their Service.
		&discoveryv1.EndpointSlice{ObjectMeta: of("web-1", false)}, &discoveryv1.EndpointSlice{ObjectMeta: of("outside", true)},
	), 0)
	own := externalversions.NewSharedInformerFactory(ourfake.NewClientset(
		&manifold.PlacementPolicy{ObjectMeta: of("web-primary", false)}, &manifold.PlacementPolicy{ObjectMeta: of("mine", true)},
	), 0)
	store, err := NewStore(kube, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Grant(contained.PlacementPolicies, own.Manifold().V1alpha1().PlacementPolicies().Informer()); err != nil {
		t.Fatal(err)
	}
	told := make(chan cache.ObjectName, 100)
	synced, err := store.Watch(func(name cache.ObjectName) { told <- name })
	if err != nil {
		t.Fatal(err)
	}
	kube.Start(t.Context().Done())
	own.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), synced...) {
		t.Fatal("not all is known")
	}
	web := cache.NewObjectName("shop", "web")
	found, err := store.Of(web)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, p.Key.String())
	}
	slices.Sort(got)
	if want := "EndpointSlice/outside PlacementPolicy/mine Role/reader RoleBinding/readers"; strings.Join(got, " ") != want {
		t.Errorf("it has %v, want %s", got, want)
	}
	for range found {
		if name := <-told; name != web {
			t.Errorf("told is of %s", name)
		}
	}
	if len(told) > 0 {
		t.Errorf("told is %d times too often", len(told))
	}
	if _, known := store.Get("shop", wanted.Key{Group: rbacv1.GroupName, Kind: "Role", Name: "other"}); !known {
		t.Error("whether there is a Role is not known")
	}
}

func TestWhatServiceAccountsWriteIsDeletedAsOneAlone(t *testing.T) {
	for account, want := range map[string]string{"": "Role/reader: it is deleted as a ServiceAccount alone", "robot": ""} {
		kube := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0)
		store, err := NewStore(kube, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := kube.Rbac().V1().Roles().Informer().GetIndexer().Add(&rbacv1.Role{ObjectMeta: of("reader", true)}); err != nil {
			t.Fatal(err)
		}
		client, deleted := dynamicfake.NewSimpleDynamicClient(scheme.Scheme), ""
		client.PrependReactor("delete", "roles", func(action clienttesting.Action) (bool, runtime.Object, error) {
			deleted += action.GetNamespace() + "/" + action.(clienttesting.DeleteAction).GetName()
			return true, nil, nil
		})
		carrier := &Carrier{Writer: NewWriter(store, func(Account) (dynamic.Interface, error) { return client, nil }, newScopes())}
		all, err := store.Of(cache.NewObjectName("shop", "web"))
		if err != nil || len(all) != 1 {
			t.Fatalf("has %v (%v)", all, err)
		}
		err = carrier.prune(t.Context(), Order{
			Account: Account{"shop", account}, Owner: Owner{Namespace: "shop", Name: "web", UID: "app"}, Present: all, Prunes: true,
		})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) || (deleted == "shop/reader") != (want == "") {
			t.Errorf("as %q: error %v, deleted %q", account, err, deleted)
		}
	}
}

// A PlacementPolicy among the manifests is none of those that are made for the workloads, which go once nothing follows them.
func TestAPolicyAmongTheManifestsIsNotTakenForOneThatIsMade(t *testing.T) {
	mine, made := &manifold.PlacementPolicy{ObjectMeta: of("mine", true)}, &manifold.PlacementPolicy{ObjectMeta: of("web-canary", false)}
	client := ourfake.NewClientset(mine, made)
	policies := externalversions.NewSharedInformerFactory(client, 0).Manifold().V1alpha1().PlacementPolicies()
	for _, policy := range []*manifold.PlacementPolicy{mine, made} {
		if err := policies.Informer().GetIndexer().Add(policy); err != nil {
			t.Fatal(err)
		}
	}
	carrier := &Carrier{Policies: policies.Lister(), Manifold: client}
	if err := carrier.prunePolicies(t.Context(), Order{Account: Account{Namespace: "shop"}, Owner: Owner{Namespace: "shop", Name: "web", UID: "app"}}); err != nil {
		t.Fatal(err)
	}
	left, err := client.ManifoldV1alpha1().PlacementPolicies("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].Name != "mine" {
		t.Errorf("left are %v (%v)", left.Items, err)
	}
}
