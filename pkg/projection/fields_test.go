package projection

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// kindOf returns the row of the table for an object.
func kindOf(t testing.TB, in Object) Kind {
	t.Helper()
	for _, kind := range Kinds() {
		if reflect.TypeOf(kind.New()) == reflect.TypeOf(in) {
			return kind
		}
	}
	t.Fatalf("no kind for %T", in)
	return Kind{}
}

// named returns metadata as objects of the tests have it.
func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-1"}
}

func TestLabelsAndAnnotations(t *testing.T) {
	in := &corev1.ConfigMap{ObjectMeta: named("shop", "settings")}
	in.Labels = map[string]string{"app": "web", v1alpha1.LabelLogicalCluster: "forged", corev1.LabelMetadataName: "settings"}
	in.Annotations = map[string]string{
		"note":                              "kept",
		"deployment.kubernetes.io/revision": "4",
		corev1.LastAppliedConfigAnnotation:  "{}",
		v1alpha1.AnnotationClusters:         "east",
		v1alpha1.AnnotationPlacement:        "{}",
		v1alpha1.AnnotationStatus:           "{}",
		v1alpha1.AnnotationProjection:       "forged",
	}
	out := project(t, kindOf(t, in), in, placement.Share{})
	wantLabels := map[string]string{"app": "web", v1alpha1.LabelLogicalCluster: east.LogicalCluster}
	if !reflect.DeepEqual(out.GetLabels(), wantLabels) {
		t.Errorf("labels = %v, want %v", out.GetLabels(), wantLabels)
	}
	wantAnnotations := map[string]string{
		"note":                        "kept",
		v1alpha1.AnnotationNamespace:  "shop",
		v1alpha1.AnnotationName:       "settings",
		v1alpha1.AnnotationUID:        "uid-1",
		v1alpha1.AnnotationProjection: out.GetAnnotations()[v1alpha1.AnnotationProjection],
	}
	if !reflect.DeepEqual(out.GetAnnotations(), wantAnnotations) {
		t.Errorf("annotations = %v, want %v", out.GetAnnotations(), wantAnnotations)
	}
	if got := out.GetAnnotations()[v1alpha1.AnnotationProjection]; len(got) != 16 || got == "forged" {
		t.Errorf("hash = %q, want 16 digits", got)
	}
}

func TestDeploymentKeepsItsSpecWithTheShareOfReplicas(t *testing.T) {
	in := &appsv1.Deployment{
		ObjectMeta: named("shop", "web"),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](7), Paused: true, MinReadySeconds: 5,
			ProgressDeadlineSeconds: ptr.To[int32](60), RevisionHistoryLimit: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromString("50%"))},
			},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "web"}},
		},
		Status: appsv1.DeploymentStatus{Replicas: 7},
	}
	out := project(t, kindOf(t, in), in, placement.Share{Replicas: 3}).(*appsv1.Deployment)
	want := *in.Spec.DeepCopy()
	want.Replicas = ptr.To[int32](3)
	if !reflect.DeepEqual(out.Spec, want) {
		t.Errorf("spec = %+v, want %+v", out.Spec, want)
	}
	if got, want := out.Annotations[v1alpha1.AnnotationTemplate], TemplateHash(&in.Spec.Template); got != want {
		t.Errorf("template hash = %q, want %q", got, want)
	}
	if got := project(t, kindOf(t, in), in, placement.Share{}).(*appsv1.Deployment); *got.Spec.Replicas != 0 {
		t.Errorf("a share of none has %d replicas, want 0", *got.Spec.Replicas)
	}
}

func TestServiceLeavesAllocationToTheCluster(t *testing.T) {
	local := corev1.ServiceInternalTrafficPolicyLocal
	tests := map[string]struct{ in, want corev1.ServiceSpec }{
		"cluster IPs, families and node ports are the cluster's, the rest is the user's": {
			in: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.7", ClusterIPs: []string{"10.0.0.7"},
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
				HealthCheckNodePort: 30002, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
				InternalTrafficPolicy: &local, SessionAffinity: corev1.ServiceAffinityClientIP, LoadBalancerIP: "192.0.2.1",
				ExternalIPs: []string{"192.0.2.2"}, Selector: map[string]string{"app": "web"},
				Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30001, TargetPort: intstr.FromString("web")}},
			},
			want: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
				ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
				InternalTrafficPolicy: &local, SessionAffinity: corev1.ServiceAffinityClientIP, LoadBalancerIP: "192.0.2.1",
				ExternalIPs: []string{"192.0.2.2"}, Selector: map[string]string{"app": "web"},
				Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}},
			},
		},
		"a headless Service stays headless": {
			in:   corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}},
			want: corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}},
		},
		"an external name is kept": {
			in:   corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com"},
			want: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := &corev1.Service{ObjectMeta: named("shop", "web"), Spec: test.in}
			out := project(t, kindOf(t, in), in, placement.Share{}).(*corev1.Service)
			if !reflect.DeepEqual(out.Spec, test.want) {
				t.Errorf("spec = %+v, want %+v", out.Spec, test.want)
			}
		})
	}
}

