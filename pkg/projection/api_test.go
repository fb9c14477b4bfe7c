package projection

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

var api = API{Host: "manifold.example", Port: "6443", Authority: "-----BEGIN CERTIFICATE-----\n", Token: true}

func TestWhoCallsTheLogicalCluster(t *testing.T) {
	for name, test := range map[string]struct {
		annotation    string
		granted, want bool
	}{
		"whose account has rights":                            {granted: true, want: true},
		"not whose account has none":                          {},
		"who says so":                                         {annotation: v1alpha1.APILogical, want: true},
		"not who says otherwise":                              {annotation: v1alpha1.APICluster, granted: true},
		"what was stored with another value says nothing":     {annotation: "both", granted: true, want: true},
		"what was stored with another value gives nothing":    {annotation: "both"},
		"an account with rights whose template says it again": {annotation: v1alpha1.APILogical, granted: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{}
			if test.annotation != "" {
				annotations[v1alpha1.AnnotationAPI] = test.annotation
			}
			if got := CallsAPI(annotations, func() bool { return test.granted }); got != test.want {
				t.Errorf("it calls the logical cluster: %t, want %t", got, test.want)
			}
		})
	}
}

func TestGrantees(t *testing.T) {
	for name, test := range map[string]struct {
		namespace string
		subjects  []rbacv1.Subject
		want      []Grantee
	}{
		"a ServiceAccount, by each of its names, once": {
			namespace: "shop",
			subjects: []rbacv1.Subject{
				{Kind: "ServiceAccount", Name: "web"}, {Kind: "ServiceAccount", Namespace: "shop", Name: "web"},
				{Kind: "User", Name: "system:serviceaccount:shop:web"},
			},
			want: []Grantee{{"shop", "web"}},
		},
		"all of a namespace": {
			namespace: "shop", subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:shop"}}, want: []Grantee{{Namespace: "shop"}},
		},
		"in the whole cluster, of any namespace": {
			subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "shop", Name: "web"}, {Kind: "Group", Name: "system:serviceaccounts:bank"}},
			want:     []Grantee{{"shop", "web"}, {Namespace: "bank"}},
		},
		"a RoleBinding gives accounts of other namespaces nothing that would replace pods there": {
			namespace: "evil",
			subjects: []rbacv1.Subject{
				{Kind: "ServiceAccount", Namespace: "shop", Name: "web"}, {Kind: "User", Name: "system:serviceaccount:shop:web"},
				{Kind: "Group", Name: "system:serviceaccounts:shop"},
			},
		},
		"stock bindings name those of all namespaces": {subjects: []rbacv1.Subject{
			{Kind: "Group", Name: "system:serviceaccounts"}, {Kind: "Group", Name: "system:authenticated"}, {Kind: "User", Name: "alice"},
			{Kind: "User", Name: "system:serviceaccount:shop"}, {Kind: "User", Name: "system:serviceaccount:shop:"},
			{Kind: "Group", Name: "system:serviceaccounts:"}, {Kind: "ServiceAccount", Name: "web"}, {Kind: "Robot", Name: "web"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Grantees(test.namespace, test.subjects)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMountsToken(t *testing.T) {
	says := func(value *bool) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{AutomountServiceAccountToken: value}
	}
	for name, test := range map[string]struct {
		pod     *bool
		account *corev1.ServiceAccount
		want    bool
	}{
		"without a word of anybody":                {account: says(nil), want: true},
		"an account that is not there yet":         {want: true},
		"the pod says no":                          {pod: ptr.To(false), account: says(ptr.To(true))},
		"the account says no":                      {account: says(ptr.To(false))},
		"the pod says yes, the account no":         {pod: ptr.To(true), account: says(ptr.To(false)), want: true},
		"the pod says no, and there is no account": {pod: ptr.To(false)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MountsToken(&corev1.PodSpec{AutomountServiceAccountToken: test.pod}, test.account); got != test.want {
				t.Errorf("it has a token: %t, want %t", got, test.want)
			}
		})
	}
}

func TestAnAudienceNamesOneClusterOfOneLogicalCluster(t *testing.T) {
	if got, ok := TargetOf(east.Audience()); !ok || got != east {
		t.Errorf("got %+v, %t", got, ok)
	}
	for _, other := range []string{"", "https://kubernetes.default.svc", "https://manifold.dev.evil/x/east", "manifold.dev/x/east"} {
		if got, ok := TargetOf(other); ok {
			t.Errorf("%q is for %+v", other, got)
		}
	}
}

// withAPI is what a cluster gets of an object whose pods call the logical cluster.
func withAPI(t *testing.T, kind Kind, in Object, api API) Object {
	t.Helper()
	out, err := kind.Project(in, Part{Share: placement.Share{Replicas: 3}, API: &api}, east)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func variables(pairs ...string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func TestHowPodsCallTheLogicalCluster(t *testing.T) {
	const audience = "https://manifold.dev/2f6d5a1e-logical/east"
	at := variables("KUBERNETES_SERVICE_HOST", "manifold.example", "KUBERNETES_SERVICE_PORT", "6443", "KUBERNETES_SERVICE_PORT_HTTPS", "6443")
	mount := corev1.VolumeMount{Name: APIVolume, ReadOnly: true, MountPath: apiPath}
	token := func(audience string) corev1.VolumeProjection {
		return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: audience, ExpirationSeconds: ptr.To[int64](600), Path: "token",
		}}
	}
	root := func(items ...corev1.KeyToPath) corev1.VolumeProjection {
		return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: items,
		}}
	}
	down := func(path string, mode *int32) corev1.VolumeProjection {
		return corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
			Path: path, Mode: mode, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['manifold.dev/api-authority']"},
		}}}}
	}
	own := func(sources ...corev1.VolumeProjection) corev1.Volume {
		return corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
	}
	for name, test := range map[string]struct {
		pods, want corev1.PodSpec
		silent     bool // no token without asking for it
	}{
		"a token, the authority and the namespace where libraries look for them": {
			pods: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init"}}, Containers: []corev1.Container{{Name: "web"}}},
			want: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "init", Env: at, VolumeMounts: []corev1.VolumeMount{mount}}},
				Containers:     []corev1.Container{{Name: "web", Env: at, VolumeMounts: []corev1.VolumeMount{mount}}},
				Volumes:        []corev1.Volume{apiVolume(east)},
			},
		},
		"what a container sets or mounts itself stays": {
			pods: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "web", Env: variables("KUBERNETES_SERVICE_HOST", "proxy", "URL", "https://$(KUBERNETES_SERVICE_HOST)"),
				VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: apiPath + "/"}},
			}}, Volumes: []corev1.Volume{own()}},
			want: corev1.PodSpec{Containers: []corev1.Container{{
				Name:         "web",
				Env:          append(slices.Clone(at[1:]), variables("KUBERNETES_SERVICE_HOST", "proxy", "URL", "https://$(KUBERNETES_SERVICE_HOST)")...),
				VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: apiPath + "/"}},
			}}, Volumes: []corev1.Volume{own(), apiVolume(east)}},
		},
		"who wants no token gets none": {
			pods: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}, silent: true,
			want: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Env: at}}},
		},
		"a token that is mounted by hand": {
			pods: corev1.PodSpec{
				AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "web"}},
				Volumes: []corev1.Volume{own(token(""), root(), token("vault"), root(corev1.KeyToPath{Key: "ca.crt", Path: "root.pem", Mode: ptr.To[int32](0o400)}))},
			}, silent: true,
			want: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web", Env: at}},
				Volumes:    []corev1.Volume{own(token(audience), down("ca.crt", nil), token("vault"), down("root.pem", ptr.To[int32](0o400)))},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := api
			api.Token = !test.silent
			test.want.AutomountServiceAccountToken = ptr.To(false)
			in := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			in.Spec.Template.Spec = test.pods
			kind, _ := KindOf(in)
			out := withAPI(t, kind, in, api).(*appsv1.Deployment)
			if diff := cmp.Diff(test.want, out.Spec.Template.Spec); diff != "" {
				t.Error(diff)
			}
			if got := out.Spec.Template.Annotations[v1alpha1.AnnotationAPIAuthority]; got != api.Authority {
				t.Errorf("the authority is %q", got)
			}
			if got, want := out.Annotations[v1alpha1.AnnotationTemplate], TemplateHash(&in.Spec.Template); got != want {
				t.Errorf("it carries out template %s, want the user's, %s", got, want)
			}
			again := *out.Spec.Template.Spec.DeepCopy()
			api.give(&again, east)
			if diff := cmp.Diff(out.Spec.Template.Spec, again); diff != "" {
				t.Errorf("once more gives something else: %s", diff)
			}
		})
	}
}

