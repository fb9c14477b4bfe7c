package syncer

//lint:file-ignore SA1019 Users write Endpoints all the same.

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// inDefault moves an object to a namespace that clusters share.
func inDefault[T projection.Object](obj T) T {
	obj.SetNamespace("default")
	if obj.GetAnnotations()[v1alpha1.AnnotationNamespace] != "" {
		obj.GetAnnotations()[v1alpha1.AnnotationNamespace] = "default"
	}
	return obj
}

func claimMadeOf(name, source string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(name)}
	if source != "" {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source}
	}
	return c
}

func slice(of string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: objectMeta("slice")}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: of}
	return s
}

func TestInASharedNamespaceAllThatIsNamedIsOurs(t *testing.T) {
	plain := func() *networkingv1.Ingress {
		in := ingress("door", "web")
		in.Spec.TLS = nil
		return in
	}
	set := &appsv1.StatefulSet{ObjectMeta: objectMeta("db"), Spec: appsv1.StatefulSetSpec{
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claimMadeOf("data", "source")},
	}}
	scratch := deployment("scratch", toEast, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimMadeOf("", "source").Spec}},
		}}}
	})
	const noSource, noService = "it uses PersistentVolumeClaim default/source, which does not exist", "it uses Service default/web, which does not exist"
	mirrored := inDefault(claimMadeOf("source", ""))
	mirrored.Annotations = map[string]string{v1alpha1.AnnotationCluster: "west"}
	source, web := claimMadeOf("source", ""), service("web", nil)
	for name, test := range map[string]struct {
		of          projection.Object
		above, here []projection.Object
		want        string // "" for one that comes
	}{
		"a claim of nothing":                         {of: claimMadeOf("copy", "")},
		"a copy of a claim that only others have":    {of: claimMadeOf("copy", "source"), want: "PersistentVolumeClaim default/copy is held back: " + noSource},
		"so with templates of a StatefulSet":         {of: set, want: noSource},
		"so with a volume of a pod":                  {of: scratch, want: noSource},
		"a copy of a claim that is elsewhere":        {of: claimMadeOf("copy", "source"), above: objects(source), want: "it copies PersistentVolumeClaim default/source, which is not in this cluster"},
		"a copy of a claim whose name is taken here": {of: set, above: objects(source), here: objects(claimMadeOf("source", "")), want: "it copies PersistentVolumeClaim default/source, which is not in this cluster"},
		"a copy of a claim of a replica elsewhere":   {of: set, above: objects(mirrored), want: `which is in cluster "west": run it there`},
		"a copy of a claim of ours":                  {of: claimMadeOf("copy", "source"), above: objects(source), here: objects(asOurs(claimMadeOf("source", ""), "uid-of-source"))},

		"an Ingress that leads to a Service of others":                                     {of: plain(), want: "Ingress default/door is held back: " + noService},
		"one that leads to a Service whose name is taken":                                  {of: plain(), above: objects(web), want: "it uses Service default/web, which is not sent to this cluster: annotate it"},
		"one that leads to a Service of ours":                                              {of: plain(), above: objects(web), here: objects(asOurs(service("web", nil), "uid-of-web"))},
		"a certificate that does not exist":                                                {of: ingress("door", "web"), above: objects(web), here: objects(asOurs(service("web", nil), "uid-of-web")), want: "it uses Secret default/door-tls, which does not exist"},
		"endpoints of a Service of others":                                                 {of: slice("web"), want: "EndpointSlice default/slice is held back: " + noService},
		"endpoints of a Service of ours":                                                   {of: slice("web"), above: objects(web), here: objects(asOurs(service("web", nil), "uid-of-web"))},
		"endpoints of none":                                                                {of: slice("")},
		"endpoints in the form of old":                                                     {of: &corev1.Endpoints{ObjectMeta: objectMeta("web")}, want: noService},
		"a Service that a StatefulSet is named by, which gives its pods nothing but names": {of: &appsv1.StatefulSet{ObjectMeta: objectMeta("db"), Spec: appsv1.StatefulSetSpec{ServiceName: "web"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var above, here []projection.Object
			for _, obj := range test.above {
				above = append(above, inDefault(obj.DeepCopyObject().(projection.Object)))
			}
			for _, obj := range test.here {
				here = append(here, inDefault(obj.DeepCopyObject().(projection.Object)))
			}
			of := inDefault(test.of.DeepCopyObject().(projection.Object))
			s := attach(t, newUpstream(t, append(above, of)...), "east", here...)
			kind, _ := projection.KindOf(of)
			key := identity.KeyOf(kind, of)
			create := steps.Plan{Task: steps.Project, Desired: of, Action: projection.Action{Step: projection.Create}}
			if needs := s.planner.Needs(planning.Look{Key: key, Kind: kind, Above: of}, create); !slices.Contains(needs, steps.NeedUses) {
				t.Fatalf("it needs %v, want that what it names is there", needs)
			}
			s.tryOften(key)
			held, err := s.lacking.HeldBack(t.Context(), identity.Workload{Kind: kind, Object: of}, of, nil)
			if held != (test.want != "") || err != nil {
				t.Errorf("held back: %t, %v", held, err)
			}
			if got := s.states.Of(key).Problem; !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("problem %q, want %q", got, test.want)
			}
		})
	}
}

