package metadata

import (
	"context"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

func TestManagersAfterAnUpdate(t *testing.T) {
	jane, janes, joe := storagetest.Manages("jane", `{"f:a":{}}`), storagetest.Manages("jane", `{"f:b":{}}`), storagetest.Manages("joe", `{"f:c":{}}`)
	updating := jane
	updating.Operation = metav1.ManagedFieldsOperationUpdate
	type entries = []metav1.ManagedFieldsEntry
	for name, test := range map[string]struct{ have, old, want, after entries }{
		"a new one is added":                           {have: entries{joe}, old: entries{joe}, want: entries{joe, jane}, after: entries{joe, jane}},
		"another set of fields takes the place of one": {have: entries{jane, joe}, old: entries{jane, joe}, want: entries{janes, joe}, after: entries{janes, joe}},
		"one that manages nothing any more goes":       {have: entries{jane, joe}, old: entries{jane, joe}, want: entries{joe}, after: entries{joe}},
		"one that came meanwhile stays":                {have: entries{joe}, old: nil, want: entries{jane}, after: entries{joe, jane}},
		"one that changed meanwhile stays changed":     {have: entries{janes}, old: entries{jane}, want: entries{jane, joe}, after: entries{janes, joe}},
		"one that went meanwhile does not come back":   {have: nil, old: entries{jane}, want: entries{jane, joe}, after: entries{joe}},
		"who applies and updates has two":              {have: entries{jane}, old: entries{jane}, want: entries{jane, updating}, after: entries{jane, updating}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := managersAfter(test.have, test.old, test.want); len(got)+len(test.after) > 0 && !reflect.DeepEqual(got, test.after) {
				t.Errorf("got %v, want %v", got, test.after)
			}
		})
	}
}

// shown is a mirror.
func shown() *api.Pod {
	return &api.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "uid-below", ResourceVersion: "7"}}
}

// onePod is a store of one pod.
type onePod struct {
	rest.Updater
	pod    *api.Pod
	writes int
}

func (s *onePod) Update(ctx context.Context, _ string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, err := info.UpdatedObject(ctx, s.pod)
	if err == nil {
		s.writes++
	}
	return obj, false, err
}

func TestManagersOfAnUpdateAreStoredWithTheMirror(t *testing.T) {
	jane := []metav1.ManagedFieldsEntry{storagetest.Manages("jane", `{"f:metadata":{"f:labels":{"f:color":{}}}}`)}
	later := shown()
	later.ResourceVersion, later.Labels = "9", map[string]string{"color": "blue"}
	another := shown()
	another.UID = "another"
	for name, test := range map[string]struct {
		who        string
		managers   []metav1.ManagedFieldsEntry
		dryRun     []string
		stored     *api.Pod
		wantWrites int
		wantShown  bool // the managers are, in the answer
	}{
		"what a user applies":             {who: "jane", managers: jane, stored: later, wantWrites: 1, wantShown: true},
		"nothing that changes no manager": {who: "jane", stored: later},
		"nothing of a dry run":            {who: "jane", managers: jane, dryRun: []string{"All"}, stored: later},
		"nothing of this process":         {who: "system:apiserver", managers: jane, stored: later},
		"nothing to another pod":          {who: "jane", managers: jane, stored: another},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, test.who)
			store := &onePod{pod: test.stored}
			old, want := shown(), shown()
			want.ManagedFields = test.managers
			got, err := StoreManagers(ctx, store, old, want, later, &metav1.UpdateOptions{DryRun: test.dryRun})
			if err != nil || got.Labels["color"] != "blue" || got.ResourceVersion != "9" {
				t.Fatalf("answer %v, %v, want the mirror as it is shown", got, err)
			}
			if told := reflect.DeepEqual(got.ManagedFields, jane); told != test.wantShown || store.writes != test.wantWrites {
				t.Errorf("managers %v in %d writes", got.ManagedFields, store.writes)
			}
		})
	}
}
