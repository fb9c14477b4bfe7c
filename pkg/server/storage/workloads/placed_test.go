package workloads

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // strategies convert
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	deploymentstrategy "k8s.io/kubernetes/pkg/registry/apps/deployment"
	replicasetstrategy "k8s.io/kubernetes/pkg/registry/apps/replicaset"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/words"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/builtin"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// placer puts everything whole on east, or says what it is told to say.
type placer struct {
	unready bool
	nowhere bool
	tied    []string
	// asked and placed are what it was asked and told.
	asked  []placement.Workload
	of     []placement.Decision // the present decisions
	placed []placement.Decision
}

func (p *placer) Place(w placement.Workload, current placement.Decision) (placement.Result, bool) {
	p.asked, p.of = append(p.asked, w), append(p.of, current)
	if p.unready {
		return placement.Result{}, false
	}
	if p.nowhere {
		return placement.Result{}, true
	}
	result := placement.Result{Decision: placement.Decision{"east": {Replicas: w.Replicas}}, Tied: p.tied}
	if len(p.tied) > 0 {
		result.Notes = []words.Note{{Code: words.NoteProblem, Subject: "it stays"}}
	}
	return result, true
}

func (p *placer) Placed(_ placement.Workload, d placement.Decision) { p.placed = append(p.placed, d) }

// deployment is a valid one in the internal version, with annotations in pairs of key and value.
func deployment(replicas int32, annotations ...string) *apps.Deployment {
	d := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1, ResourceVersion: "1"}}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, annotations[i], annotations[i+1])
	}
	d.Spec.Replicas = replicas
	d.Spec.RevisionHistoryLimit = new(int32)
	d.Spec.ProgressDeadlineSeconds = new(int32(600))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
	d.Spec.Template.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Spec = api.PodSpec{
		RestartPolicy: api.RestartPolicyAlways, DNSPolicy: api.DNSClusterFirst, TerminationGracePeriodSeconds: new(int64),
		SecurityContext: &api.PodSecurityContext{},
		Containers: []api.Container{{Name: "app", Image: "image", ImagePullPolicy: api.PullAlways,
			TerminationMessagePolicy: api.TerminationMessageReadFile, TerminationMessagePath: "/dev/termination-log"}},
	}
	return d
}

// stored is a deployment as it was stored after it was placed.
func stored(replicas int32, annotations ...string) *apps.Deployment {
	d := deployment(replicas, append([]string{v1alpha1.AnnotationPlacement, onEast(replicas)}, annotations...)...)
	d.Finalizers = []string{v1alpha1.FinalizerProjection}
	return d
}

func onEast(replicas int32) string { return fmt.Sprintf(`{"east":{"replicas":%d}}`, replicas) }