func TestPodsOfEveryKindCallTheLogicalCluster(t *testing.T) {
	eachFilled(t, func(t *testing.T, kind Kind, in Object) {
		if rc, ok := in.(*corev1.ReplicationController); !kind.Workload || ok && rc.Spec.Template == nil {
			return
		}
		before := in.DeepCopyObject()
		out := withAPI(t, kind, in, api)
		if !reflect.DeepEqual(in, before) {
			t.Fatal("Project changed its input")
		}
		given, token := kind.GivenAPI(out)
		if !given || !token || !kind.KeepsTemplate(in, out) {
			t.Errorf("it was given the API: %t, with a token: %t", given, token)
		}
		_, pods := podsOf(kind, out)
		for _, c := range slices.Concat(pods.InitContainers, pods.Containers) {
			if !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "KUBERNETES_SERVICE_HOST" }) {
				t.Errorf("container %s does not know where the API is", c.Name)
			}
		}
		if again := withAPI(t, kind, in, api); !reflect.DeepEqual(out, again) || kind.Plan(again, out).Step != Nothing {
			t.Errorf("a second projection is another: %s", cmp.Diff(out, again))
		}
		// Nobody else brings the mark.
		if given, _ := kind.GivenAPI(project(t, kind, in, placement.Share{Replicas: 3})); given {
			t.Error("without the API it was given it")
		}
	})
}

