package storage

import (
	"context"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	api "k8s.io/kubernetes/pkg/apis/core"
	claimstrategy "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	podstrategy "k8s.io/kubernetes/pkg/registry/core/pod"
)

// manages is the entry of a manager that sets the fields.
func manages(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestManagersAfterAnUpdate(t *testing.T) {
	jane, janes, joe := manages("jane", `{"f:a":{}}`), manages("jane", `{"f:b":{}}`), manages("joe", `{"f:c":{}}`)
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

func TestAReportOfASyncerLeavesTheManagersAlone(t *testing.T) {
	ctx, _ := as(t, eastSyncer)
	users := []metav1.ManagedFieldsEntry{manages("jane", `{"f:metadata":{"f:labels":{"f:color":{}}}}`)}
	reported := []metav1.ManagedFieldsEntry{manages("manifold", `{"f:metadata":{"f:labels":{"f:color":{}}}}`)}
	pod, before := mirror("east"), mirror("east")
	pod.ManagedFields, before.ManagedFields = reported, users
	podStrategy{podstrategy.Strategy}.PrepareForUpdate(ctx, pod, before)
	if !reflect.DeepEqual(pod.ManagedFields, users) {
		t.Errorf("the managers of a pod are %v, want %v", pod.ManagedFields, users)
	}
	claim, was := claimIn("east"), claimIn("east")
	claim.ManagedFields, was.ManagedFields = reported, users
	claimStrategy{claimstrategy.Strategy}.PrepareForUpdate(ctx, claim, was)
	if !reflect.DeepEqual(claim.ManagedFields, users) {
		t.Errorf("the managers of a claim are %v, want %v", claim.ManagedFields, users)
	}
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
	jane := []metav1.ManagedFieldsEntry{manages("jane", `{"f:metadata":{"f:labels":{"f:color":{}}}}`)}
	later := mirror("east")
	later.ResourceVersion, later.Labels = "9", map[string]string{"color": "blue"}
	another := mirror("east")
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
			ctx, _ := as(t, test.who)
			store := &onePod{pod: test.stored}
			old, want := mirror("east"), mirror("east")
			want.ManagedFields = test.managers
			got, err := storeManagers(ctx, store, old, want, later, &metav1.UpdateOptions{DryRun: test.dryRun})
			if err != nil || got.Labels["color"] != "blue" || got.ResourceVersion != "9" {
				t.Fatalf("answer %v, %v, want the mirror as it is shown", got, err)
			}
			if shown := reflect.DeepEqual(got.ManagedFields, jane); shown != test.wantShown || store.writes != test.wantWrites {
				t.Errorf("managers %v in %d writes", got.ManagedFields, store.writes)
			}
		})
	}
}
