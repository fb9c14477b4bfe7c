package projection

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"
)

func claimOf(group *string, kind, name, namespace string) corev1.PersistentVolumeClaimSpec {
	out := corev1.PersistentVolumeClaimSpec{DataSourceRef: &corev1.TypedObjectReference{APIGroup: group, Kind: kind, Name: name}}
	if namespace != "" {
		out.DataSourceRef.Namespace = &namespace
	} else {
		out.DataSource = &corev1.TypedLocalObjectReference{APIGroup: group, Kind: kind, Name: name}
	}
	return out
}

// claiming returns everything that has a claim made by a specification.
func claiming(spec corev1.PersistentVolumeClaimSpec) []Object {
	ephemeral := corev1.PodSpec{Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: spec}},
	}}}}
	return append(makers(ephemeral), &corev1.PersistentVolumeClaim{Spec: spec}, &appsv1.StatefulSet{
		Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: spec}}},
	})
}

func makers(pods corev1.PodSpec) []Object {
	return []Object{&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pods}}}, &corev1.Pod{Spec: pods}}
}

func withVolume(source corev1.VolumeSource) corev1.PodSpec {
	return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "keys", VolumeSource: source}}}
}

func TestWhatNobodyKnowsWhoseItIsIsNotNamedInASharedNamespace(t *testing.T) {
	snapshots := ptr.To("snapshot.storage.k8s.io")
	ingress := func(of networkingv1.IngressBackend) []Object {
		return []Object{&networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{paths(of)}}}}
	}
	for name, test := range map[string]struct {
		in   []Object
		want string // in the refusal, "" if it is none
	}{
		"a snapshot":                                 {claiming(claimOf(snapshots, "VolumeSnapshot", "theirs", "")), `VolumeSnapshot "theirs"`},
		"a claim of another namespace":               {claiming(claimOf(nil, "PersistentVolumeClaim", "theirs", "bank")), `PersistentVolumeClaim "theirs"`},
		"what is only called like a claim":           {claiming(claimOf(ptr.To("x.io"), "PersistentVolumeClaim", "theirs", "")), `PersistentVolumeClaim "theirs"`},
		"a claim, which is looked at in the cluster": {in: claiming(claimOf(nil, "PersistentVolumeClaim", "mine", ""))},
		"one whose group is written out":             {in: claiming(claimOf(ptr.To(""), "PersistentVolumeClaim", "mine", ""))},
		"a claim of nothing":                         {in: claiming(corev1.PersistentVolumeClaimSpec{})},
		"a ResourceClaim": {
			makers(corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("theirs")}}}), `resource claim "gpu"`,
		},
		"a template of ResourceClaims": {
			makers(corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("theirs")}}}), `resource claim "gpu"`,
		},
		"a group of pods": {makers(corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("theirs")}}), "the group"},
		"a SecretProviderClass": {
			makers(withVolume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{VolumeAttributes: map[string]string{"secretProviderClass": "theirs"}}})),
			`what volume "keys" names in csi.volumeAttributes`,
		},
		"a CSI volume that names nothing": {in: makers(withVolume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}))},
		"options of a FlexVolume": {
			makers(withVolume(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Options: map[string]string{"from": "theirs"}}})), "flexVolume.options",
		},
		"what only the controller of an Ingress knows": {
			ingress(networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket", Name: "theirs"}}), `Bucket "theirs"`,
		},
		"a Service of an Ingress, which is looked at in the cluster": {in: ingress(backend("web"))},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range test.in {
				for _, namespace := range []string{"default", "shop"} {
					in.SetNamespace(namespace)
					in.SetName("web")
					kind := kindOf(t, in)
					_, err := kind.Project(in, Part{}, east)
					var refused *RefusedError
					if want := test.want != "" && namespace == "default"; errors.As(err, &refused) != want || err != nil && !want {
						t.Errorf("%s in %s: %v, want refused: %t", kind.GVK.Kind, namespace, err, want)
					}
					if refused != nil && !strings.Contains(refused.Reason, test.want) {
						t.Errorf("%s: %q does not say %q", kind.GVK.Kind, refused.Reason, test.want)
					}
				}
			}
		})
	}
}

