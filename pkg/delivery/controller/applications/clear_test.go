package applications

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
)

// What is in no namespace has no owner reference, so it is deleted with its application, by the rights that it was made by.
func TestWhatIsInNoNamespaceGoesWithItsApplication(t *testing.T) {
	mine := func(kind, group, name, uid string) *metav1.PartialObjectMetadata {
		out := &metav1.PartialObjectMetadata{}
		out.APIVersion, out.Kind, out.Name, out.UID = group+"/v1", kind, name, "u"
		out.Labels = map[string]string{v1alpha1.LabelApplication: "web", "team": "shop"}
		out.Annotations = map[string]string{v1alpha1.AnnotationOwner: "shop/web/" + uid, v1alpha1.AnnotationApplied: "x", "note": "mine"}
		return out
	}
	for name, test := range map[string]struct {
		account string
		orphan  bool
		refuses bool
		want    string
		says    string
	}{
		"it is deleted, rights last":        {account: "robot", want: "delete high, delete reads"},
		"or set free":                       {account: "robot", orphan: true, want: "patch high, patch reads"},
		"not by Manifold's own rights":      {says: "ClusterRole/reads is in no namespace: set spec.serviceAccountName to a ServiceAccount that may delete it, or delete it yourself"},
		"nor by rights that it has no more": {account: "robot", refuses: true, says: `delete ClusterRole/reads as ServiceAccount robot: clusterroles.rbac.authorization.k8s.io "reads" is forbidden: no: give it the right`},
	} {
		t.Run(name, func(t *testing.T) {
			app := inline(configMap("blue"))
			app.Spec.ServiceAccountName = test.account
			w := newWorld(t, nil, app)
			going := w.turn().DeepCopy()
			going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			if test.orphan {
				going.Finalizers = append(going.Finalizers, metav1.FinalizerOrphanDependents)
			}
			w.departure.Scoped = followed(t, mine("ClusterRole", rbacv1.GroupName, "reads", string(app.UID)), mine("PriorityClass", "scheduling.k8s.io", "high", string(app.UID)),
				mine("ClusterRole", rbacv1.GroupName, "former", "another"))
			var did []string
			client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
			client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				name := ""
				switch action := action.(type) {
				case clienttesting.DeleteAction:
					name = action.GetName()
				case clienttesting.PatchAction:
					name = action.GetName()
					if patch := string(action.GetPatch()); !strings.Contains(patch, `"delivery.manifold.dev/owner":null`) || !strings.Contains(patch, `"delivery.manifold.dev/application":null`) || strings.Contains(patch, "note") {
						t.Errorf("%s is set free by %s", name, patch)
					}
				}
				if test.refuses {
					return true, nil, apierrors.NewForbidden(rbacv1.Resource(action.GetResource().Resource), name, errors.New("no"))
				}
				did = append(did, action.GetVerb()+" "+name)
				return true, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Any"}}, nil
			})
			w.departure.As = func(account objects.Account) (dynamic.Interface, error) {
				if account != (objects.Account{Namespace: "shop", ServiceAccount: "robot"}) {
					t.Errorf("it is written as %+v", account)
				}
				return client, nil
			}
			err := w.departure.Leave(t.Context(), going)
			if got := strings.Join(did, ", "); got != test.want || (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Fatalf("%s (%v), want %s (%s)", got, err, test.want, test.says)
			}
			left, getting := w.client.DeliveryV1alpha1().Applications("shop").Get(t.Context(), "web", metav1.GetOptions{})
			if getting != nil || slices.Contains(left.Finalizers, v1alpha1.FinalizerApplication) != (err != nil) {
				t.Errorf("the application is held by %v (%v)", left.Finalizers, getting)
			}
			if err == nil {
				return
			}
			if err := w.reporter.stays(t.Context(), going, err.Error()); err != nil {
				t.Fatal(err)
			}
			left, _ = w.client.DeliveryV1alpha1().Applications("shop").Get(t.Context(), "web", metav1.GetOptions{})
			if told := meta.FindStatusCondition(left.Status.Conditions, v1alpha1.ApplicationReleased); told == nil || told.Reason != "NotDeleted" || !strings.Contains(told.Message, test.says) {
				t.Errorf("the condition is %+v", told)
			}
		})
	}
}

// followed knows some objects in no namespace.
func followed(t *testing.T, present ...runtime.Object) *objects.ClusterScoped {
	t.Helper()
	known := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	c := objects.NewClusterScoped(metadatainformer.NewSharedInformerFactory(fake.NewSimpleMetadataClient(known, present...), 0))
	c.Define(cache.NewSharedIndexInformer(&cache.ListWatch{}, &apiextensionsv1.CustomResourceDefinition{}, 0, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for deadline := time.After(20 * time.Second); !c.Known(true); {
		select {
		case <-deadline:
			t.Fatal("it is still not known what there is")
		case <-time.After(time.Millisecond):
		}
	}
	return c
}
