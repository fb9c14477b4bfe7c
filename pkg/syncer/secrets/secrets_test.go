package secrets

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
)

var rbacResource = rbacv1.SchemeGroupVersion.WithResource("rolebindings")

// guarded is a cluster that lets nobody list Secrets in a namespace without the binding there.
func guarded(t *testing.T, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(objects...)
	client.PrependReactor("list", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		_, err := client.Tracker().Get(rbacResource, action.GetNamespace(), "manifold-syncer-logical-secrets")
		if apierrors.IsNotFound(err) {
			return true, nil, apierrors.NewForbidden(identity.Secrets.GroupResource(), "", err)
		}
		return false, nil, nil
	})
	return client
}

func strange(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name)}}
}

func ownSecret(namespace, name string) *corev1.Secret {
	s := strange(namespace, name)
	s.Labels = map[string]string{v1alpha1.LabelLogicalCluster: "logical"}
	s.Annotations = map[string]string{v1alpha1.AnnotationNamespace: namespace, v1alpha1.AnnotationName: name}
	return s
}

// watching starts the watches of a cluster's Secrets, in namespaces that are ours, of which some have Secrets above.
func watching(t *testing.T, client *fake.Clientset, namespaces, wanted []string) (w *Watch, seen *atomic.Int32) {
	t.Helper()
	w, seen = New(client, "logical", nil), &atomic.Int32{}
	w.Wanted = func(namespace string) bool { return slices.Contains(wanted, namespace) }
	w.Handler = cache.ResourceEventHandlerFuncs{AddFunc: func(any) { seen.Add(1) }, DeleteFunc: func(any) { seen.Add(-1) }}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); w.Wait() })
	if err := w.Start(ctx, namespaces); err != nil {
		t.Fatal(err)
	}
	return w, seen
}

func bindings(t *testing.T, client *fake.Clientset) []string {
	t.Helper()
	list, err := client.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, b := range list.Items {
		if b.RoleRef.Name != b.Name || len(b.Subjects) != 1 || b.Subjects[0].Name != "manifold-syncer-logical" || b.Labels[v1alpha1.LabelLogicalCluster] != "logical" {
			t.Errorf("the binding is %+v", b)
		}
		out = append(out, b.Namespace+"/"+b.Name)
	}
	slices.Sort(out)
	return out
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := utilwait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("it is not so that %s", what)
	}
}

func TestTheRightToReadSecretsIsTakenWhereTheyAreOurs(t *testing.T) {
	client := guarded(t, ownSecret("shop", "key"), ownSecret("bank", "key"))
	w, seen := watching(t, client, []string{"shop", "empty"}, []string{"shop"})
	if got, want := bindings(t, client), []string{"shop/manifold-syncer-logical-secrets"}; !slices.Equal(got, want) {
		t.Errorf("bindings %v, want %v: the other namespace has none above", got, want)
	}
	if got, want := w.Store.ListKeys(), []string{"shop/key"}; !slices.Equal(got, want) || seen.Load() != 1 {
		t.Errorf("seen are %v, told of %d, want %v", got, seen.Load(), want)
	}

	// One that is to get a Secret needs the right from then on.
	w.Follow("empty", true)
	eventually(t, "the namespace is watched", func() bool { return w.Seen("empty") && len(bindings(t, client)) == 2 })
	if _, err := client.CoreV1().Secrets("empty").Create(t.Context(), ownSecret("empty", "late"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what comes is seen", func() bool { return seen.Load() == 2 })

	// A namespace that goes takes along what is known of it.
	w.Leave("shop")
	if got, want := w.Store.ListKeys(), []string{"empty/late"}; !slices.Equal(got, want) || seen.Load() != 1 {
		t.Errorf("known are %v, told of %d, want %v", got, seen.Load(), want)
	}
	if err := w.Unbind(t.Context(), "shop"); err != nil || len(bindings(t, client)) != 1 {
		t.Errorf("the right is given back: %v, %v", bindings(t, client), err)
	}
}

func TestAClusterThatLetsNobodyTakeTheRightHoldsUpNothing(t *testing.T) {
	client := guarded(t)
	client.PrependReactor("create", "rolebindings", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(rbacResource.GroupResource(), "", nil)
	})
	w, _ := watching(t, client, []string{"shop"}, []string{"shop"})
	if n := w.Unseen(); n != 0 || !w.Seen("shop") {
		t.Errorf("%d namespaces are waited for", n)
	}
}

// TestSecretsOfSharedNamespacesAreReadByTryingToChangeThem has a cluster that lets us change what is ours alone.
func TestSecretsOfSharedNamespacesAreReadByTryingToChangeThem(t *testing.T) {
	client := guarded(t, ownSecret("default", "ours"), strange("default", "theirs"))
	asked := map[string]int{}
	client.PrependReactor("patch", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		asked[patch.Name]++
		if !slices.Equal(patch.PatchOptions.DryRun, []string{metav1.DryRunAll}) || string(patch.Patch) != "{}" {
			t.Errorf("it is a change: %+v", patch)
		}
		if patch.Name == "theirs" {
			return true, nil, apierrors.NewForbidden(identity.Secrets.GroupResource(), patch.Name, nil)
		}
		live, err := client.Tracker().Get(identity.Secrets, patch.Namespace, patch.Name)
		return true, live, err
	})
	w, _ := watching(t, client, nil, nil)
	w.Follow("default", true)
	if len(w.spaces) > 0 {
		t.Error("the Secrets of everybody there are watched")
	}
	for range 2 {
		for name, want := range map[string]bool{"ours": true, "theirs": false, "none": false} {
			live, err := w.Look(t.Context(), cache.ObjectName{Namespace: "default", Name: name})
			if err != nil || (live != nil) != want {
				t.Errorf("%s is %v, %v, want that it is there: %t", name, live, err, want)
			}
		}
	}
	for name, times := range asked {
		if times != 1 {
			t.Errorf("%s was asked for %d times, want once", name, times)
		}
	}
	// A name that is taken is told from one that is free.
	if live, err := w.read(t.Context(), cache.ObjectName{Namespace: "default", Name: "theirs"}); err != nil || live.Name != "theirs" || len(live.Labels) > 0 {
		t.Errorf("a stranger's is %v, %v", live, err)
	}
	if got := bindings(t, client); len(got) > 0 {
		t.Errorf("it has bound itself to the role: %v", got)
	}
}