func TestPodsOfACustomResourceNameNothingStrangeInASharedNamespace(t *testing.T) {
	paths := PodPaths{templates: [][]string{{"spec", "template"}}}
	kind := Custom(gizmos.GVK, "gizmos", &paths)
	for namespace, want := range map[string]bool{"default": true, "shop": false} {
		in := gizmo(t, `{"metadata":{"namespace":"`+namespace+`","name":"one","uid":"u1"},"spec":{"template":{"spec":{"serviceAccountName":"robot",
			"containers":[{"name":"app"}],"resourceClaims":[{"name":"gpu","resourceClaimName":"theirs"}]}}}}`)
		_, err := kind.Project(in, Part{}, east)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) != want {
			t.Errorf("in %s: %v, want refused: %t", namespace, err, want)
		}
	}
}

func TestAnIngressNamesNoSecretOfAnotherNamespace(t *testing.T) {
	for value, want := range map[string]bool{"bank/ca": true, "shop/ca": false, "ca": false, "/ca": false} {
		in := &networkingv1.Ingress{ObjectMeta: named("shop", "site")}
		in.Annotations = map[string]string{"nginx.ingress.kubernetes.io/auth-tls-secret": value}
		_, err := kindOf(t, in).Project(in, Part{}, east)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) != want || err != nil && !want {
			t.Errorf("%s: %v, want refused: %t", value, err, want)
		}
	}
}

func TestClaimsThatAreCopiedAreKnown(t *testing.T) {
	for _, in := range claiming(claimOf(nil, "PersistentVolumeClaim", "source", "")) {
		in.SetNamespace("shop")
		kind := kindOf(t, in)
		want := []Reference{ref(kindOf(t, &corev1.PersistentVolumeClaim{}), "source", false)}
		if diff := cmp.Diff(want, kind.Copied(in)); diff != "" {
			t.Errorf("%s: %s", kind.GVK.Kind, diff)
		}
	}
	for _, in := range claiming(claimOf(ptr.To("snapshot.storage.k8s.io"), "VolumeSnapshot", "source", "")) {
		if got := kindOf(t, in).Copied(in); len(got) > 0 {
			t.Errorf("%T copies %v", in, got)
		}
	}
}

func TestAnIngressNeedsItsServicesInASharedNamespace(t *testing.T) {
	services := kindOf(t, &corev1.Service{})
	for namespace, want := range map[string][]Reference{
		"shop": {}, "default": {{Resource: services.Resource, Namespace: "default", Name: "web"}},
	} {
		in := &networkingv1.Ingress{ObjectMeta: named(namespace, "site"), Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{paths(backend("web"))}}}
		if diff := cmp.Diff(want, append([]Reference{}, References(in)...)); diff != "" {
			t.Errorf("in %s: %s", namespace, diff)
		}
	}
}

// wishes are pods that use a Secret and a ConfigMap in every way in which these may be missing, and once in a way in which they may not.
func wishes() corev1.PodSpec {
	yes := ptr.To(true)
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	return corev1.PodSpec{
		ServiceAccountName: "robot",
		ImagePullSecrets:   []corev1.LocalObjectReference{local("s"), local("other")},
		Containers: []corev1.Container{{
			Name: "app",
			EnvFrom: []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("s"), Optional: yes}},
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("c"), Optional: yes}},
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("needed")}},
			},
			Env: []corev1.EnvVar{
				{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("s"), Key: "k", Optional: yes}}},
				{Name: "B", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("c"), Key: "k", Optional: yes}}},
				{Name: "C", Value: "kept"},
				{Name: "D", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("needed"), Key: "k", Optional: yes}}},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Optional: yes, DefaultMode: ptr.To[int32](0o400)}}},
			{Name: "map", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("c"), Optional: yes}}},
			{Name: "needed", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "needed"}}},
			{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: local("s"), Optional: yes}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("c"), Optional: yes}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("needed")}},
			}}}},
		},
	}
}

