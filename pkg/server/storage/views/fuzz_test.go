package views

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/manifold-dev/manifold/pkg/server/views"
)

// FuzzWhatIsWrittenThroughAViewLeavesManifoldsOwn writes what somebody may make of an object that a view shows otherwise than it is stored, with words that mean
// something to strategic merge patches among it. Whatever it is, it is refused, or what Manifold has noted stays and the object stays the cluster's.
func FuzzWhatIsWrittenThroughAViewLeavesManifoldsOwn(f *testing.F) {
	for _, patch := range []string{
		`{}`, `{"metadata":{"annotations":null}}`, `{"metadata":{"labels":null,"annotations":{"manifold.dev/clusters":null,"a":"b"}}}`,
		`{"metadata":{"annotations":{"manifold.dev/placement":"{}","manifold.dev/status":"{}","manifold.dev/view":"west"}}}`,
		`{"metadata":{"annotations":{"manifold.dev/clusters":"east,west"}}}`, `{"metadata":{"annotations":{"$patch":"replace"}}}`, `{"metadata":{"annotations":{"$patch":"delete"}}}`,
		`{"metadata":{"labels":{"$patch":"delete"}}}`, `{"spec":{"template":{"spec":{"nodeSelector":{"$patch":"replace","$retainKeys":"a"}}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"$patch","image":"replace"}]}}}}`, `{"spec":{"template":{"spec":{"containers":[]}}}}`,
		`{"spec":{"replicas":0,"selector":{"matchLabels":{"$setElementOrder/a":"b"}}}}`, `{"metadata":{"finalizers":["a/b"],"uid":"x","resourceVersion":"y"}}`,
		`{"metadata":{"name":"other","namespace":"kube-system"}}`, `{"data":{"$patch":"delete"},"metadata":{"annotations":{"manifold.dev/view":""}}}`,
	} {
		f.Add(patch)
	}
	f.Fuzz(func(t *testing.T, patch string) {
		d, stored := deploymentStored(t)
		before := stored.objects["web"].(metav1.Object).GetAnnotations()
		if _, err := patched(t, d, "web", patch, &appsv1.Deployment{}); err == nil {
			kept(t, patch, before, stored.objects["web"].(metav1.Object), pin, decision, breakdown)
		}
		c, stored := configMapStored(t)
		before = stored.objects["blue"].(metav1.Object).GetAnnotations()
		if _, err := patched(t, c, "blue", patch, &corev1.ConfigMap{}); err == nil {
			kept(t, patch, before, stored.objects["blue"].(metav1.Object), pin, view)
		}
	})
}

func deploymentStored(t *testing.T) (*store, *memory) {
	return stored(t, "deployments", deployment("web", 4, pin, "east", decision, `{"east":{"replicas":4}}`, breakdown, `{"east":{"replicas":4}}`))
}

func configMapStored(t *testing.T) (*store, *memory) {
	return stored(t, "configmaps", configMap("blue", view, "east", pin, "east"))
}

// patched is what comes of a merge patch to what the view of east shows.
func patched(t *testing.T, s *store, name, patch string, as runtime.Object) (runtime.Object, error) {
	t.Helper()
	var refused error
	out, err := update(views.With(t.Context(), "east"), s, name, func(obj runtime.Object) {
		versioned := as.DeepCopyObject()
		if err := legacyscheme.Scheme.Convert(obj, versioned, nil); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(versioned)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := jsonpatch.MergePatch(text, []byte(patch))
		if err != nil {
			refused = err // which is no patch
			return
		}
		next := as.DeepCopyObject()
		if refused = json.Unmarshal(changed, next); refused == nil {
			refused = legacyscheme.Scheme.Convert(next, obj, nil)
		}
	})
	if refused != nil {
		return nil, refused
	}
	return out, err
}

func kept(t *testing.T, patch string, before map[string]string, now metav1.Object, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if got := now.GetAnnotations()[key]; got != before[key] {
			t.Errorf("%s has made %s of %s, which was %s", patch, got, key, before[key])
		}
	}
}
