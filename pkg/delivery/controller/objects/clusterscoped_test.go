package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// scopes knows a few kinds.
type scopes struct{ meta.RESTMapper }

func (scopes) Reset() {}

func newScopes() scopes {
	out := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}: meta.RESTScopeRoot,
		{Version: "v1", Kind: "Namespace"}:                                       meta.RESTScopeRoot,
		{Version: "v1", Kind: "Node"}:                                            meta.RESTScopeRoot,
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}:     meta.RESTScopeRoot,
		{Group: "manifold.dev", Version: "v1alpha1", Kind: "Cluster"}:            meta.RESTScopeRoot,
		{Group: "example.com", Version: "v1", Kind: "Star"}:                      meta.RESTScopeRoot,
		{Group: "example.com", Version: "v1", Kind: "Planet"}:                    meta.RESTScopeRoot,
	} {
		out.Add(kind, scope)
	}
	return scopes{out}
}

// stars is the definition of a kind in no namespace.
func stars() *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "stars.example.com"}}
	out.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1"}, {Name: "v1", Served: true, Storage: true}, {Name: "v1beta1", Served: true}},
	}
	out.Status.AcceptedNames = apiextensionsv1.CustomResourceDefinitionNames{Plural: "stars", Kind: "Star"}
	out.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	return out
}

// followed knows the objects that there are, and the definitions of custom kinds. What changes comes in a channel.
func followed(t *testing.T, definitions []*apiextensionsv1.CustomResourceDefinition, present ...runtime.Object) (*ClusterScoped, chan cache.ObjectName, cache.SharedIndexInformer) {
	t.Helper()
	known := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	c := NewClusterScoped(metadatainformer.NewSharedInformerFactory(fake.NewSimpleMetadataClient(known, present...), 0))
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &apiextensionsv1.CustomResourceDefinition{}, 0, nil)
	c.Define(told{informer, definitions})
	changed := make(chan cache.ObjectName, 100)
	c.Follow(func(name cache.ObjectName) { changed <- name })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	await(t, "all is known", func() bool { return c.Known(true) && len(c.all()) == len(clusterScoped)+len(definitions) })
	return c, changed, informer
}

// told tells of definitions at once.
type told struct {
	cache.SharedIndexInformer
	definitions []*apiextensionsv1.CustomResourceDefinition
}

func (d told) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, crd := range d.definitions {
		handler.OnAdd(crd, true)
	}
	return d.SharedIndexInformer.AddEventHandler(handler)
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("still not so: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// scoped is an object in no namespace, with the mark of an owner unless that is "".
func scoped(apiVersion, kind, name, owner string) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"}}
	if owner != "" {
		out.Labels = map[string]string{v1alpha1.LabelApplication: strings.Split(owner, "/")[1]}
		out.Annotations = map[string]string{v1alpha1.AnnotationOwner: owner, v1alpha1.AnnotationVariant: "primary"}
	}
	return out
}

const rbac = "rbac.authorization.k8s.io/v1"

func TestWhatIsInNoNamespaceBelongsToTheApplicationThatItNames(t *testing.T) {
	c, changed, _ := followed(t, []*apiextensionsv1.CustomResourceDefinition{stars()},
		scoped(rbac, "ClusterRole", "one", "shop/web/app"), scoped(rbac, "ClusterRole", "two", "books/web/other"), scoped(rbac, "ClusterRole", "three", ""),
		scoped("example.com/v1", "Star", "sun", "shop/web/app"))
	var got []string
	for _, p := range c.Of(cache.NewObjectName("shop", "web")) {
		got = append(got, p.Group+" "+p.Key.String())
	}
	if want := "example.com Star/sun,rbac.authorization.k8s.io ClusterRole/one"; strings.Join(got, ",") != want {
		t.Errorf("has %v, want %s", got, want)
	}
	seen := map[string]bool{}
	for len(seen) < 2 {
		seen[(<-changed).String()] = true
	}
	if !seen["shop/web"] || !seen["books/web"] {
		t.Errorf("told is of %v", seen)
	}
	if object, known := c.Get(schema.GroupKind{Group: "example.com", Kind: "Star"}, "sun"); object == nil || !known {
		t.Error("the star is not known")
	}
	if _, known := c.Get(schema.GroupKind{Group: "example.com", Kind: "Planet"}, "earth"); known {
		t.Error("an object of a kind that nobody defines is known")
	}
	c.undefine(stars())
	if _, known := c.Resource(schema.GroupKind{Group: "example.com", Kind: "Star"}); known {
		t.Error("a kind is followed that is gone")
	}
}

func TestAMarkNamesAnApplication(t *testing.T) {
	for mark, want := range map[string]string{"shop/web/u": "shop/web", "": "", "shop/web": "", "shop//u": "", "a/b/c/d": ""} {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationOwner: mark}}}
		if name, of := markedBy(object); of != (want != "") || of && name.String() != want {
			t.Errorf("%q names %s (%t), want %q", mark, name, of, want)
		}
	}
}

// manifestOf is what is wanted of an object, as a revision has it that did not know its kind yet.
func manifestOf(apiVersion, kind string) wanted.Object {
	m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
		"name": "one", "namespace": "shop", "annotations": map[string]any{}, "labels": map[string]any{v1alpha1.LabelApplication: "web"},
		"ownerReferences": []any{map[string]any{"uid": "app", "name": "web"}},
	}}}
	return wanted.Object{Key: wanted.KeyOf(m), Variant: "primary", Manifest: m, Hash: "h"}
}

func TestWhoWritesWhatIsInNoNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		apiVersion, kind, account string
		present                   string
		bare                      bool
		want                      string
		waits                     bool
	}{
		"a ServiceAccount":                            {apiVersion: rbac, kind: "ClusterRole", account: "robot"},
		"never Manifold by its own rights":            {apiVersion: rbac, kind: "ClusterRole", want: "set spec.serviceAccountName"},
		"a custom kind":                               {apiVersion: "example.com/v1", kind: "Star", account: "robot"},
		"a custom kind that is not followed yet":      {apiVersion: "example.com/v1", kind: "Planet", account: "robot", want: "waiting for that", waits: true},
		"a kind that is not defined":                  {apiVersion: "example.com/v1", kind: "Moon", account: "robot", want: "has no kind Moon in example.com/v1: install its definition first", waits: true},
		"nobody a Node":                               {apiVersion: "v1", kind: "Node", account: "robot", want: "no part of applications"},
		"nobody an APIService":                        {apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", account: "robot", want: "no part of applications"},
		"nobody a Cluster":                            {apiVersion: "manifold.dev/v1alpha1", kind: "Cluster", account: "robot", want: "no part of applications"},
		"again, what it has":                          {apiVersion: rbac, kind: "ClusterRole", account: "robot", present: "shop/web/app"},
		"also if somebody has taken the label off":    {apiVersion: rbac, kind: "ClusterRole", account: "robot", present: "shop/web/app", bare: true},
		"not what another application has":            {apiVersion: rbac, kind: "ClusterRole", account: "robot", present: "books/api/b", want: "belongs to Application books/api: an object can belong to one"},
		"not what one of the same name has":           {apiVersion: rbac, kind: "ClusterRole", account: "robot", present: "books/web/b", want: "belongs to Application books/web"},
		"not what an earlier one of its own name has": {apiVersion: rbac, kind: "ClusterRole", account: "robot", present: "shop/web/before", want: "belongs to Application shop/web"},
		"not what is nobody's":                        {apiVersion: rbac, kind: "ClusterRole", account: "robot", present: "-", want: "does not belong to Application web"},
	} {
		t.Run(name, func(t *testing.T) {
			var there []runtime.Object
			switch test.present {
			case "":
			case "-":
				there = append(there, scoped(test.apiVersion, test.kind, "one", ""))
			default:
				one := scoped(test.apiVersion, test.kind, "one", test.present)
				if test.bare {
					one.Labels = nil
				}
				there = append(there, one)
			}
			c, _, _ := followed(t, []*apiextensionsv1.CustomResourceDefinition{stars()}, there...)
			store, err := NewStore(informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), nil, c)
			if err != nil {
				t.Fatal(err)
			}
			var applied []string
			client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
			client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch := action.(clienttesting.PatchActionImpl)
				out := &unstructured.Unstructured{}
				if err := out.UnmarshalJSON(patch.GetPatch()); err != nil {
					return true, nil, err
				}
				applied = append(applied, fmt.Sprintf("%q %q %d %s by %s", patch.Namespace, out.GetNamespace(), len(out.GetOwnerReferences()),
					out.GetAnnotations()[v1alpha1.AnnotationOwner], patch.PatchOptions.FieldManager))
				return true, out, nil
			})
			client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewNotFound(schema.GroupResource{}, "one")
			})
			var asked []string
			writer := NewWriter(store, func(account Account) (dynamic.Interface, error) {
				asked = append(asked, account.ServiceAccount)
				return client, nil
			}, newScopes())
			account, owner := Account{"shop", test.account}, Owner{Namespace: "shop", Name: "web", UID: "app"}
			_, err = writer.Try(t.Context(), account, owner, manifestOf(test.apiVersion, test.kind))
			_, err2 := writer.Apply(t.Context(), account, owner, manifestOf(test.apiVersion, test.kind))
			for _, err := range []error{err, err2} {
				refusal := new(RefusedError)
				if (err != nil) != (test.want != "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.kind+"/one")) {
					t.Errorf("error %v, want %q", err, test.want)
				}
				if errors.As(err, &refusal) == test.waits && err != nil {
					t.Errorf("%v is for good: %t", err, !test.waits)
				}
			}
			if test.want != "" {
				if len(applied) > 0 {
					t.Errorf("applied is %v", applied)
				}
				return
			}
			if want := `"" "" 0 shop/web/app by manifold-delivery-app`; len(applied) != 2 || applied[0] != want || applied[1] != want {
				t.Errorf("applied is %v, want %s twice", applied, want)
			}
			if strings.Join(asked, "") != strings.Repeat(test.account, 2) {
				t.Errorf("written as %v", asked)
			}
		})
	}
}

func TestWhatIsInNoNamespaceIsDeletedAsItsServiceAccountAlone(t *testing.T) {
	for account, want := range map[string]string{"": "deleted as a ServiceAccount alone", "robot": ""} {
		present := scoped(rbac, "ClusterRole", "one", "shop/web/app")
		c, _, _ := followed(t, nil, present)
		store, err := NewStore(informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), nil, c)
		if err != nil {
			t.Fatal(err)
		}
		client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
		var deleted []string
		client.PrependReactor("delete", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			deleted = append(deleted, action.GetNamespace()+"/"+action.(clienttesting.DeleteAction).GetName())
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
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("as %q: error %v, want %q", account, err, want)
		}
		if got := strings.Join(deleted, " "); (got == "/one") != (want == "") {
			t.Errorf("as %q: deleted is %q", account, got)
		}
	}
}