func TestWhatMayBeMissingIsLeftOutInASharedNamespaceUnlessItExists(t *testing.T) {
	secrets, configMaps := kindOf(t, &corev1.Secret{}).Resource, kindOf(t, &corev1.ConfigMap{}).Resource
	exists := func(names ...string) func(Reference) bool {
		return func(ref Reference) bool {
			for _, name := range names {
				if ref.Name == name {
					return true
				}
			}
			return false
		}
	}
	left := func(of ...Reference) []Reference { return append([]Reference{}, of...) }
	s, c, other := Reference{secrets, "default", "s", true}, Reference{configMaps, "default", "c", true}, Reference{secrets, "default", "other", true}
	for name, test := range map[string]struct {
		namespace string
		exists    func(Reference) bool
		want      []Reference
	}{
		"nothing exists":                   {"default", exists(), left(c, other, s)},
		"one exists":                       {"default", exists("s"), left(c, other)},
		"all exist":                        {"default", exists("s", "c", "other"), left()},
		"nobody else is in one of our own": {"shop", exists(), left()},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range makers(wishes()) {
				in.SetNamespace(test.namespace)
				in.SetName("web")
				kind := kindOf(t, in)
				got := kind.LeftOut(in, nil, test.exists)
				if diff := cmp.Diff(test.want, left(got...)); diff != "" {
					t.Fatalf("%s: %s", kind.GVK.Kind, diff)
				}
				out, err := kind.Project(in, Part{LeftOut: got}, east)
				if err != nil {
					t.Fatal(err)
				}
				for _, ref := range kind.References(out) {
					for _, gone := range got {
						if ref.Resource == gone.Resource && ref.Name == gone.Name {
							t.Errorf("%s names %s %s, which does not exist", kind.GVK.Kind, ref.Resource.Resource, ref.Name)
						}
					}
				}
				if want, have := len(kind.References(in))-len(got), len(kind.References(out)); want != have {
					t.Errorf("%s names %d others, want %d", kind.GVK.Kind, have, want)
				}
			}
		})
	}
}

func TestWhatIsLeftOutLeavesVolumesEmptyAndTheRestAsItIs(t *testing.T) {
	in := &appsv1.Deployment{ObjectMeta: named("default", "web"), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: wishes()}}}
	kind := kindOf(t, in)
	gone := kind.LeftOut(in, nil, func(Reference) bool { return false })
	out, err := kind.Project(in, Part{LeftOut: gone}, east)
	if err != nil {
		t.Fatal(err)
	}
	before := wishes()
	none := corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}}
	want := before.DeepCopy()
	want.ImagePullSecrets = []corev1.LocalObjectReference{}
	want.Containers[0].EnvFrom, want.Containers[0].Env = before.Containers[0].EnvFrom[2:], before.Containers[0].Env[2:]
	for i, mode := range []*int32{ptr.To[int32](0o400), nil} {
		want.Volumes[i].VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{none}, DefaultMode: mode}}
	}
	want.Volumes[3].Projected.Sources = []corev1.VolumeProjection{none, none, before.Volumes[3].Projected.Sources[2]}
	if diff := cmp.Diff(*want, out.(*appsv1.Deployment).Spec.Template.Spec); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, in.Spec.Template.Spec); diff != "" {
		t.Errorf("the object above was changed: %s", diff)
	}
}

func TestAServiceAccountBringsNoSecretThatDoesNotExistIntoASharedNamespace(t *testing.T) {
	in := &corev1.ServiceAccount{ObjectMeta: named("default", "robot"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "there"}, {Name: "gone"}}}
	kind := kindOf(t, in)
	left := kind.LeftOut(in, nil, func(ref Reference) bool { return ref.Name == "there" })
	out, err := kind.Project(in, Part{LeftOut: left}, east)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in.ImagePullSecrets[:1], out.(*corev1.ServiceAccount).ImagePullSecrets); diff != "" {
		t.Error(diff)
	}
}

// The fields of a pod cannot be changed.
func TestAPodNamesWhatItWasMadeWith(t *testing.T) {
	in := &corev1.Pod{ObjectMeta: named("default", "web"), Spec: wishes()}
	kind := kindOf(t, in)
	made := in.DeepCopy()
	made.Spec.ImagePullSecrets = nil
	made.Spec.Volumes = made.Spec.Volumes[1:]
	secrets := kindOf(t, &corev1.Secret{}).Resource
	for _, exists := range []bool{true, false} {
		got := kind.LeftOut(in, made, func(Reference) bool { return exists })
		want := []Reference{{secrets, "default", "other", true}} // the other is still in its environment
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("exists above: %t: %s", exists, diff)
		}
	}
}
