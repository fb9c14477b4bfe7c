package delivery

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/pkg/registry/group"
	"github.com/manifold-dev/manifold/pkg/registry/group/grouptest"
)

var api = grouptest.API{Install: Install, Group: func(typer runtime.ObjectTyper) group.Group { return Group(typer, nil) }}

// stores are those of the group, by resource.
func stores(t *testing.T) map[string]rest.Storage {
	t.Helper()
	provider, storage := api.Provider(t)
	group, err := provider.NewRESTStorage(api.Everything(t), storage)
	if err != nil {
		t.Fatal(err)
	}
	made := group.VersionedResourcesStorageMap["v1alpha1"]
	t.Cleanup(func() {
		for _, store := range made {
			store.Destroy()
		}
	})
	return made
}

// as is a request of a user in the namespace shop.
func as(t *testing.T, name string, groups ...string) context.Context {
	return request.WithUser(request.WithNamespace(t.Context(), "shop"), &user.DefaultInfo{Name: name, Groups: groups})
}

func TestWhatIsServed(t *testing.T) {
	want := []string{
		"applicationrevisions", "applications", "applications/status", "pluginrecords", "plugins", "plugins/status", "releaselogparts", "releases", "releases/approve", "releases/cancel",
		"releases/log", "releases/retry", "releases/rollback", "releases/skip", "releases/status",
	}
	if got := slices.Sorted(maps.Keys(stores(t))); !slices.Equal(got, want) {
		t.Errorf("served are %q, want %q", got, want)
	}
}

// create makes a release by alice, of which mallory has tried to say more.
func create(t *testing.T, storage map[string]rest.Storage) *v1alpha1.Release {
	t.Helper()
	forged := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x2f", Labels: map[string]string{v1alpha1.LabelApplication: "other"}},
		Spec: v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v7", TriggeredBy: v1alpha1.ReleaseTrigger{
			Cause: v1alpha1.CauseCommand, User: "the-boss",
		}},
		Status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseSucceeded, Requests: []v1alpha1.ReleaseRequest{{Type: v1alpha1.RequestApprove, User: "the-boss"}}},
	}
	object, err := storage["releases"].(rest.Creater).Create(as(t, "alice"), forged, nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object.(*v1alpha1.Release)
}

