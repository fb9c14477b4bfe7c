package controller

import (
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/summary"
)

var databaseKey = identity.Key{Resource: appsv1.SchemeGroupVersion.WithResource("statefulsets"), Namespace: "shop", Name: "db"}

func database() *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid-of-db", Generation: 4, ResourceVersion: "7"}}
	set.Spec.Template.Labels = map[string]string{"app": "db"}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: set.Spec.Template.Labels}
	set.Spec.RevisionHistoryLimit = ptr.To[int32](1)
	return set
}

// revision is one of a StatefulSet of that UID; of nobody if that is "".
func revision(name string, number int64, owner types.UID) *appsv1.ControllerRevision {
	out := &appsv1.ControllerRevision{Revision: number, Data: runtime.RawExtension{Raw: []byte(`{"of":"` + name + `"}`)}}
	out.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "5", Labels: map[string]string{"app": "db"}}
	if owner != "" {
		set := database()
		set.UID = owner
		out.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	}
	return out
}

// inUse is the revision of the template in use.
func inUse(number int64) *appsv1.ControllerRevision {
	kind, _ := summary.ForResource(databaseKey.Resource)
	plan, err := kind.PlanHistory(database(), appsv1.SchemeGroupVersion.WithKind("StatefulSet"), nil, nil)
	if err != nil {
		panic(err)
	}
	out := plan.Write
	out.UID, out.ResourceVersion, out.Revision = "uid-of-revision", "5", number
	return out
}

func TestHistoriesAreWrittenOnlyWhenTheyChange(t *testing.T) {
	for name, test := range map[string]struct {
		existing []runtime.Object
		want     []string
	}{
		"the first one":                    {nil, []string{"create controllerrevisions"}},
		"it is there":                      {[]runtime.Object{inUse(1)}, nil},
		"a new one":                        {[]runtime.Object{revision("db-old", 1, "uid-of-db")}, []string{"create controllerrevisions"}},
		"it is used again":                 {[]runtime.Object{inUse(1), revision("db-newer", 2, "uid-of-db")}, []string{"update controllerrevisions"}},
		"beyond the limit":                 {[]runtime.Object{inUse(3), revision("db-1", 1, "uid-of-db"), revision("db-2", 2, "uid-of-db")}, []string{"delete controllerrevisions"}},
		"those of others are not touched":  {[]runtime.Object{inUse(1), revision("db-1", 1, "another"), revision("db-2", 2, "another")}, nil},
		"what was left behind is taken":    {[]runtime.Object{revision("db-1", 1, "")}, []string{"update controllerrevisions", "create controllerrevisions"}},
		"but not by one that has its own ": {[]runtime.Object{inUse(1), revision("db-1", 1, "")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, append(test.existing, database())...)
			if err := h.keepHistory(t); err != nil {
				t.Fatal(err)
			}
			if got := h.writes(); !slices.Equal(got, test.want) {
				t.Errorf("writes %v, want %v", got, test.want)
			}
		})
	}
}

func TestANameThatIsTakenIsAnError(t *testing.T) {
	foreign := inUse(1)
	foreign.OwnerReferences[0].UID = "another"
	h := start(t, foreign, database())
	kind, _ := summary.ForResource(databaseKey.Resource)
	if err := h.keepHistory(t); err == nil {
		t.Error("the revision of another object passes for ours")
	}
	if err := h.syncWorkload(t.Context(), kind, databaseKey, database()); err == nil {
		t.Error("nobody tries again")
	}
	if got := h.writes(); !slices.Contains(got, "update statefulsets/status") {
		t.Errorf("writes %v, want the status all the same", got)
	}
}

// keepHistory brings the revisions of the database up to date.
func (h *harness) keepHistory(t *testing.T) error {
	t.Helper()
	kind, _ := summary.ForResource(databaseKey.Resource)
	in := database()
	return h.histories.sync(t.Context(), kind, databaseKey, in, func(next summary.Object) error {
		return h.write(t.Context(), databaseKey, in, next)
	})
}

func TestAnotherNameIsNotedInTheStatusFirst(t *testing.T) {
	kind, _ := summary.ForResource(databaseKey.Resource)
	other := inUse(1)
	other.Data.Raw = []byte(`{"of":"another template"}`)
	h := start(t, other, database())
	if err := h.keepHistory(t); !errors.Is(err, errCollision) {
		t.Errorf("error %v, want that it is looked at again", err)
	}
	if got := h.writes(); !slices.Equal(got, []string{"update statefulsets/status"}) {
		t.Errorf("writes %v, want the status", got)
	}
	if got := kind.HistoryOf(kind.Collided(database(), 1)).Collisions; got != 1 {
		t.Errorf("noted %d collisions, want 1", got)
	}
}
