package applications

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// delivered carries the marks of what was applied for the application.
func delivered(object metav1.Object, owned bool) runtime.Object {
	object.SetNamespace("shop")
	object.SetLabels(map[string]string{"app": "web", v1alpha1.LabelApplication: "web"})
	object.SetAnnotations(map[string]string{
		"note": "mine", "delivery.manifold.dev/applied": "x", manifold.AnnotationAwaits: "web", manifold.AnnotationPlacement: `{"east":{"replicas":2,"revision":"web-v1","target":"eu"},"west":{"replicas":1}}`,
	})
	if owned {
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(inline(), v1alpha1.SchemeGroupVersion.WithKind("Application"))})
	}
	return object.(runtime.Object)
}

func TestWhatAnApplicationLeavesBehindIsHeldNoMore(t *testing.T) {
	for name, test := range map[string]struct {
		orphan, owned, want bool
	}{
		"what it owns goes with it":            {owned: true},
		"what is orphaned stays":               {orphan: true, owned: true, want: true},
		"what was orphaned a moment ago stays": {want: true},
	} {
		t.Run(name, func(t *testing.T) {
			app := inline(deployment)
			w := newWorld(t, nil, app,
				delivered(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, test.owned), delivered(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, test.owned),
				&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}})
			going := w.turn().DeepCopy()
			going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			if test.orphan {
				going.Finalizers = append(going.Finalizers, metav1.FinalizerOrphanDependents)
			}
			if err := w.departure.Leave(t.Context(), going); err != nil {
				t.Fatal(err)
			}
			for _, resource := range []string{"deployments", "configmaps"} {
				gvr := appsv1.SchemeGroupVersion.WithResource(resource)
				object := "web"
				if resource == "configmaps" {
					gvr, object = corev1.SchemeGroupVersion.WithResource(resource), "settings"
				}
				got, err := w.dynamic.Resource(gvr).Namespace("shop").Get(t.Context(), object, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				annotations := got.GetAnnotations()
				if _, awaits := annotations[manifold.AnnotationAwaits]; awaits == test.want {
					t.Errorf("%s awaits a release: %t", object, awaits)
				}
				free := got.GetLabels()[v1alpha1.LabelApplication] == "" && len(got.GetOwnerReferences()) == 0 && annotations["delivery.manifold.dev/applied"] == "" &&
					annotations[manifold.AnnotationPlacement] == `{"east":{"replicas":2},"west":{"replicas":1}}`
				if free != test.want || annotations["note"] != "mine" || got.GetLabels()["app"] != "web" {
					t.Errorf("%s is %v, free %t; want %t", object, got.Object["metadata"], free, test.want)
				}
			}
			w.eventually("the history goes", func() bool { return w.revisionNames() == "" && w.released() == "" })
			left, err := w.client.DeliveryV1alpha1().Applications("shop").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || strings.Contains(strings.Join(left.Finalizers, " "), v1alpha1.FinalizerApplication) {
				t.Errorf("the application is held by %v (%v)", left.Finalizers, err)
			}
		})
	}
}

func TestNothingIsMadeForWhatIsDeleted(t *testing.T) {
	app := inline(deployment)
	app.DeletionTimestamp, app.Finalizers = &metav1.Time{}, []string{"somebody.example/else"}
	w := newWorld(t, nil, app)
	w.settled()
	if err := w.read(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	if err := w.sync(t.Context(), cache.MetaObjectToName(app)); err != nil || w.revisionNames() != "" {
		t.Errorf("error %v, revisions %s", err, w.revisionNames())
	}
}