func TestServiceAccountKeepsPullSecretsAndDropsTokens(t *testing.T) {
	in := &corev1.ServiceAccount{
		ObjectMeta:                   named("shop", "web"),
		Secrets:                      []corev1.ObjectReference{{Name: "web-token"}},
		ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "registry"}},
		AutomountServiceAccountToken: ptr.To(false),
	}
	out := project(t, kindOf(t, in), in, placement.Share{}).(*corev1.ServiceAccount)
	if out.Secrets != nil || !reflect.DeepEqual(out.ImagePullSecrets, in.ImagePullSecrets) || *out.AutomountServiceAccountToken {
		t.Errorf("got %+v", out)
	}
}

func TestContentOfConfigMapsAndSecretsIsKept(t *testing.T) {
	config := &corev1.ConfigMap{
		ObjectMeta: named("shop", "settings"), Immutable: ptr.To(true),
		Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {2}},
	}
	gotConfig := project(t, kindOf(t, config), config, placement.Share{}).(*corev1.ConfigMap)
	same := reflect.DeepEqual(gotConfig.Data, config.Data) && reflect.DeepEqual(gotConfig.BinaryData, config.BinaryData)
	if !same || !*gotConfig.Immutable {
		t.Errorf("ConfigMap = %+v, want the content of %+v", gotConfig, config)
	}
	secret := &corev1.Secret{
		ObjectMeta: named("shop", "password"), Type: corev1.SecretTypeBasicAuth, Immutable: ptr.To(false),
		Data: map[string][]byte{"password": []byte("s3cret"), "empty": {}},
	}
	gotSecret := project(t, kindOf(t, secret), secret, placement.Share{}).(*corev1.Secret)
	if gotSecret.Type != secret.Type || !reflect.DeepEqual(gotSecret.Data, secret.Data) || *gotSecret.Immutable {
		t.Errorf("Secret = %+v, want the content of %+v", gotSecret, secret)
	}
}

func TestNamespaceKeepsLabelsAndAnnotationsOnly(t *testing.T) {
	in := &corev1.Namespace{ObjectMeta: named("", "shop"), Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}}
	in.Labels = map[string]string{corev1.LabelMetadataName: "shop", "pod-security.kubernetes.io/enforce": "restricted"}
	out := project(t, kindOf(t, in), in, placement.Share{}).(*corev1.Namespace)
	want := map[string]string{"pod-security.kubernetes.io/enforce": "restricted", v1alpha1.LabelLogicalCluster: east.LogicalCluster}
	if !reflect.DeepEqual(out.Labels, want) || out.Spec.Finalizers != nil {
		t.Errorf("labels = %v, want %v; finalizers = %v, want none", out.Labels, want, out.Spec.Finalizers)
	}
}

