package syncer

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/lacking"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// asOurs is an object as a cluster holds it of ours, for the one above that has the UID.
func asOurs[T projection.Object](obj T, uid string) T {
	obj.SetLabels(map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster})
	obj.SetAnnotations(map[string]string{
		v1alpha1.AnnotationNamespace: obj.GetNamespace(), v1alpha1.AnnotationName: obj.GetName(), v1alpha1.AnnotationUID: uid,
	})
	return obj
}

func maybeUsingSecret(name string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		usingSecret(name)(d)
		d.Spec.Template.Spec.Volumes[len(d.Spec.Template.Spec.Volumes)-1].Secret.Optional = ptr.To(true)
	}
}

// answering is a cluster that answers what is created there as one in which the name is taken, or free.
func answering(t *testing.T, taken bool, asked *int) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		if r.Method != http.MethodPost || r.URL.Query().Get("dryRun") != metav1.DryRunAll {
			t.Errorf("asked %s %s, want an attempt that changes nothing", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		if taken {
			status := apierrors.NewAlreadyExists(corev1.Resource("secrets"), "key").Status()
			w.WriteHeader(int(status.Code))
			_ = json.NewEncoder(w).Encode(&status)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}})
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAWorkloadComesOnlyWhereAllThatItNamesIsOurs(t *testing.T) {
	const foreign = "the cluster already has one"
	secretKey := identity.Key{Resource: secretResource, Namespace: "shop", Name: "key"}
	terminating := asOurs(secret("key"), "uid-of-key")
	terminating.DeletionTimestamp = &metav1.Time{}
	pulling := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "key"}}
	}
	inInit := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", EnvFrom: []corev1.EnvFromSource{{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "key"}}}}}}
	}
	rootCA := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", EnvFrom: []corev1.EnvFromSource{{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}}}}
	}
	token := secret("key")
	token.Type = corev1.SecretTypeServiceAccountToken
	for name, test := range map[string]struct {
		of          []func(*appsv1.Deployment)
		above, here []projection.Object
		state       states.State // of the Secret
		taken       bool         // whether the cluster has another object of that name
		want        string
		wantWait    bool
		wantAsked   int
	}{
		"one that names nothing goes at once": {},
		"what it names is there": {
			of: list(usingSecret("key")), above: objects(secret("key")), here: objects(asOurs(secret("key"), "uid-of-key")),
		},
		"what it names was made a moment ago": {
			of: list(usingSecret("key")), above: objects(secret("key")), state: states.State{UID: "uid-of-key", Hash: "h"},
		},
		"what it names is on its way": {
			of: list(usingSecret("key")), above: objects(secret("key")), wantWait: true,
		},
		"what is there is for an earlier one of that name": {
			of: list(usingSecret("key")), above: objects(secret("key")), here: objects(asOurs(secret("key"), "earlier")), wantWait: true,
		},
		"what is there is about to go": {
			of: list(usingSecret("key")), above: objects(secret("key")), here: objects(terminating), wantWait: true,
		},
		"the name is somebody else's": {
			of: list(usingSecret("key")), above: objects(secret("key")), state: states.State{UID: "uid-of-key", Problem: foreign},
			want: `it waits for Secret shop/key: ` + foreign,
		},
		"the name is somebody else's, though it may be missing": {
			of: list(maybeUsingSecret("key")), above: objects(secret("key")), state: states.State{UID: "uid-of-key", Problem: foreign},
			want: `it waits for Secret shop/key: ` + foreign,
		},
		"it does not exist above": {
			of: list(usingSecret("key")), want: `it uses Secret shop/key, which does not exist: create it, or remove the reference`,
		},
		"it does not exist above any more": {
			of: list(usingSecret("key")), here: objects(asOurs(secret("key"), "uid-of-key")), want: `it uses Secret shop/key, which does not exist`,
		},
		"it is one of those that are never there": {
			of: list(usingSecret("key")), above: objects(token), want: `it uses Secret shop/key, which is not sent to any cluster: a token of a ServiceAccount`,
		},
		"an init container names it": {of: list(inInit), want: `it uses Secret shop/key, which does not exist`},
		"it may be missing, and is":  {of: list(maybeUsingSecret("key")), wantAsked: 1},
		"it may be missing, and somebody else has one": {
			of: list(maybeUsingSecret("key")), taken: true, wantAsked: 1, want: "this cluster has one that Manifold does not own",
		},
		"so with a Secret to pull images": {
			of: list(pulling), taken: true, wantAsked: 1, want: `it uses Secret shop/key, which does not exist in the logical cluster`,
		},
		"and with that of its ServiceAccount": {
			of: list(runningAs("robot")), above: objects(account("robot", "key")), here: objects(asOurs(account("robot", "key"), "uid-of-robot")),
			taken: true, wantAsked: 1, want: `it uses Secret shop/key, which does not exist in the logical cluster`,
		},
		"its ServiceAccount does not exist":        {of: list(runningAs("robot")), want: `it uses ServiceAccount shop/robot, which does not exist`},
		"its ServiceAccount is on its way":         {of: list(runningAs("robot")), above: objects(account("robot")), wantWait: true},
		"every cluster has a default one":          {of: list(runningAs("default")), above: objects(account("default"))},
		"and its own certificate":                  {of: list(rootCA)},
		"a default one with Secrets is to be ours": {of: list(runningAs("default")), above: objects(account("default", "key"), secret("key")), here: objects(asOurs(secret("key"), "uid-of-key")), wantWait: true},
	} {
		t.Run(name, func(t *testing.T) {
			web := deployment("web", toEast, test.of...)
			s := attach(t, newUpstream(t, append(test.above, web)...), "east", test.here...)
			asked := 0
			s.reaches(answering(t, test.taken, &asked))
			if test.state != (states.State{}) {
				s.states.Set(secretKey, test.state)
			}
			s.tryOften(identity.KeyOf(deployments, web))
			held, err := s.lacking.HeldBack(t.Context(), identity.Workload{Kind: deployments, Object: web}, projected(web, 1, 0), nil)
			if err != nil {
				t.Fatal(err)
			}
			if held != (test.want != "" || test.wantWait) {
				t.Errorf("held back: %t, want %t", held, !held)
			}
			got := s.states.Of(identity.KeyOf(deployments, web)).Problem
			if !strings.HasPrefix(got, test.want) && !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("problem %q, want %q", got, test.want)
			}
			if asked != test.wantAsked {
				t.Errorf("the cluster was asked %d times, want %d", asked, test.wantAsked)
			}
		})
	}
}

