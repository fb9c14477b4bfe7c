package gates

import (
	"encoding/json"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
)

var deployments = appsv1.SchemeGroupVersion.WithResource("deployments")

// theApp selects what has the label app=web.
func theApp(name string, change ...func(*v1alpha1.Application)) *v1alpha1.Application {
	out := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	out.Spec.Source.Selector = &v1alpha1.ObjectSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	for _, c := range change {
		c(out)
	}
	return out
}

func TestWhatNoApplicationGovernsWaitsForNone(t *testing.T) {
	for name, test := range map[string]struct {
		awaits       string
		applications []*v1alpha1.Application
		answer       error
		// want is what is written, "" for nothing.
		want   string
		failed bool
	}{
		"what is governed waits":           {awaits: "web", applications: []*v1alpha1.Application{theApp("web")}},
		"what awaits nothing is let alone": {},
		"the Application is gone":          {awaits: "web", want: "null"},
		"it is going":                      {awaits: "web", applications: []*v1alpha1.Application{theApp("web", func(a *v1alpha1.Application) { a.DeletionTimestamp = &metav1.Time{} })}, want: "null"},
		"it selects something else":        {awaits: "web", applications: []*v1alpha1.Application{theApp("web", func(a *v1alpha1.Application) { a.Spec.Source.Selector.MatchLabels["app"] = "api" })}, want: "null"},
		"another one selects it":           {awaits: "web", applications: []*v1alpha1.Application{theApp("another")}, want: `"another"`},
		"the object is gone by now":        {awaits: "web", want: "null", answer: apierrors.NewNotFound(deployments.GroupResource(), "web")},
		"it has changed by now":            {awaits: "web", want: "null", answer: apierrors.NewConflict(deployments.GroupResource(), "web", errors.New("newer")), failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", ResourceVersion: "7", Labels: map[string]string{"app": "web"}}}
			if test.awaits != "" {
				object.Annotations = map[string]string{manifold.AnnotationAwaits: test.awaits}
			}
			kube, own := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), externalversions.NewSharedInformerFactory(fake.NewClientset(), 0)
			client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
			var written []string
			client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				written = append(written, string(action.(clienttesting.PatchAction).GetPatch()))
				return true, &unstructured.Unstructured{}, test.answer
			})
			applications := own.Delivery().V1alpha1().Applications()
			c, err := New(Options{Kube: kube, Applications: applications, Client: client, Recorder: record.NewFakeRecorder(10)})
			if err != nil {
				t.Fatal(err)
			}
			informer, err := kube.ForResource(deployments)
			if err != nil {
				t.Fatal(err)
			}
			if err := informer.Informer().GetIndexer().Add(object); err != nil {
				t.Fatal(err)
			}
			for _, app := range test.applications {
				if err := applications.Informer().GetIndexer().Add(app); err != nil {
					t.Fatal(err)
				}
			}
			c.look(theApp("web"))
			if queued := c.queue.Len() > 0; queued != (test.awaits != "") {
				t.Errorf("a change of an Application has it looked at: %t", queued)
			}
			if err := c.sync(t.Context(), key{deployments, cache.NewObjectName("shop", "web")}); (err != nil) != test.failed {
				t.Errorf("error %v, want one: %t", err, test.failed)
			}
			want := ""
			if test.want != "" {
				want = `{"metadata":{"annotations":{"manifold.dev/awaits":` + test.want + `},"resourceVersion":"7","uid":"uid"}}`
			}
			got := ""
			if len(written) == 1 {
				got = written[0]
			}
			if got != want || len(written) > 1 || got != "" && !json.Valid([]byte(got)) {
				t.Errorf("written is %q, want %q", written, want)
			}
		})
	}
}

// Of what is gone from the cache nobody writes anything.
func TestNothingIsWrittenOfWhatIsNotThere(t *testing.T) {
	kube, own := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), externalversions.NewSharedInformerFactory(fake.NewClientset(), 0)
	c, err := New(Options{Kube: kube, Applications: own.Delivery().V1alpha1().Applications(), Client: dynamicfake.NewSimpleDynamicClient(scheme.Scheme), Recorder: record.NewFakeRecorder(10)})
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []schema.GroupVersionResource{deployments, {Version: "v1", Resource: "configmaps"}} {
		if err := c.sync(t.Context(), key{resource, cache.NewObjectName("shop", "web")}); err != nil {
			t.Error(err)
		}
	}
}
