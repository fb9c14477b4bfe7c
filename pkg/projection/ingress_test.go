package projection

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

func backend(name string) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: name}}
}

func paths(backends ...networkingv1.IngressBackend) networkingv1.IngressRule {
	http := &networkingv1.HTTPIngressRuleValue{}
	for _, b := range backends {
		http.Paths = append(http.Paths, networkingv1.HTTPIngressPath{Backend: b})
	}
	return networkingv1.IngressRule{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: http}}
}

func TestAnIngressFollowsTheServicesThatItLeadsTo(t *testing.T) {
	kind, services := kindOf(t, &networkingv1.Ingress{}), kindOf(t, &corev1.Service{})
	custom := networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket", Name: "images"}}
	tests := map[string]struct {
		in      networkingv1.IngressSpec
		want    []Reference
		general bool
	}{
		"the default one": {
			in:   networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web"}}},
			want: []Reference{ref(services, "web", true)},
		},
		"those of all paths, each once": {
			in:   networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{paths(backend("web"), backend("api")), {Host: "bare"}, paths(backend("web"), custom)}},
			want: []Reference{ref(services, "api", true), ref(services, "web", true)},
		},
		"one that leads to something else goes wherever its namespace runs something": {
			in: networkingv1.IngressSpec{DefaultBackend: &custom}, general: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := &networkingv1.Ingress{ObjectMeta: named("shop", "site"), Spec: test.in}
			if got := kind.Follows(in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("Follows = %+v, want %+v", got, test.want)
			}
			if got := kind.General(in); got != test.general {
				t.Errorf("General = %t, want %t", got, test.general)
			}
		})
	}
}

func TestAnIngressNeedsItsSecrets(t *testing.T) {
	secrets := kindOf(t, &corev1.Secret{})
	tests := map[string]struct {
		tls         []string
		annotations map[string]string
		want        []Reference
	}{
		"none":                  {},
		"those of certificates": {tls: []string{"b", "a", "b", ""}, want: []Reference{ref(secrets, "a", true), ref(secrets, "b", true)}},
		"one that an annotation of a controller names": {
			annotations: map[string]string{"nginx.ingress.kubernetes.io/auth-secret": "users", "nginx.ingress.kubernetes.io/auth-type": "basic"},
			want:        []Reference{ref(secrets, "users", true)},
		},
		"one that is named with its namespace": {
			annotations: map[string]string{"nginx.ingress.kubernetes.io/auth-tls-secret": "shop/ca"}, want: []Reference{ref(secrets, "ca", true)},
		},
		"none of another namespace, and none without a name": {
			annotations: map[string]string{"a/auth-secret": "bank/ca", "b/auth-secret": "", "c/auth-secret": "shop/"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := &networkingv1.Ingress{ObjectMeta: named("shop", "site")}
			in.Annotations = test.annotations
			for _, name := range test.tls {
				in.Spec.TLS = append(in.Spec.TLS, networkingv1.IngressTLS{SecretName: name})
			}
			if got := References(in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("References = %+v, want %+v", got, test.want)
			}
		})
	}
}