// tryOften makes the next step with an object one of several, so that what is not seen above does not exist.
func (s *testSyncer) tryOften(key identity.Key) {
	for range lacking.RequiredTries {
		s.queue.AddRateLimited(key)
	}
}

// Each kind has its own watch, and that of a workload may be ahead.
func TestWhatIsNotSeenYetIsWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		of    func(*appsv1.Deployment)
		tries int // before it is believed not to exist
		want  bool
	}{
		"what it needs":       {usingSecret("key"), lacking.RequiredTries, true},
		"its ServiceAccount":  {runningAs("robot"), lacking.RequiredTries, true},
		"what may be missing": {maybeUsingSecret("key"), lacking.OptionalTries, false},
	} {
		t.Run(name, func(t *testing.T) {
			web := deployment("web", toEast, test.of)
			s := attach(t, newUpstream(t, web), "east")
			asked := 0
			s.reaches(answering(t, false, &asked))
			w := identity.Workload{Kind: deployments, Object: web}
			for range test.tries {
				if _, err := s.lacking.HeldBack(t.Context(), w, projected(web, 1, 0), nil); !errors.Is(err, errNotYet) {
					t.Fatalf("error %v, want another try", err)
				}
				s.queue.AddRateLimited(w.Key())
			}
			if st := s.states.Of(w.Key()); st.Problem != "" || asked > 0 {
				t.Errorf("told of %q, and asked the cluster %d times, before it was known", st.Problem, asked)
			}
			if held, err := s.lacking.HeldBack(t.Context(), w, projected(web, 1, 0), nil); held != test.want || err != nil {
				t.Errorf("held back: %t, %v, want %t", held, err, test.want)
			}
		})
	}
}

func list[T any](of ...T) []T { return of }

func objects(of ...projection.Object) []projection.Object { return of }

func TestWhatAWorkloadWaitsForWakesIt(t *testing.T) {
	web := deployment("web", toEast, usingSecret("key"))
	u := newUpstream(t, web, secret("key"))
	s := attach(t, u, "east")
	key, w := identity.Key{Resource: secretResource, Namespace: "shop", Name: "key"}, identity.Workload{Kind: deployments, Object: web}
	if held, err := s.lacking.HeldBack(t.Context(), w, projected(web, 1, 0), nil); !held || err != nil {
		t.Fatalf("held back: %t, %v", held, err)
	}
	want := "secrets shop/key" // which is looked at, should nobody have
	if got := strings.Join(s.enqueued(), ","); got != want {
		t.Errorf("enqueued %q, want %q", got, want)
	}
	s.states.Set(key, states.State{UID: "uid-of-key", Hash: "h"})
	if got, want := strings.Join(s.enqueued(), ","), "deployments.apps shop/web"; !strings.Contains(got, "shop/web") {
		t.Errorf("enqueued %q, want %q", got, want)
	}
	if held, err := s.lacking.HeldBack(t.Context(), w, projected(web, 1, 0), nil); held || err != nil {
		t.Errorf("held back: %t, %v, want it to go", held, err)
	}
	s.states.Set(key, states.State{UID: "uid-of-key", Hash: "other"})
	if got := s.enqueued(); len(got) > 0 {
		t.Errorf("enqueued %q for what it has, want nothing", got)
	}
}

