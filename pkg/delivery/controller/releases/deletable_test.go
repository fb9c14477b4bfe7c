package releases

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// review says whether something may be deleted.
func (w *world) review(action clienttesting.Action) (bool, runtime.Object, error) {
	review := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured).DeepCopy()
	field := func(name string) string {
		got, _, _ := unstructured.NestedString(review.Object, "spec", "resourceAttributes", name)
		return got
	}
	if field("verb") != "delete" || field("namespace") != "shop" {
		w.Errorf("asked is %v", review.Object)
	}
	w.asked++
	return true, review, unstructured.SetNestedField(review.Object, !w.keeps[field("resource")], "status", "allowed")
}

func TestTheRightToDeleteIsAskedForBeforeAnythingIsApplied(t *testing.T) {
	canary := pipeline(stage("K8S_CANARY_ROLLOUT", "canary", `{"replicas":2}`), stage("K8S_PRIMARY_ROLLOUT", "primary", ""), stage("K8S_CANARY_CLEAN", "clean", ""))
	const lacksRoles = `spec.serviceAccountName: Role/reader, which web-v2 does not have: ServiceAccount robot may not delete it: ` +
		`give it the right to delete roles.rbac.authorization.k8s.io in namespace "shop"`
	for name, test := range map[string]struct {
		change func(*v1alpha1.Application)
		keeps  string
		holds  []string
		want   string
	}{
		"what it prunes": {change: func(app *v1alpha1.Application) { app.Spec.Prune = ptr.To(true) }, keeps: "roles", holds: []string{settings, deploymentOf("two")}, want: lacksRoles},
		"what a stage of it prunes": {
			change: pipeline(stage("K8S_PRIMARY_ROLLOUT", "primary", `{"prune":true}`)), keeps: "roles", holds: []string{settings, deploymentOf("two")}, want: lacksRoles,
		},
		"what it has still":         {change: func(app *v1alpha1.Application) { app.Spec.Prune = ptr.To(true) }, keeps: "roles", holds: []string{settings, deploymentOf("two"), roleOf("get")}},
		"what it leaves":            {change: func(*v1alpha1.Application) {}, keeps: "roles", holds: []string{settings, deploymentOf("two")}},
		"what it prunes, and may":   {change: func(app *v1alpha1.Application) { app.Spec.Prune = ptr.To(true) }, keeps: "rolebindings", holds: []string{settings, deploymentOf("two")}},
		"a copy that it takes away": {change: canary, keeps: "deployments", holds: []string{settings, deploymentOf("two"), roleOf("get")}, want: "spec.serviceAccountName: Deployment/web-canary, which a stage makes as a copy, and another one takes away: ServiceAccount robot may not delete it"},
		"what nobody deletes any more": {
			change: func(app *v1alpha1.Application) { app.Spec.Prune, app.Spec.ServiceAccountName = ptr.To(true), "" }, holds: []string{settings, deploymentOf("two")},
			want: "spec.serviceAccountName: Role/reader, which web-v2 does not have: it is deleted as a ServiceAccount alone: set spec.serviceAccountName",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, both...)
			w.given(func(app *v1alpha1.Application) { app.Spec.ServiceAccountName = "robot" }, both...)
			w.revise(1, both, settings, deploymentOf("one"), roleOf("get"))
			w.asks("web-a", "web-v1", nil)
			w.until("web-a", v1alpha1.ReleaseSucceeded)
			w.settled()
			w.keeps = map[string]bool{test.keeps: true}
			w.change(test.change)
			w.revise(2, both, test.holds...)
			w.writes, w.asked = nil, 0
			w.asks("web-b", "web-v2", nil)
			if test.want == "" {
				w.until("web-b", v1alpha1.ReleaseSucceeded)
				return
			}
			release := w.until("web-b", v1alpha1.ReleaseFailed)
			if !strings.Contains(release.Status.Message, "nothing of it is applied: "+test.want) {
				t.Errorf("%s, want %s", release.Status.Message, test.want)
			}
			if len(w.writes) > 0 || w.runs("web") != "east:10xone west:10xone" || w.reader() == nil {
				t.Errorf("written is %v, and it runs %s", w.writes, w.runs("web"))
			}
			if w.asked > 3 {
				t.Errorf("asked %d times", w.asked)
			}
		})
	}
}