// In a namespace of ours nobody else has anything.
func TestInANamespaceOfOursNothingWaitsForWhatItLeadsTo(t *testing.T) {
	for _, of := range []projection.Object{claimMadeOf("copy", "source"), slice("web"), func() projection.Object {
		in := ingress("door", "web")
		in.Spec.TLS = nil
		return in
	}()} {
		s := attach(t, newUpstream(t, of), "east")
		kind, _ := projection.KindOf(of)
		if held, err := s.lacking.HeldBack(t.Context(), identity.Workload{Kind: kind, Object: of}, of, nil); held || err != nil {
			t.Errorf("%T is held back: %t, %v", of, held, err)
		}
	}
}

func TestInASharedNamespaceAProjectionNamesWhatMayBeMissingOnlyIfItExists(t *testing.T) {
	token := secret("key")
	token.Type = corev1.SecretTypeServiceAccountToken
	for name, test := range map[string]struct {
		namespace string
		above     []projection.Object
		want      bool
	}{
		"it does not exist":                   {namespace: "default"},
		"it exists":                           {namespace: "default", above: objects(inDefault(secret("key"))), want: true},
		"it is one that never comes":          {namespace: "default", above: objects(inDefault(token))},
		"it does not exist in one of our own": {namespace: "shop", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			web := deployment("web", toEast, maybeUsingSecret("key"))
			web.Namespace = test.namespace
			s := attach(t, newUpstream(t, append(test.above, web)...), "east")
			desired, _, err := s.desired(deployments, web, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.ContainsFunc(deployments.References(desired), func(ref projection.Reference) bool { return ref.Name == "key" })
			if got != test.want {
				t.Errorf("it names the Secret: %t, want %t", got, test.want)
			}
			if volumes := desired.(*appsv1.Deployment).Spec.Template.Spec.Volumes; len(volumes) != 1 || volumes[0].Name != "key" {
				t.Errorf("volumes %v, want one that containers can mount", volumes)
			}
		})
	}
}

// Each kind has its own watch: a Secret that was made before its Deployment may be seen after it.
func TestInASharedNamespaceWhatMayBeMissingIsWaitedForOnce(t *testing.T) {
	web := inDefault(deployment("web", toEast, maybeUsingSecret("key")))
	s := attach(t, newUpstream(t, web), "east")
	w := identity.Workload{Kind: deployments, Object: web}
	desired, _, err := s.desired(deployments, web, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.lacking.HeldBack(t.Context(), w, desired, nil); !errors.Is(err, errNotYet) {
		t.Errorf("error %v, want another try", err)
	}
	s.tryOften(w.Key())
	if held, err := s.lacking.HeldBack(t.Context(), w, desired, nil); held || err != nil {
		t.Errorf("held back: %t, %v, want it to go without", held, err)
	}
}

func TestInASharedNamespaceWhoNamesWhatComesOrGoesLooksAgain(t *testing.T) {
	secrets, _ := projection.ForResource(secretResource)
	for name, test := range map[string]struct {
		namespace     string
		before, after *corev1.Secret
		want          bool
	}{
		"it has come":            {"default", nil, secret("key"), true},
		"it is gone":             {"default", secret("key"), nil, true},
		"it has other content":   {"default", secret("key"), secret("key"), false},
		"it goes":                {"default", secret("key"), func() *corev1.Secret { s := secret("key"); s.DeletionTimestamp = &metav1.Time{}; return s }(), true},
		"in a namespace of ours": {"shop", nil, secret("key"), false},
	} {
		t.Run(name, func(t *testing.T) {
			var web, robot projection.Object = deployment("web", toEast, maybeUsingSecret("key")), asOurs(account("robot", "key"), "uid-of-robot")
			web.SetNamespace(test.namespace)
			robot.SetNamespace(test.namespace)
			u := newUpstream(t, web, robot)
			s := attach(t, u, "east", robot)
			var before, after projection.Object
			if test.before != nil {
				test.before.Namespace, before = test.namespace, test.before
			}
			if test.after != nil {
				test.after.Namespace, after = test.namespace, test.after
			}
			u.router.Route(secrets, before, after)
			got := s.enqueued()
			for _, key := range []string{"deployments " + test.namespace + "/web", "serviceaccounts " + test.namespace + "/robot"} {
				if slices.Contains(got, key) != test.want {
					t.Errorf("enqueued %q; want %s among them: %t", got, key, test.want)
				}
			}
		})
	}
}