func TestProjectable(t *testing.T) {
	account := func(name string, pull ...corev1.LocalObjectReference) Object {
		return &corev1.ServiceAccount{ObjectMeta: named("shop", name), ImagePullSecrets: pull}
	}
	typed := func(name string, of corev1.SecretType) Object {
		return &corev1.Secret{ObjectMeta: named("shop", name), Type: of}
	}
	tests := map[string]struct {
		in   Object
		want bool
	}{
		"a ConfigMap of the user":                             {&corev1.ConfigMap{ObjectMeta: named("shop", "settings")}, true},
		"the certificate authority of a cluster":              {&corev1.ConfigMap{ObjectMeta: named("shop", "kube-root-ca.crt")}, false},
		"a Secret of the user":                                {typed("password", corev1.SecretTypeOpaque), true},
		"a token of a ServiceAccount":                         {typed("token", corev1.SecretTypeServiceAccountToken), false},
		"a ServiceAccount of the user":                        {account("web"), true},
		"the default ServiceAccount":                          {account("default"), false},
		"the default ServiceAccount with secrets for pulling": {account("default", corev1.LocalObjectReference{Name: "registry"}), true},
		"the Service of the API server":                       {&corev1.Service{ObjectMeta: named("default", "kubernetes")}, false},
		"a Service of the same name elsewhere":                {&corev1.Service{ObjectMeta: named("shop", "kubernetes")}, true},
		"a Deployment in the default namespace":               {&appsv1.Deployment{ObjectMeta: named("default", "web")}, true},
		"a Deployment in a namespace of Kubernetes":           {&appsv1.Deployment{ObjectMeta: named("kube-public", "web")}, false},
		"a Secret in the system namespace":                    {&corev1.Secret{ObjectMeta: named("manifold-system", "cluster-east")}, false},
		"a namespace of the user":                             {&corev1.Namespace{ObjectMeta: named("", "shop")}, true},
		"the default namespace":                               {&corev1.Namespace{ObjectMeta: named("", "default")}, false},
		"a namespace of Kubernetes":                           {&corev1.Namespace{ObjectMeta: named("", "kube-node-lease")}, false},
		"the system namespace":                                {&corev1.Namespace{ObjectMeta: named("", "manifold-system")}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ok, reason := kindOf(t, test.in).Projectable(test.in)
			if ok != test.want || (reason == "") != test.want {
				t.Errorf("Projectable = %t, %q, want %t", ok, reason, test.want)
			}
		})
	}
}

func TestNamespaceRules(t *testing.T) {
	tests := map[string]struct{ refused, shared bool }{
		"shop": {}, "default": {shared: true}, "kubernetes": {}, "kube-system": {refused: true}, "kube-public": {refused: true},
		"kube-node-lease": {refused: true}, "manifold-system": {refused: true}, "kube-flannel": {}, "kube-": {}, "manifold-systems": {},
	}
	for name, want := range tests {
		reason, refused := NamespaceRefusal(name)
		if refused != want.refused || (reason != "") != want.refused || NamespaceShared(name) != want.shared {
			t.Errorf("namespace %s: refused %t (%q), shared %t, want %+v", name, refused, reason, NamespaceShared(name), want)
		}
	}
}

func TestTheTemplateHashDoesNotDependOnWhoLooked(t *testing.T) {
	stored := func() *corev1.PodTemplateSpec { return &richDeployment().Spec.Template }
	want := TemplateHash(stored())
	tests := map[string]struct {
		change func(*corev1.PodTemplateSpec)
		same   bool
	}{
		"a quantity that was printed remembers its text": {func(in *corev1.PodTemplateSpec) {
			requests := in.Spec.Containers[0].Resources.Requests
			cpu := requests["cpu"]
			_ = cpu.String()
			requests["cpu"] = cpu
		}, true},
		"a quantity that was never stored is as it was written": {func(in *corev1.PodTemplateSpec) {
			in.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1000m")
		}, true},
		"what was written as empty is not stored": {func(in *corev1.PodTemplateSpec) {
			in.Spec.HostAliases, in.Spec.ReadinessGates = []corev1.HostAlias{}, []corev1.PodReadinessGate{}
		}, true},
		"another quantity": {func(in *corev1.PodTemplateSpec) {
			in.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1001m")
		}, false},
		"another image": {func(in *corev1.PodTemplateSpec) { in.Spec.Containers[0].Image = "web:2" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := stored()
			test.change(in)
			before := in.DeepCopy()
			for range 2 { // found out, and remembered
				if got := TemplateHash(in); (got == want) != test.same {
					t.Errorf("hash = %q, before %q, want the same: %t", got, want, test.same)
				}
			}
			if !reflect.DeepEqual(in, before) {
				t.Error("the template has changed by that")
			}
			if TemplateHash(in) == CollidedHash(in, 1) {
				t.Error("a collision makes no difference")
			}
		})
	}
}

func BenchmarkTemplateHash(b *testing.B) {
	template := &richDeployment().Spec.Template
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			TemplateHash(template)
		}
	})
	b.Run("found out", func(b *testing.B) {
		for b.Loop() {
			hashOf(template, 0)
		}
	})
}
