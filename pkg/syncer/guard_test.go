package syncer

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/guard"
)

// guardOf knows what is above.
func guardOf(t *testing.T, above ...projection.Object) guard.Guard {
	t.Helper()
	u := newUpstream(t, above...)
	u.synced = nil // what is read is there
	return u.Guard(nil)
}

// refusal is the text of an error, "" for none.
func refusalOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func expectRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if got := refusalOf(err); !strings.Contains(got, want) || (got == "") != (want == "") {
		t.Errorf("refused with %q, want %q in it", got, want)
	}
}

func TestWhatEventsOfAClusterMayBeAbout(t *testing.T) {
	f := newFamily()
	usingSecret("key")(f.above)
	elsewhere := deployment("other", `{"west":{"replicas":1}}`, usingSecret("hidden"))
	event := func(kind, version, name, uid string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "e.1.east", Annotations: map[string]string{v1alpha1.AnnotationCluster: "east"}},
			InvolvedObject: corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: "shop", Name: name, UID: types.UID(uid)},
			Source:         corev1.EventSource{Host: "node-1"},
		}
	}
	for name, test := range map[string]struct {
		kind, version, about, uid string
		want                      string
	}{
		"a pod that is shown":                  {"Pod", "v1", "web-1", "uid-of-web-1", ""},
		"not a pod of another UID":             {"Pod", "v1", "web-1", "forged", "has no Pod"},
		"a workload that it runs":              {"Deployment", "apps/v1", "web", "uid-of-web", ""},
		"a ReplicaSet of it":                   {"ReplicaSet", "apps/v1", "web-abc", "uid-of-web-abc", ""},
		"what it needs":                        {"Secret", "v1", "key", "uid-of-key", ""},
		"not a workload of others":             {"Deployment", "apps/v1", "other", "uid-of-other", "has no Deployment"},
		"nor what that needs":                  {"Secret", "v1", "hidden", "uid-of-hidden", "has no Secret"},
		"not a kind that clusters do not have": {"ConfigMapList", "v1", "x", "y", "no objects of that kind"},
	} {
		t.Run(name, func(t *testing.T) {
			e := event(test.kind, test.version, test.about, test.uid)
			g := guardOf(t, f.above, f.mirrored, f.shown("east"), elsewhere, secret("key"), secret("hidden"), namespace("shop"))
			expectRefusal(t, g.CreateEvent("east", e), test.want)
			stored := e.DeepCopy()
			expectRefusal(t, g.UpdateEvent("east", e, stored), test.want)
			stored.Annotations = nil
			expectRefusal(t, g.UpdateEvent("east", e, stored), `not an event of cluster "east"`)
		})
	}
}