// writeStatus writes a status as a controller does.
func writeStatus(t *testing.T, storage map[string]rest.Storage, release *v1alpha1.Release) *v1alpha1.Release {
	t.Helper()
	object, _, err := storage["releases/status"].(rest.Updater).Update(as(t, "engine"), release.Name, rest.DefaultUpdatedObjectInfo(release), nil,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object.(*v1alpha1.Release)
}

func ask(t *testing.T, storage map[string]rest.Storage, by, what string, body runtime.Object, options metav1.CreateOptions) (*v1alpha1.Release, error) {
	t.Helper()
	object, err := storage["releases/"+what].(rest.NamedCreater).Create(as(t, by, "sre"), "web-x2f", body, rest.ValidateAllObjectFunc, &options)
	if err != nil {
		return nil, err
	}
	return object.(*v1alpha1.Release), nil
}

func TestReleasesSayWhoMadeThem(t *testing.T) {
	storage := stores(t)
	release := create(t, storage)
	if release.Spec.TriggeredBy.User != "alice" || release.Status.Phase != v1alpha1.ReleasePending || len(release.Status.Requests) != 0 ||
		release.Labels[v1alpha1.LabelApplication] != "web" {
		t.Errorf("made by %q with status %+v and labels %v; want alice, nothing, and the application", release.Spec.TriggeredBy.User, release.Status, release.Labels)
	}
	release.Spec.TriggeredBy.User = "the-boss"
	object, _, err := storage["releases"].(rest.Updater).Update(as(t, "alice"), release.Name, rest.DefaultUpdatedObjectInfo(release), nil,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := object.(*v1alpha1.Release).Spec.TriggeredBy.User; got != "alice" {
		t.Errorf("an update has made %q the maker", got)
	}
}

// Releases are in the order in which they were made, which nobody can forge.
func TestTheServerSaysWhenAReleaseWasMade(t *testing.T) {
	storage := stores(t)
	before := time.Now()
	made := create(t, storage)
	told := made.Annotations[v1alpha1.AnnotationMade]
	if at, err := time.Parse(time.RFC3339Nano, told); err != nil || at.Before(before.Truncate(time.Microsecond)) || at.After(time.Now()) {
		t.Errorf("it was made at %q (%v), after %s", told, err, before)
	}
	forged := made.DeepCopy()
	forged.Annotations = map[string]string{v1alpha1.AnnotationMade: "2000-01-01T00:00:00.000000Z", "team": "shop"}
	object, _, err := storage["releases"].(rest.Updater).Update(as(t, "mallory"), made.Name, rest.DefaultUpdatedObjectInfo(forged), nil,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := object.(*v1alpha1.Release).Annotations; got[v1alpha1.AnnotationMade] != told || got["team"] != "shop" {
		t.Errorf("it says %v, want %s", got, told)
	}
}

func TestApprovalsAreTheCallersAndStay(t *testing.T) {
	storage := stores(t)
	release := create(t, storage)
	release.Status = approving().Status
	release.Status.Requests = []v1alpha1.ReleaseRequest{{Type: v1alpha1.RequestApprove, Stage: "agree", Attempt: 2, User: "the-boss"}}
	if release = writeStatus(t, storage, release); len(release.Status.Requests) != 0 || release.Status.Phase != v1alpha1.ReleaseRunning {
		t.Fatalf("a status was written with the approvals %+v", release.Status.Requests)
	}

	body := &v1alpha1.ReleaseApproval{Comment: "fine"}
	if dry, err := ask(t, storage, "bob", "approve", body, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || len(dry.Status.Requests) != 1 {
		t.Errorf("a dry run: %v, %+v, want what would be", err, dry)
	}
	got, err := ask(t, storage, "alice", "approve", body, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Status.Requests) != 1 {
		t.Fatalf("recorded are %+v, want one approval, and nothing of the dry run", got.Status.Requests)
	}
	if r := got.Status.Requests[0]; r.User != "alice" || !slices.Equal(r.Groups, []string{"sre"}) || r.Stage != "agree" || r.Comment != "fine" || r.Time.IsZero() {
		t.Errorf("recorded is %+v, want alice's approval of agree", r)
	}
	if got.Spec.Revision != release.Spec.Revision || got.Status.Phase != v1alpha1.ReleaseRunning || got.Generation != 1 {
		t.Errorf("the approval has changed more of the release: %+v", got)
	}

	got.Status.Requests = nil
	got.Status.Message = "goes on"
	if got = writeStatus(t, storage, got); len(got.Status.Requests) != 1 || got.Status.Message != "goes on" {
		t.Errorf("a status that forgets approvals left %+v", got.Status)
	}
}

func TestRequestsAboutAnotherReleaseAreRefused(t *testing.T) {
	storage := stores(t)
	create(t, storage)
	_, err := ask(t, storage, "alice", "cancel", &v1alpha1.ReleaseCancellation{ObjectMeta: metav1.ObjectMeta{Name: "web-abc"}}, metav1.CreateOptions{})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("a body about another release: %v, want a bad request", err)
	}
	_, err = storage["releases/cancel"].(rest.NamedCreater).Create(as(t, "alice"), "web-abc", &v1alpha1.ReleaseCancellation{}, nil, &metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a release that there isn't: %v, want not found", err)
	}
	nobody := request.WithNamespace(t.Context(), "shop")
	_, err = storage["releases/cancel"].(rest.NamedCreater).Create(nobody, "web-x2f", &v1alpha1.ReleaseCancellation{}, nil, &metav1.CreateOptions{})
	if err == nil {
		t.Error("a request of nobody was recorded")
	}
}

// Nobody goes on with a release after another one of its application has begun, so nothing is recorded that nobody does.
func TestReleasesThatOthersHaveFollowedAreNotContinued(t *testing.T) {
	storage := stores(t)
	release := create(t, storage)
	release.Status = broken().Status
	release.Status.Sequence = 3
	writeStatus(t, storage, release)
	later := func(name, application string, sequence int64) {
		t.Helper()
		object, err := storage["releases"].(rest.Creater).Create(as(t, "alice"), &v1alpha1.Release{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       v1alpha1.ReleaseSpec{Application: application, Revision: application + "-v8", TriggeredBy: v1alpha1.ReleaseTrigger{Cause: v1alpha1.CauseCommand}},
		}, nil, &metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made := object.(*v1alpha1.Release)
		made.Status.Phase, made.Status.Sequence = v1alpha1.ReleaseRunning, sequence
		writeStatus(t, storage, made)
	}
	later("web-older", "web", 2)
	later("other-x", "other", 9)
	later("web-waits", "web", 0)
	if got, err := ask(t, storage, "alice", "retry", &v1alpha1.ReleaseRetry{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || len(got.Status.Requests) != 1 {
		t.Errorf("while it is the newest: %v", err)
	}
	later("web-newer", "web", 4)
	later("web-newest", "web", 5)
	_, err := ask(t, storage, "alice", "retry", &v1alpha1.ReleaseRetry{}, metav1.CreateOptions{})
	if want := `release "web-x2f": nothing of it can be retried, web-newest has begun since and says what runs now; release its revision once more: manifold app sync web --revision web-v7`; !apierrors.IsConflict(err) || err.Error() != want {
		t.Errorf("a retry: %v, want %s", err, want)
	}
	_, err = ask(t, storage, "alice", "rollback", &v1alpha1.ReleaseRollback{}, metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "it cannot be taken back, web-newest has begun since") {
		t.Errorf("a rollback: %v, want a refusal", err)
	}
}

// The API server finds fields by the schema, so what is seen here is what kubectl explain and server-side apply see.
func TestAPI(t *testing.T) {
	client, err := versioned.NewForConfig(api.Serve(t))
	if err != nil {
		t.Fatal(err)
	}
	applications := client.DeliveryV1alpha1().Applications("shop")
	app, err := applications.Create(t.Context(), &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1alpha1.ApplicationSpec{
			Source:   v1alpha1.Source{Git: &v1alpha1.GitSource{URL: "https://git.example/shop.git"}},
			Targets:  []v1alpha1.Target{{Name: "east", Cluster: "east"}},
			Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{{Name: v1alpha1.StageWait, With: &runtime.RawExtension{Raw: []byte(`{"duration":"1m"}`)}}}},
		},
		Status: v1alpha1.ApplicationStatus{LiveRevision: "web-v9"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if app.Status.LiveRevision != "" || app.Generation != 1 || *app.Spec.RevisionHistoryLimit != 10 || string(app.Spec.Pipeline.Stages[0].With.Raw) != `{"duration":"1m"}` {
		t.Errorf("created is %+v, want it with defaults and without a status", app)
	}
	patch := []byte(`{"spec":{"targets":[{"name":"west","cluster":"west"}]}}`)
	app, err = applications.Patch(t.Context(), "web", types.ApplyPatchType,
		[]byte(`{"apiVersion":"delivery.manifold.dev/v1alpha1","kind":"Application",`+string(patch[1:])), metav1.PatchOptions{FieldManager: "other"})
	if err != nil || len(app.Spec.Targets) != 2 || app.Generation != 2 {
		t.Errorf("two managers have made %+v, %v, want a target of each", app.Spec.Targets, err)
	}
	_, err = applications.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"pipeline":{"stages":[{"name":"WAIT","with":{"until":"noon"}}]}}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.pipeline.stages[0].with.until") {
		t.Errorf("an option that there isn't: %v, want a refusal by its path", err)
	}
}

// Managed fields that went into manifests would be as large as the manifests.
func TestManagedFieldsOfRevisionsAreSmall(t *testing.T) {
	client, err := versioned.NewForConfig(api.Serve(t))
	if err != nil {
		t.Fatal(err)
	}
	raw := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"some":"thing"}}`
	hash, err := v1alpha1.HashManifest([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	targets := []v1alpha1.RevisionTarget{{Name: "default", Hash: v1alpha1.HashObjects([]string{hash}), Objects: []string{hash}}}
	revision, err := client.DeliveryV1alpha1().ApplicationRevisions("shop").Create(t.Context(), &v1alpha1.ApplicationRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "web-v1"},
		Spec: v1alpha1.ApplicationRevisionSpec{
			Application: "web", Number: 1, Hash: v1alpha1.HashRevision(targets), Targets: targets,
			Objects: []v1alpha1.RevisionObject{{Hash: hash, Manifest: &runtime.RawExtension{Raw: []byte(raw)}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(revision.Spec.Objects[0].Manifest.Raw); got != raw {
		t.Errorf("the manifest has become %s", got)
	}
	if len(revision.ManagedFields) != 1 || strings.Contains(string(revision.ManagedFields[0].FieldsV1.GetRawBytes()), "f:objects") {
		t.Errorf("managed fields go into the manifests: %v", revision.ManagedFields)
	}
	revision.Spec.Number = 2
	if _, err := client.DeliveryV1alpha1().ApplicationRevisions("shop").Update(t.Context(), revision, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a revision was changed: %v", err)
	}
}

func TestWhoSetsTrafficThatHasNoEffectIsWarned(t *testing.T) {
	strategy := applicationStrategy{}
	app := &v1alpha1.Application{Spec: v1alpha1.ApplicationSpec{Traffic: &v1alpha1.Traffic{Method: v1alpha1.TrafficIngress, Name: "front", Host: "web.example.com"}}}
	if got := strategy.WarningsOnCreate(t.Context(), app); len(got) != 1 || !strings.Contains(got[0], "spec.traffic.host") {
		t.Errorf("warnings %q, want one of the host", got)
	}
	if got := strategy.WarningsOnUpdate(t.Context(), app, &v1alpha1.Application{}); len(got) != 1 {
		t.Errorf("warnings %q of a change, want one", got)
	}
	if got := strategy.WarningsOnUpdate(t.Context(), app, app.DeepCopy()); len(got) != 0 {
		t.Errorf("warnings %q where the spec stays, want none", got)
	}
}
