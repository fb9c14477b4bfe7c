package projection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"
)

// ingress goes where the Services are that it leads to, with the Secrets of its certificates. One that leads to no Service, but to
// something that only its controller knows, goes wherever its namespace runs something.
var ingress = row[networkingv1.Ingress, *networkingv1.Ingress]{
	resource:   networkingv1.SchemeGroupVersion.WithResource("ingresses"),
	kind:       "Ingress",
	namespaced: true,
	right:      rightLeads,
	delivered:  Selected,
	fill:       func(in, out *networkingv1.Ingress, _ Part) { in.Spec.DeepCopyInto(&out.Spec) },
	references: func(in *networkingv1.Ingress, r *references) {
		for _, tls := range in.Spec.TLS {
			// Without it, controllers serve a certificate of their own.
			r.secret(tls.SecretName, ptr.To(true))
		}
		for key, value := range in.Annotations {
			if name, ok := annotatedSecret(in.Namespace, key, value); ok {
				r.secret(name, ptr.To(true))
			}
		}
		if NamespaceShared(in.Namespace) {
			for _, name := range backends(in) {
				r.add(service.resource, name, false) // else it may lead to one that is somebody else's
			}
		}
	},
	follows: func(in *networkingv1.Ingress, r *references) {
		for _, name := range backends(in) {
			r.add(service.resource, name, true)
		}
	},
	general: func(in *networkingv1.Ingress) bool { return len(backends(in)) == 0 },
	requires: func(in *networkingv1.Ingress) []Requirement {
		if name := ptr.Deref(in.Spec.IngressClassName, ""); name != "" {
			return []Requirement{{Class: ingressClass, Name: name}}
		}
		return nil
	},
}

// backends are the names of the Services that an Ingress leads to.
func backends(in *networkingv1.Ingress) []string {
	var out []string
	for _, b := range ingressBackends(in) {
		if b.Service != nil {
			out = append(out, b.Service.Name)
		}
	}
	return out
}

// ingressBackends are all that an Ingress leads to.
func ingressBackends(in *networkingv1.Ingress) (out []networkingv1.IngressBackend) {
	if in.Spec.DefaultBackend != nil {
		out = append(out, *in.Spec.DefaultBackend)
	}
	for _, rule := range in.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			out = append(out, rule.HTTP.Paths[i].Backend)
		}
	}
	return out
}

// annotatedSecret returns the Secret that an annotation names. Controllers of Ingresses have settings for which the API has no field,
// and those that name a Secret end alike: nginx.ingress.kubernetes.io/auth-secret, its auth-tls-secret and proxy-ssl-secret,
// ingress.kubernetes.io/auth-secret and more. The value may begin with the namespace.
func annotatedSecret(namespace, key, value string) (name string, ok bool) {
	of, name, ok := cutSecret(key, value)
	return name, ok && name != "" && (of == "" || of == namespace)
}

// cutSecret returns the Secret that an annotation names, with the namespace that it says, "" for none.
func cutSecret(key, value string) (namespace, name string, ok bool) {
	if !strings.HasSuffix(key, "-secret") {
		return "", "", false
	}
	if of, name, qualified := strings.Cut(value, "/"); qualified {
		return of, name, true
	}
	return "", value, true
}

// confineIngress refuses an Ingress that has its controller use a Secret of another namespace, which may be anybody's: who may write the Ingress
// need not be able to read it. Controllers that are told to allow it do.
func confineIngress(in *networkingv1.Ingress) string {
	for _, key := range slices.Sorted(maps.Keys(in.Annotations)) {
		if of, _, ok := cutSecret(key, in.Annotations[key]); ok && of != "" && of != in.Namespace {
			return fmt.Sprintf("annotation %s names a Secret of namespace %q: copy that into namespace %q, and name it there", key, of, in.Namespace)
		}
	}
	return ""
}