var deployments = func() reader {
	kind, _ := projection.ForGVK(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	return reader{kind}
}()

func placing(p *placer) placedStrategy {
	return placedStrategy{Strategy: deploymentstrategy.Strategy, reader: deployments, placer: p}
}

func TestWorkloadIsPlacedWhileItIsCreated(t *testing.T) {
	for name, test := range map[string]struct {
		placer      placer
		object      *apps.Deployment
		want        string // the decision
		wantWarning string
		wantAsked   bool
	}{
		"it carries its decision": {
			object: deployment(3), want: onEast(3), wantAsked: true,
		},
		"a decision by hand is not obeyed": {
			object: deployment(3, v1alpha1.AnnotationPlacement, `{"west":{"replicas":9}}`), want: onEast(3), wantAsked: true,
			wantWarning: "metadata.annotations[manifold.dev/placement]: only Manifold writes this, so your value is ignored",
		},
		"nor is a status": {
			object: deployment(3, v1alpha1.AnnotationStatus, "{}"), want: onEast(3), wantAsked: true,
			wantWarning: "metadata.annotations[manifold.dev/status]: only Manifold writes this",
		},
		"what no cluster can run is taken with a warning": {
			placer: placer{nowhere: true}, object: deployment(3), wantAsked: true,
			wantWarning: `Deployment "web" is not placed yet: 0/0 clusters can run it: no cluster has joined`,
		},
		"what comes before the clusters are known is taken with a warning": {
			placer: placer{unready: true}, object: deployment(3), wantAsked: true,
			wantWarning: `Deployment "web" is not placed yet: the clusters are not known yet`,
		},
		"what is refused for its pin is not placed": {
			object: deployment(3, v1alpha1.AnnotationClusters, ","),
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, seen := storagetest.As(t, "jane")
			placing(&test.placer).PrepareForCreate(ctx, test.object)
			if got := test.object.Annotations[v1alpha1.AnnotationPlacement]; got != test.want {
				t.Errorf("decision %q, want %q", got, test.want)
			}
			if _, ok := test.object.Annotations[v1alpha1.AnnotationStatus]; ok {
				t.Error("a new object has a status")
			}
			if !slices.Equal(test.object.Finalizers, []string{v1alpha1.FinalizerProjection}) {
				t.Errorf("finalizers %v", test.object.Finalizers)
			}
			if asked := len(test.placer.asked) == 1; asked != test.wantAsked {
				t.Errorf("asked %d times", len(test.placer.asked))
			}
			if placed := len(test.placer.placed) == 1; placed != (test.want != "") {
				t.Errorf("told of %v as placed", test.placer.placed)
			}
			if got := strings.Join(seen.Texts, "; "); !strings.HasPrefix(got, test.wantWarning) || (got == "") != (test.wantWarning == "") {
				t.Errorf("warnings %q, want %q", got, test.wantWarning)
			}
		})
	}
}

// Of our controllers those alone pass that write decisions and mirrors.
func TestWorkloadsOfControllersArePlacedUnlessTheyAreMirrors(t *testing.T) {
	for _, who := range identity.Controllers() {
		p := &placer{}
		ctx, _ := storagetest.As(t, who)
		d := deployment(3)
		placing(p).PrepareForCreate(ctx, d)
		want := !slices.Contains([]string{v1alpha1.PlacementUser, v1alpha1.RemovalUser, v1alpha1.SummaryUser}, who)
		if got := len(p.asked) == 1 && d.Annotations[v1alpha1.AnnotationPlacement] == onEast(3); got != want {
			t.Errorf("%s: placed %t, want %t", who, got, want)
		}
	}
}

func TestFinalizersOfOthersAreKept(t *testing.T) {
	ctx, _ := storagetest.As(t, "jane")
	d := deployment(1)
	d.Finalizers = []string{"example.com/a", v1alpha1.FinalizerProjection}
	placing(&placer{}).PrepareForCreate(ctx, d)
	if want := []string{"example.com/a", v1alpha1.FinalizerProjection}; !slices.Equal(d.Finalizers, want) {
		t.Errorf("finalizers %v, want %v", d.Finalizers, want)
	}
}

