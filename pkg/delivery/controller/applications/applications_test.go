package applications

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/render/revision"
)

func TestAChangeIsARevisionAndARelease(t *testing.T) {
	w := newWorld(t, nil, inline(deployment, configMap("blue")))
	app := w.turn()
	if !slices.Contains(app.Finalizers, v1alpha1.FinalizerApplication) {
		t.Error("nothing holds the application")
	}
	if w.revisionNames() != "web-v1" || w.released() != "web-v1" || app.Status.LatestRevision != "web-v1" || app.Status.WantedRevision != "web-v1" {
		t.Fatalf("revisions %s and releases of %s, latest %s; want web-v1", w.revisionNames(), w.released(), app.Status.LatestRevision)
	}
	revision := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)[0]
	if spec := revision.Spec; len(spec.Targets) != 1 || spec.Targets[0].Name != v1alpha1.DefaultTarget || len(spec.Targets[0].Objects) != 2 || len(spec.Images) != 1 || spec.Images[0].Tag != "1" {
		t.Errorf("the revision has targets %+v and images %+v", spec.Targets, spec.Images)
	}
	if !metav1.IsControlledBy(revision, app) || revision.Labels[v1alpha1.LabelApplication] != "web" {
		t.Errorf("the revision is %+v, want it to be the application's", revision.ObjectMeta)
	}

	w.ends(v1alpha1.ReleaseSucceeded)
	if app = w.turn(); app.Status.LiveRevision != "web-v1" || says(app, v1alpha1.ApplicationReleased) != "" {
		t.Errorf("live is %s, and released %q", app.Status.LiveRevision, says(app, v1alpha1.ApplicationReleased))
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Inline.Objects[1].Raw = []byte(configMap("red")) })
	if app = w.turn(); w.revisionNames() != "web-v1 web-v2" || w.released() != "web-v1 web-v2" || app.Status.LastRevisionNumber != 2 {
		t.Errorf("after a change there are revisions %s, and releases of %s", w.revisionNames(), w.released())
	}
	if got := says(app, v1alpha1.ApplicationReleased); !strings.Contains(got, "releases web-v2") {
		t.Errorf("condition Released says %q, want what runs", got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { // says the same with other words, and in another order
		spec.Source.Inline.Objects = []runtime.RawExtension{
			{Raw: []byte(`{"data": {"colour": "red"}, "kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"shop","name":"settings"}}`)}, {Raw: []byte(deployment)},
		}
	})
	if app = w.turn(); w.revisionNames() != "web-v1 web-v2" || app.Status.ObservedGeneration != app.Generation {
		t.Errorf("what changes nothing makes revisions %s", w.revisionNames())
	}
}

// Targets and manifests that change at once come with one release, in whatever order they are looked at.
func TestTargetsAndManifestsThatChangeAtOnceAreReleasedOnce(t *testing.T) {
	for colour, want := range map[string]string{"red": "web-v1 web-v2", "blue": "web-v1 web-v1"} {
		w := newWorld(t, nil, inline(configMap("blue")))
		w.turn()
		w.ends(v1alpha1.ReleaseSucceeded)
		w.turn()
		w.change(func(spec *v1alpha1.ApplicationSpec) {
			spec.Source.Inline.Objects[0].Raw = []byte(configMap(colour))
			spec.Targets = []v1alpha1.Target{{Name: v1alpha1.DefaultTarget, Cluster: "east"}}
		})
		if err := w.sync(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		if w.settled(); w.released() != "web-v1" {
			t.Fatalf("%s: before anybody has looked at the source, released are %s", colour, w.released())
		}
		if w.turn(); w.released() != want {
			t.Errorf("%s: released are %s, want %s", colour, w.released(), want)
		}
	}
}

func TestARestartMakesNothingTwice(t *testing.T) {
	w := newWorld(t, nil, inline(deployment))
	before := w.turn()
	w.restart(nil)
	w.client.ClearActions()
	after := w.turn()
	if w.revisionNames() != "web-v1" || w.released() != "web-v1" {
		t.Errorf("revisions %s, and releases of %s", w.revisionNames(), w.released())
	}
	for _, action := range w.client.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "watch" && verb != "get" {
			t.Errorf("nothing has changed, and there is %s of %s", verb, action.GetResource().Resource)
		}
	}
	if marshalled(before.Status) != marshalled(after.Status) {
		t.Errorf("status\n%s\nbecomes\n%s", marshalled(before.Status), marshalled(after.Status))
	}
}

