package releases

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

var roles = rbacv1.SchemeGroupVersion.WithResource("roles")

func roleOf(verb string) string {
	return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":[%q]}]}`, verb)
}

// reader is the Role that is there, nil if there is none.
func (w *world) reader() *rbacv1.Role {
	obj, exists, _ := w.informer(roles).GetIndexer().GetByKey("shop/reader")
	if !exists {
		return nil
	}
	return obj.(*rbacv1.Role).DeepCopy()
}

// firstRole releases an application with a Role, which its ServiceAccount writes.
func (w *world) firstRole(change func(*v1alpha1.Application)) {
	w.Helper()
	w.given(func(app *v1alpha1.Application) {
		app.Spec.ServiceAccountName = "robot"
		change(app)
	}, both...)
	w.revise(1, both, settings, roleOf("get"))
	w.asks("web-a", "web-v1", nil)
	w.until("web-a", v1alpha1.ReleaseSucceeded)
	w.settled()
}

func TestARoleThatIsNotAsItWasReleasedIsShownAndPutBack(t *testing.T) {
	for _, heal := range []bool{false, true} {
		w := newWorld(t, both...)
		w.firstRole(func(app *v1alpha1.Application) { app.Spec.Drift = &v1alpha1.Drift{Heal: heal} })
		if got := w.drifted(); got != "" || w.reader() == nil {
			t.Fatalf("after the release drift is %q, and the Role %v", got, w.reader())
		}
		edited := w.reader()
		edited.Rules[0].Verbs = []string{"delete"}
		w.add(w.informer(roles), edited)
		w.step()
		const want = `Role/reader: /rules/0/verbs/0 is to be "get", and "delete" was found in the logical cluster alone`
		if got := w.drifted(); got != want && !heal || got != "" && heal {
			t.Errorf("drift is %q, want %q unless it is put back (%t)", got, want, heal)
		}
		if got := w.reader().Rules[0].Verbs[0]; (got == "get") != heal {
			t.Errorf("it may %s", got)
		}
		w.step()
		if err := w.informer(roles).GetIndexer().Delete(w.reader()); err != nil {
			t.Fatal(err)
		}
		w.step()
		if got := w.drifted(); (w.reader() != nil) != heal || !heal && !strings.Contains(got, "Role/reader") {
			t.Errorf("after somebody has deleted it the Role is %v, and drift %q", w.reader(), got)
		}
	}
}

func TestARoleThatNoRevisionHasAnyMoreIsPruned(t *testing.T) {
	for _, prune := range []bool{false, true} {
		w := newWorld(t, both...)
		w.firstRole(func(app *v1alpha1.Application) { app.Spec.Prune = ptr.To(prune) })
		theirs := w.reader()
		theirs.Name, theirs.UID, theirs.OwnerReferences = "theirs", "another", nil
		w.add(w.informer(roles), theirs)
		w.restart() // nothing but the watch tells what is there
		w.revise(2, both, settings)
		w.asks("web-b", "web-v2", nil)
		w.until("web-b", v1alpha1.ReleaseSucceeded)
		w.settled()
		if gone := w.reader() == nil; gone != prune {
			t.Errorf("it is gone: %t, with prune %t", gone, prune)
		}
		if _, exists, _ := w.informer(roles).GetIndexer().GetByKey("shop/theirs"); !exists {
			t.Error("what is somebody else's is gone")
		}
	}
}