func TestWhatRunsIsNotHeldBackUnlessItMakesOtherPods(t *testing.T) {
	web := deployment("web", toEast, usingSecret("key"))
	s := attach(t, newUpstream(t, web), "east")
	w, live := identity.Workload{Kind: deployments, Object: web}, projected(web, 3, 3)
	image := projected(web, 3, 0)
	image.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "other"}}
	relabelled := projected(web, 3, 0)
	relabelled.Labels["tier"] = "front"
	for name, test := range map[string]struct {
		desired *appsv1.Deployment
		want    bool
	}{
		"more pods wait":               {projected(web, 4, 0), true},
		"pods of another template too": {image, true},
		"fewer pods do not":            {projected(web, 1, 0), false},
		"nor what makes no pods":       {relabelled, false},
	} {
		t.Run(name, func(t *testing.T) {
			s.tryOften(w.Key())
			apply := steps.Plan{Task: steps.Project, Desired: test.desired, Action: projection.Action{Step: projection.Apply}}
			needs := s.planner.Needs(planning.Look{Key: w.Key(), Kind: w.Kind, Above: web, Live: live}, apply)
			if got := slices.Contains(needs, steps.NeedUses); got != test.want {
				t.Fatalf("it needs %v; want that what it names is there: %t", needs, test.want)
			}
			if !test.want {
				return
			}
			if held, err := s.lacking.HeldBack(t.Context(), w, test.desired, live); !held || err != nil {
				t.Errorf("held back: %t, %v, want it held", held, err)
			}
		})
	}
}

func TestAnIngressUsesNoSecretOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		taken bool
		want  string
	}{
		"one that is yet to be made holds up nobody": {},
		"somebody else's does":                       {taken: true, want: "Ingress shop/door is held back: it uses Secret shop/door-tls, which does not exist in the logical cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			door, asked := ingress("door", "web"), 0
			s := attach(t, newUpstream(t, door), "east")
			s.reaches(answering(t, test.taken, &asked))
			kind, _ := projection.KindOf(door)
			s.tryOften(identity.KeyOf(kind, door))
			held, err := s.lacking.HeldBack(t.Context(), identity.Workload{Kind: kind, Object: door}, door, nil)
			if held != test.taken || err != nil {
				t.Errorf("held back: %t, %v, want %t", held, err, test.taken)
			}
			if got := s.states.Of(identity.KeyOf(kind, door)).Problem; !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("problem %q, want %q", got, test.want)
			}
		})
	}
}

func TestReplicasFindNoClaimOfOthersInASharedNamespace(t *testing.T) {
	set := func(namespace string, replicas int32) *appsv1.StatefulSet {
		out := &appsv1.StatefulSet{ObjectMeta: objectMeta("db"), Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
		out.Namespace = namespace
		out.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		return out
	}
	claim := func(name, uid string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(name)}
		c.Namespace, c.UID = "default", types.UID(uid)
		return c
	}
	const problem = "it would use PersistentVolumeClaim default/data-db-1, which the cluster has and Manifold does not own: delete it there, or use another name"
	for name, test := range map[string]struct {
		desired, live *appsv1.StatefulSet
		above         []projection.Object
		want          string
	}{
		"one that it would use":                    {desired: set("default", 2), want: problem},
		"one that a replica which comes would use": {desired: set("default", 2), live: set("default", 1), want: problem},
		"one that a replica uses already":          {desired: set("default", 2), live: set("default", 2)},
		"one beyond its replicas":                  {desired: set("default", 1)},
		"one that was made for it, as is shown":    {desired: set("default", 2), above: objects(claim("data-db-1", "u1"))},
		"one that shows another's":                 {desired: set("default", 2), above: objects(claim("data-db-1", "u2")), want: problem},
		"in a namespace of ours there is none":     {desired: set("shop", 2)},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, append(test.above, test.desired)...), "east", claim("data-db-1", "u1"))
			kind, _ := projection.KindOf(test.desired)
			var live projection.Object
			if test.live != nil {
				live = test.live
			}
			w := identity.Workload{Kind: kind, Object: test.desired}
			if held, err := s.lacking.HeldBack(t.Context(), w, test.desired, live); held != (test.want != "") || err != nil {
				t.Errorf("held back: %t, %v", held, err)
			}
			if got := s.states.Of(w.Key()).Problem; got != test.want {
				t.Errorf("problem %q, want %q", got, test.want)
			}
		})
	}
}