// A crash between the parts of a revision leaves some of them. Their number is not used again.
func TestWhatWasBegunAndNotFinished(t *testing.T) {
	w := newWorld(t, nil, inline(deployment))
	refuse := true
	w.client.PrependReactor("create", "applicationrevisions", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refuse {
			return true, nil, apierrors.NewAlreadyExists(v1alpha1.Resource("applicationrevisions"), "web-v1")
		}
		return false, nil, nil
	})
	app := w.turn()
	if got := says(app, v1alpha1.ApplicationRendered); !strings.Contains(got, "web-v") {
		t.Errorf("condition Rendered says %q, want what could not be stored", got)
	}
	refuse = false
	if w.turn(); w.revisionNames() == "" || strings.Contains(w.revisionNames(), "web-v1 ") {
		t.Errorf("revisions %q, want one with a number that was not tried", w.revisionNames())
	}
}

func TestWhatNobodyDelivers(t *testing.T) {
	patch := func(target *v1alpha1.PatchTarget, text string) func(*v1alpha1.ApplicationSpec) {
		return func(spec *v1alpha1.ApplicationSpec) {
			spec.Targets = []v1alpha1.Target{{Name: "east", Cluster: "east", Patches: []v1alpha1.Patch{{Target: target, Patch: text}}}}
		}
	}
	for name, test := range map[string]struct {
		objects []string
		change  func(*v1alpha1.ApplicationSpec)
		want    string
	}{
		"a kind that is in no namespace":        {objects: []string{deployment, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"all"}}`}, want: "in spec.source.inline: ClusterRole.rbac.authorization.k8s.io all: it is in no namespace"},
		"a custom kind that is in none":         {objects: []string{`{"apiVersion":"example.com/v1","kind":"Planet","metadata":{"name":"x"}}`}, want: "Planet.example.com shop/x: it is in no namespace"},
		"rights":                                {objects: []string{`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"x"}}`}, want: "set spec.serviceAccountName"},
		"another namespace":                     {objects: []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"kube-system"}}`}, want: `it is in namespace "kube-system"`},
		"a patch of nothing that is there":      {objects: []string{deployment}, change: patch(nil, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: other}, spec: {replicas: 2}}`), want: `target "east"`},
		"a patch that does not fit":             {objects: []string{deployment}, change: patch(&v1alpha1.PatchTarget{Kind: "Deployment"}, `[{op: test, path: /spec/replicas, value: 7}]`), want: `target "east"`},
		"a patch that makes it somebody else's": {objects: []string{deployment}, change: patch(&v1alpha1.PatchTarget{Kind: "Deployment"}, `[{op: add, path: /metadata/namespace, value: other}]`), want: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			app := inline(test.objects...)
			if test.change != nil {
				test.change(&app.Spec)
			}
			w := newWorld(t, nil, app)
			got := w.turn()
			if message := says(got, v1alpha1.ApplicationRendered); !strings.Contains(message, test.want) {
				t.Errorf("condition Rendered says %q, want %q", message, test.want)
			}
			if w.revisionNames() != "" || w.released() != "" {
				t.Errorf("there are revisions %s and releases of %s, want nothing", w.revisionNames(), w.released())
			}
			if events := len(w.recorder.Events); events != 1 {
				t.Errorf("%d events, want one that tells it", events)
			}
		})
	}
}

func TestTargetsAreRenderedWithTheirPatches(t *testing.T) {
	app := inline(deployment)
	app.Spec.Targets = []v1alpha1.Target{
		{Name: "east", Cluster: "east"}, {Name: "north", Cluster: "north"},
		{Name: "west", Cluster: "west", Patches: []v1alpha1.Patch{{Patch: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2}}"}}},
	}
	w := newWorld(t, nil, app)
	w.turn()
	revision := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)[0]
	hash := map[string]string{}
	for _, target := range revision.Spec.Targets {
		hash[target.Name] = target.Hash
	}
	if len(hash) != 3 || hash["east"] != hash["north"] || hash["east"] == hash["west"] || len(revision.Spec.Objects) != 2 {
		t.Errorf("targets %v of %d objects, want the one with a patch alone to differ", hash, len(revision.Spec.Objects))
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Targets[0].Cluster = "south" })
	if w.turn(); w.revisionNames() != "web-v1" || w.released() != "web-v1 web-v1" {
		t.Errorf("another cluster makes revisions %s and releases of %s, want one more release of the same", w.revisionNames(), w.released())
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Targets = spec.Targets[:2] })
	if w.turn(); w.revisionNames() != "web-v1 web-v2" {
		t.Errorf("a target less makes revisions %s, want another one", w.revisionNames())
	}
}

func TestStagesThatAskForWhatNobodyDoes(t *testing.T) {
	app := inline(deployment)
	app.Spec.Pipeline = &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{{Name: v1alpha1.StagePrimaryRollout, With: &runtime.RawExtension{Raw: []byte(`{"suffix":"stable"}`)}}}}
	w := newWorld(t, nil, app)
	if got := says(w.turn(), v1alpha1.ApplicationHonoured); !strings.Contains(got, "spec.pipeline.stages[0].with.suffix is not honoured") {
		t.Errorf("condition Honoured says %q, want the option by its path", got)
	}
	if w.revisionNames() != "web-v1" {
		t.Errorf("revisions %q, want the one that there would be without the option", w.revisionNames())
	}
}

func TestWhatIsSuspendedIsLeftAlone(t *testing.T) {
	w := newWorld(t, nil, inline(deployment))
	w.turn()
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Suspend = true
		spec.Source.Inline.Objects[0].Raw = []byte(configMap("blue"))
	})
	if w.turn(); w.revisionNames() != "web-v1" {
		t.Errorf("revisions %s while it is suspended", w.revisionNames())
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Suspend = false })
	if w.turn(); w.revisionNames() != "web-v1 web-v2" || w.released() != "web-v1 web-v2" {
		t.Errorf("revisions %s once it is not", w.revisionNames())
	}
}

func TestHistoryIsBounded(t *testing.T) {
	app := inline(deployment)
	*app.Spec.RevisionHistoryLimit, *app.Spec.ReleaseHistoryLimit = 1, 1
	w := newWorld(t, nil, app)
	for _, colour := range []string{"a", "b", "c", "d", "e"} {
		w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Inline.Objects[0].Raw = []byte(configMap(colour)) })
		w.turn()
		w.ends(v1alpha1.ReleaseSucceeded)
	}
	w.turn()
	if got, want := w.revisionNames(), "web-v3 web-v4 web-v5"; got != want {
		t.Errorf("revisions %s, want %s: those of the releases that are kept, and one more", got, want)
	}
	if got := len(w.view.releases.List()); got != 2 {
		t.Errorf("%d releases, want the one that tells what runs and one more", got)
	}
}

// An ApplicationDeployment runs what the application may have forgotten long ago.
func TestARevisionIsKeptThatAWorkloadIsACopyOf(t *testing.T) {
	app := inline(deployment)
	*app.Spec.RevisionHistoryLimit, *app.Spec.ReleaseHistoryLimit = 1, 1
	w := newWorld(t, nil, app, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-v2", Annotations: map[string]string{v1alpha1.AnnotationMadeOf: "web-v2"},
	}})
	for _, colour := range []string{"a", "b", "c", "d", "e"} {
		w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Inline.Objects[0].Raw = []byte(configMap(colour)) })
		w.turn()
		w.ends(v1alpha1.ReleaseSucceeded)
	}
	w.turn()
	if got, want := w.revisionNames(), "web-v2 web-v3 web-v4 web-v5"; got != want {
		t.Errorf("revisions %s, want %s", got, want)
	}
}

// K8 and K9: their names are those that an ApplicationDeployment refers to.
func TestK8AndK9EveryChangeIsARevisionOfItsOwnThatStaysAndIsListedByName(t *testing.T) {
	w := newWorld(t, nil, inline(deployment, configMap("one")))
	var first string
	for i, colour := range []string{"one", "two", "two", "three", "one"} {
		w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Inline.Objects[1].Raw = []byte(configMap(colour)) })
		w.turn()
		w.ends(v1alpha1.ReleaseSucceeded)
		if i == 0 {
			first = marshalled(caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)[0].Spec)
		}
	}
	w.turn()
	names := strings.Fields(w.revisionNames())
	if len(names) < 3 || !slices.Equal(names[:3], []string{"web-v1", "web-v2", "web-v3"}) { // the same twice is one
		t.Fatalf("revisions are %v", names)
	}
	for _, revision := range caches.All[*v1alpha1.ApplicationRevision](w.view.revisions) {
		if revision.Name == "web-v1" && marshalled(revision.Spec) != first {
			t.Errorf("web-v1 was\n%s\nand is\n%s", first, marshalled(revision.Spec))
		}
		if revision.Name != v1alpha1.RevisionName("web", revision.Spec.Number) {
			t.Errorf("%s is number %d", revision.Name, revision.Spec.Number)
		}
	}
}

// K20: with the annotation a change makes a revision and no release.
func TestARevisionAloneReplacesNothing(t *testing.T) {
	app := inline(deployment)
	w := newWorld(t, nil, app)
	w.turn()
	w.ends(v1alpha1.ReleaseSucceeded)
	stored, err := w.client.DeliveryV1alpha1().Applications("shop").Get(t.Context(), app.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored.Annotations = map[string]string{v1alpha1.AnnotationRevisionOnly: "true"}
	if _, err := w.client.DeliveryV1alpha1().Applications("shop").Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.settled()
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Inline.Objects[0].Raw = []byte(configMap("b")) })
	now := w.turn()
	if got := w.revisionNames(); got != "web-v1 web-v2" || now.Status.WantedRevision != "web-v1" {
		t.Errorf("revisions %s, wanted is %s", got, now.Status.WantedRevision)
	}
	if got := len(w.view.releases.List()); got != 1 {
		t.Errorf("%d releases, want that of web-v1 alone", got)
	}
}

func TestHistoryIsBoundedByItsChunksAndSecrets(t *testing.T) {
	app := inline(deployment)
	*app.Spec.RevisionHistoryLimit, *app.Spec.ReleaseHistoryLimit = 10, 0
	w := newWorld(t, nil, app)
	for _, colour := range []string{"a", "b", "c"} {
		w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Inline.Objects[0].Raw = []byte(configMap(colour)) })
		w.turn()
		w.ends(v1alpha1.ReleaseSucceeded)
	}
	w.turn()
	if got, want := w.revisionNames(), "web-v1 web-v2 web-v3"; got != want {
		t.Fatalf("revisions %s, want %s", got, want)
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{v1alpha1.LabelApplication: "web"}}
	}
	create := func(of string, number int64, n int, secrets bool) {
		for i := range n {
			chunk := &v1alpha1.ApplicationRevision{ObjectMeta: meta(v1alpha1.ChunkName(of, i+1)), Spec: v1alpha1.ApplicationRevisionSpec{Application: "web", Number: number, ChunkOf: of}}
			if _, err := w.client.DeliveryV1alpha1().ApplicationRevisions("shop").Create(t.Context(), chunk, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if !secrets {
				continue
			}
			secret := &corev1.Secret{ObjectMeta: meta(revision.SecretName(of, i+1)), Type: revision.SecretType}
			if _, err := w.objects.CoreV1().Secrets("shop").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		w.settled()
	}
	create("web-v1", 1, 90, true) // which is too much only together, and with what runs
	create("web-v3", 3, 90, false)
	w.turn()
	left, err := w.objects.CoreV1().Secrets("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.revisionNames(); !strings.HasPrefix(got, "web-v2 web-v3 web-v3-") || len(left.Items) != 0 {
		t.Errorf("revisions %s and %d Secrets, want the second, the third with its chunks, and no Secret", got, len(left.Items))
	}
}

func TestWhatUsersApplyIsSelected(t *testing.T) {
	deployed := func(image string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
		out := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "x", ResourceVersion: "1", Labels: map[string]string{"app": "web"}}}
		out.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: image}}
		for _, c := range change {
			c(out)
		}
		return out
	}
	other := deployed("other:1", func(d *appsv1.Deployment) { d.Name, d.Labels = "other", nil })
	copied := deployed("web:1", func(d *appsv1.Deployment) {
		d.Name, d.Annotations = "web-canary", map[string]string{v1alpha1.AnnotationVariant: v1alpha1.VariantCanary}
	})
	made := deployed("web:1", func(d *appsv1.Deployment) {
		d.Name = "made"
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Operator", Name: "x", UID: "x", Controller: ptr.To(true)}}
	})
	app := inline()
	app.Spec.Source = v1alpha1.Source{Selector: &v1alpha1.ObjectSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	w := newWorld(t, nil, app, deployed("web:1"), other, copied, made)
	w.turn()
	if w.revisionNames() != "web-v1" {
		t.Fatalf("revisions %q", w.revisionNames())
	}
	if spec := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)[0].Spec; len(spec.Objects) != 1 || len(spec.Images) != 1 || spec.Images[0].Name != "web" {
		t.Errorf("selected is %+v, want what the user has applied and labelled", spec.Objects)
	}
	for name, step := range map[string]struct {
		to   *appsv1.Deployment
		want int
	}{
		"1 a status is no new version": {deployed("web:1", func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 3 }), 1},
		"2 to scale is none":           {deployed("web:1", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(9)) }), 1},
		"3 a decision is none": {deployed("web:1", func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{"manifold.dev/placement": `{"east":{"replicas":1}}`}
		}), 1},
	} {
		if _, err := w.objects.AppsV1().Deployments("shop").Update(t.Context(), step.to, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the cache shows the change", func() bool {
			shown, err := w.kube.Apps().V1().Deployments().Lister().Deployments("shop").Get("web")
			return err == nil && marshalled(shown) == marshalled(step.to)
		})
		if w.turn(); len(w.view.revisions.List()) != step.want {
			t.Errorf("%s: revisions %s", name, w.revisionNames())
		}
	}
	if _, err := w.objects.AppsV1().Deployments("shop").Update(t.Context(), deployed("web:2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	name, _ := w.queues.nearby.Get() // the change has it looked at again
	w.queues.nearby.Done(name)
	w.eventually("the cache shows the change", func() bool {
		shown, err := w.kube.Apps().V1().Deployments().Lister().Deployments("shop").Get("web")
		return err == nil && shown.Spec.Template.Spec.Containers[0].Image == "web:2"
	})
	if w.turn(); w.revisionNames() != "web-v1 web-v2" || w.released() != "web-v1 web-v2" {
		t.Errorf("another image makes revisions %s", w.revisionNames())
	}
}

func TestASelectorThatSelectsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		kinds []string
		want  string
	}{
		"no object has the labels": {nil, "no object of namespace shop has the labels app=web"},
		"a kind that there is not": {[]string{"Deployment", "Rollout.argoproj.io"}, "spec.source.selector.kinds[1]: Rollout.argoproj.io is not a kind that can be selected"},
	} {
		app := inline()
		app.Spec.Source = v1alpha1.Source{Selector: &v1alpha1.ObjectSelector{Kinds: test.kinds, LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
		w := newWorld(t, nil, app)
		if got := says(w.turn(), v1alpha1.ApplicationSourceReady); !strings.Contains(got, test.want) || w.revisionNames() != "" {
			t.Errorf("%s: condition SourceReady says %q, want %q", name, got, test.want)
		}
	}
}