func TestAPodKeepsTheWayToTheAPI(t *testing.T) {
	in := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}}
	live := withAPI(t, pod.build(), in, api)
	moved := withAPI(t, pod.build(), in, API{Host: "elsewhere.example", Port: "443", Authority: "other", Token: true}).(*corev1.Pod)
	kind, _ := KindOf(in)
	kind.Keep(moved, live)
	if diff := cmp.Diff(live.(*corev1.Pod).Spec, moved.Spec); diff != "" {
		t.Errorf("its spec would have to be changed: %s", diff)
	}
	if moved.Annotations[v1alpha1.AnnotationAPIAuthority] != api.Authority {
		t.Error("it has an authority that its variables do not fit")
	}
}

// In a namespace that clusters share, the token of its ServiceAccount "default" is for the API server there, and this one is not.
func TestASharedNamespaceGivesTokensForTheLogicalClusterAlone(t *testing.T) {
	in := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	in.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web"}}
	in.Spec.Template.Annotations = maps.Clone(map[string]string{v1alpha1.AnnotationAPIAuthority: "forged"})
	kind, _ := KindOf(in)
	if _, token := kind.GivenAPI(withAPI(t, kind, in, api)); !token {
		t.Error("it has no token for the logical cluster")
	}
	in.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "https://kubernetes.default.svc"}}},
	}}}}
	if _, err := kind.Project(in, Part{API: &api}, east); err == nil {
		t.Error("a token for the API server of the cluster is not refused")
	}
}