func TestUpdateOfAWorkload(t *testing.T) {
	going := stored(3)
	going.DeletionTimestamp = &metav1.Time{}
	moved := func() *apps.Deployment { return deployment(3, v1alpha1.AnnotationPlacement, `{"west":{"replicas":3}}`) }
	scaled, relabelled := stored(3), stored(3)
	scaled.Spec.Replicas = 5
	relabelled.Labels = map[string]string{"tier": "front"}
	undone := stored(3)
	undone.Annotations[v1alpha1.AnnotationPlacement] = `{"east":{}}`
	for name, test := range map[string]struct {
		who            string // jane by default
		old, object    *apps.Deployment
		want           string // the decision
		wantAsked      bool
		wantRepinned   bool
		wantFinalizers []string
		wantWarning    bool
	}{
		"a manifest that knows nothing of the decision keeps it, and the finalizer": {
			old: stored(3), object: deployment(3), want: onEast(3), wantFinalizers: []string{v1alpha1.FinalizerProjection},
		},
		"a decision by hand is not obeyed": {
			old: stored(3), object: moved(), want: onEast(3), wantFinalizers: []string{v1alpha1.FinalizerProjection}, wantWarning: true,
		},
		"a decision that its ReplicaSet has had, as a rollback brings it, is passed over in silence": {
			old: stored(3), object: undone, want: onEast(3), wantFinalizers: []string{v1alpha1.FinalizerProjection},
		},
		"scaling divides anew in the same request": {
			old: stored(3), object: scaled, want: onEast(5), wantAsked: true, wantFinalizers: []string{v1alpha1.FinalizerProjection},
		},
		"another pin is obeyed at once": {
			old: stored(3), object: stored(3, v1alpha1.AnnotationClusters, "east"), want: onEast(3), wantAsked: true, wantRepinned: true,
			wantFinalizers: []string{v1alpha1.FinalizerProjection},
		},
		"other labels may be under another policy": {
			old: stored(3), object: relabelled, want: onEast(3), wantAsked: true, wantFinalizers: []string{v1alpha1.FinalizerProjection},
		},
		"what was not placed is tried again": {
			old: deployment(3), object: deployment(3), want: onEast(3), wantAsked: true,
		},
		"what is being deleted is not placed any more": {
			old: going, object: func() *apps.Deployment { d := going.DeepCopy(); d.Spec.Replicas = 9; return d }(), want: onEast(3),
			wantFinalizers: []string{v1alpha1.FinalizerProjection},
		},
		"what is being deleted may be let go by hand": {
			old: going, object: func() *apps.Deployment { d := going.DeepCopy(); d.Finalizers = nil; return d }(), want: onEast(3),
		},
		"Manifold's own decision is taken as it is": {
			who: v1alpha1.PlacementUser, old: stored(3), object: moved(), want: `{"west":{"replicas":3}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			who := test.who
			if who == "" {
				who = "jane"
			}
			ctx, seen := storagetest.As(t, who)
			p := &placer{}
			before := test.old.DeepCopy()
			s := placing(p)
			s.copied = rolledBack(replicaSetsOf(test.old.UID))
			s.PrepareForUpdate(ctx, test.object, test.old)
			if got := test.object.Annotations[v1alpha1.AnnotationPlacement]; got != test.want {
				t.Errorf("decision %q, want %q", got, test.want)
			}
			if !slices.Equal(test.object.Finalizers, test.wantFinalizers) {
				t.Errorf("finalizers %v, want %v", test.object.Finalizers, test.wantFinalizers)
			}
			if asked := len(p.asked) == 1; asked != test.wantAsked {
				t.Errorf("asked %t, want %t", asked, test.wantAsked)
			}
			if test.wantAsked && p.asked[0].Repinned != test.wantRepinned {
				t.Errorf("repinned %t, want %t", p.asked[0].Repinned, test.wantRepinned)
			}
			if test.wantAsked && p.of[0].String() != before.Annotations[v1alpha1.AnnotationPlacement] {
				t.Errorf("asked with the present decision %s, want that of the old object", p.of[0])
			}
			if warned := len(seen.Texts) > 0; warned != test.wantWarning {
				t.Errorf("warnings %q", seen.Texts)
			}
			if !maps.Equal(before.Annotations, test.old.Annotations) {
				t.Error("the old object was changed")
			}
		})
	}
}

// replicaSets are those that a store has.
type replicaSets struct {
	rest.Lister
	list apps.ReplicaSetList
}

func (r replicaSets) List(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
	return &r.list, nil
}

// replicaSetsOf returns one ReplicaSet of a Deployment, with a decision of its own, and one of somebody else.
func replicaSetsOf(uid types.UID) replicaSets {
	made := func(uid types.UID, decision string) apps.ReplicaSet {
		owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: uid, Controller: new(true)}
		return apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{owner}, Annotations: map[string]string{v1alpha1.AnnotationPlacement: decision},
		}}
	}
	return replicaSets{list: apps.ReplicaSetList{Items: []apps.ReplicaSet{made(uid, `{"east":{}}`), made("another", `{"west":{"replicas":3}}`)}}}
}

// The generation is what rollout status waits for: a share that changes is a change.
func TestNewDecisionIsANewGeneration(t *testing.T) {
	ctx, _ := storagetest.As(t, "jane")
	object := stored(3)
	object.Spec.Replicas = 5
	placing(&placer{}).PrepareForUpdate(ctx, object, stored(3))
	if object.Generation != 2 {
		t.Errorf("generation %d, want 2", object.Generation)
	}
	moved := stored(3)
	moved.Annotations[v1alpha1.AnnotationPlacement] = `{"west":{"replicas":3}}`
	ctx, _ = storagetest.As(t, v1alpha1.PlacementUser)
	placing(&placer{}).PrepareForUpdate(ctx, moved, stored(3))
	if moved.Generation != 2 {
		t.Errorf("generation %d after a move, want 2", moved.Generation)
	}
}

func TestMalformedPinIsRefusedWithItsPath(t *testing.T) {
	const path = `metadata.annotations[manifold.dev/clusters]`
	bad, good := stored(3, v1alpha1.AnnotationClusters, "East,"), stored(3, v1alpha1.AnnotationClusters, "east")
	scaledBad := stored(5, v1alpha1.AnnotationClusters, "East,")
	for name, test := range map[string]struct {
		old, object *apps.Deployment // old is nil for a new object
		want        bool             // refused
	}{
		"on create":                                {nil, bad, true},
		"when it is blank":                         {nil, stored(3, v1alpha1.AnnotationClusters, " "), true},
		"on an update that adds it":                {stored(3), bad, true},
		"on an update that makes it bad":           {good, bad, true},
		"on an update that makes it bad otherwise": {stored(3, v1alpha1.AnnotationClusters, "*,east"), bad, true},
		"but what has a bad one stays editable":    {bad, scaledBad, false},
		"and may be mended":                        {bad, good, false},
		"or unpinned":                              {bad, stored(3), false},
		"a good one is taken":                      {nil, good, false},
		"none is needed":                           {nil, stored(3), false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, "jane")
			s := placing(&placer{})
			var errs []string
			if test.old == nil {
				for _, err := range s.Validate(ctx, test.object) {
					errs = append(errs, err.Error())
				}
			} else {
				for _, err := range s.ValidateUpdate(ctx, test.object, test.old) {
					errs = append(errs, err.Error())
				}
			}
			if refused := len(errs) > 0; refused != test.want {
				t.Fatalf("errors %q", errs)
			}
			for _, err := range errs {
				if !strings.HasPrefix(err, path) {
					t.Errorf("error %q, want one about %s", err, path)
				}
			}
		})
	}
}

func TestUnknownWordAboutVolumesIsRefusedWithItsPath(t *testing.T) {
	const path = `metadata.annotations[manifold.dev/volumes]: Unsupported value: "move": supported values: "recreate"`
	bad, good := stored(3, v1alpha1.AnnotationVolumes, "move"), stored(3, v1alpha1.AnnotationVolumes, "recreate")
	ctx, _ := storagetest.As(t, "jane")
	s := placing(&placer{})
	for name, test := range map[string]struct {
		errs field.ErrorList
		want string
	}{
		"on create":                         {s.Validate(ctx, bad), path},
		"on an update":                      {s.ValidateUpdate(ctx, bad, good), path},
		"what has a bad one stays editable": {s.ValidateUpdate(ctx, stored(5, v1alpha1.AnnotationVolumes, "move"), bad), ""},
		"the known one is taken":            {s.Validate(ctx, good), ""},
		"and may be taken away":             {s.ValidateUpdate(ctx, stored(3), good), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			if len(test.errs) > 0 {
				got = test.errs.ToAggregate().Error()
			}
			if got != test.want {
				t.Errorf("errors %q, want %q", got, test.want)
			}
		})
	}
}

func TestWordAboutVolumesIsHeededAtOnce(t *testing.T) {
	ctx, _ := storagetest.As(t, "jane")
	p := &placer{}
	old := stored(3, v1alpha1.AnnotationPlacement, `{"east":{"replicas":3}}`)
	placing(p).PrepareForUpdate(ctx, stored(3, v1alpha1.AnnotationVolumes, "recreate"), old)
	if len(p.asked) != 1 || !p.asked[0].Recreates {
		t.Errorf("asked about %v, want the workload that begins with new volumes elsewhere", p.asked)
	}
}

func TestWhatStaysForItsVolumesIsToldInAWarning(t *testing.T) {
	ctx, seen := storagetest.As(t, "jane")
	p := &placer{tied: []string{"east"}}
	old := stored(3, v1alpha1.AnnotationPlacement, `{"east":{"replicas":3}}`)
	placing(p).PrepareForUpdate(ctx, stored(3, v1alpha1.AnnotationClusters, "west"), old)
	if want := `Deployment "web": placed on east; it stays`; len(seen.Texts) != 1 || seen.Texts[0] != want {
		t.Errorf("warnings %q, want %q", seen.Texts, want)
	}
}

func TestWhatKubernetesRefusesIsRefusedInItsWords(t *testing.T) {
	ctx, _ := storagetest.As(t, "jane")
	d := deployment(-1)
	errs := placing(&placer{}).Validate(ctx, d)
	if len(errs) != 1 || errs[0].Field != "spec.replicas" {
		t.Errorf("errors %v, want that of spec.replicas", errs)
	}
}

func TestWorkloadAsPlacementSeesIt(t *testing.T) {
	d := deployment(4, v1alpha1.AnnotationClusters, "west,east")
	d.Labels = map[string]string{"tier": "front"}
	got, err := deployments.workload(d)
	if err != nil {
		t.Fatal(err)
	}
	if got.GVK.String() != "apps/v1, Kind=Deployment" || got.Namespace != "shop" || got.Name != "web" || got.Replicas != 4 || got.Division != placement.Divisible ||
		got.Labels["tier"] != "front" || got.Requests["pods"] != 1 || !slices.Equal(got.Pin.Names, []string{"east", "west"}) {
		t.Errorf("workload %+v", got)
	}
	if _, err := deployments.workload(&api.Pod{}); err == nil {
		t.Error("a Pod passes for a Deployment")
	}
}

// A status update takes the metadata's annotations along.
func TestStatusUpdateOfOthersKeepsWhatManifoldWrites(t *testing.T) {
	ctx, seen := storagetest.As(t, "jane")
	object, old := stored(3, v1alpha1.AnnotationStatus, "by hand", "note", "new"), stored(3, v1alpha1.AnnotationStatus, `{"east":{}}`, "note", "old")
	out, err := builtin.KeepFromOld(metadata.KeepManaged)(ctx, object, old)
	if err != nil {
		t.Fatal(err)
	}
	got := out.(*apps.Deployment).Annotations
	if got[v1alpha1.AnnotationStatus] != `{"east":{}}` || got["note"] != "new" {
		t.Errorf("annotations %v", got)
	}
	if len(seen.Texts) != 1 {
		t.Errorf("warnings %q, want one", seen.Texts)
	}
	for _, pair := range [][2]runtime.Object{{nil, old}, {object, nil}} {
		if out, err := builtin.KeepFromOld(metadata.KeepManaged)(ctx, pair[0], pair[1]); err != nil || out != pair[0] {
			t.Errorf("of %v it made %v, %v", pair, out, err)
		}
	}
}

func TestMirroredReplicaSetIsWrittenWithItsStatus(t *testing.T) {
	for who, want := range map[string]int32{v1alpha1.SummaryUser: 3, "jane": 0} {
		t.Run(who, func(t *testing.T) {
			ctx, _ := storagetest.As(t, who)
			s := replicaSetStrategy{replicasetstrategy.Strategy}
			created := &apps.ReplicaSet{Status: apps.ReplicaSetStatus{Replicas: 3}}
			s.PrepareForCreate(ctx, created)
			if created.Status.Replicas != want {
				t.Errorf("created with %d replicas in the status, want %d", created.Status.Replicas, want)
			}
			updated := &apps.ReplicaSet{Status: apps.ReplicaSetStatus{Replicas: 3}}
			s.PrepareForUpdate(ctx, updated, &apps.ReplicaSet{})
			if updated.Status.Replicas != want {
				t.Errorf("updated with %d replicas in the status, want %d", updated.Status.Replicas, want)
			}
		})
	}
	ctx, _ := storagetest.As(t, v1alpha1.SummaryUser)
	another := &apps.ReplicaSet{Spec: apps.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	if errs := (replicaSetStrategy{replicasetstrategy.Strategy}).ValidateUpdate(ctx, another, &apps.ReplicaSet{}); len(errs) > 0 {
		t.Errorf("a mirror may not follow its template: %v", errs)
	}
}
