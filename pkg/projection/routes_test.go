package projection_test

import (
	"fmt"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const weights = "/spec/rules/0/backendRefs"

func refs(names ...string) []any {
	var out []any
	for _, name := range names {
		out = append(out, map[string]any{"name": name, "weight": int64(1)})
	}
	return out
}

// aRoute is an object of a custom kind that carries routes.
func aRoute(routes string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"backendRefs": refs("web")}}}}}
	out.SetAPIVersion("gateway.networking.k8s.io/v1")
	out.SetKind("HTTPRoute")
	out.SetNamespace("shop")
	out.SetName("front")
	out.SetAnnotations(map[string]string{delivery.AnnotationRoutes: routes, "note": "kept"})
	return out
}

func TestAClusterHoldsFieldsOtherwiseThanTheObjectSays(t *testing.T) {
	kind := projection.Custom(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}, "httproutes", nil)
	of := projection.RouteHash(refs("web"))
	for name, test := range map[string]struct {
		fields projection.Fields
		want   []any // nil for what the object says
	}{
		"a field":                         {projection.Fields{weights: {Of: of, Is: refs("web", "canary")}}, refs("web", "canary")},
		"a field, whatever it was":        {projection.Fields{weights: {Is: refs("canary")}}, refs("canary")},
		"nothing":                         {nil, nil},
		"a field that has changed since":  {projection.Fields{weights: {Of: projection.RouteHash(refs("old")), Is: refs("canary")}}, nil},
		"a rule that is gone":             {projection.Fields{"/spec/rules/1/backendRefs": {Is: refs("canary")}}, nil},
		"no entry of a list":              {projection.Fields{"/spec/rules/0": {Is: "canary"}}, nil},
		"no other field of a rule":        {projection.Fields{"/spec/rules/0/filters": {Is: []any{}}}, nil},
		"nothing beside the spec":         {projection.Fields{"/metadata/name": {Is: "other"}}, nil},
		"not some of what belongs to all": {projection.Fields{weights: {Is: refs("canary")}, "/status/x": {Is: "y"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := aRoute(projection.Routes{"east": test.fields, "west": {weights: {Is: refs("other")}}}.String())
			got, err := kind.Project(in, projection.Part{}, projection.Target{LogicalCluster: "one", Cluster: "east"})
			if err != nil {
				t.Fatal(err)
			}
			want, mark := test.want, test.fields.Mark()
			if want == nil {
				want, mark = refs("web"), ""
			}
			rules, _, _ := unstructured.NestedSlice(got.(*unstructured.Unstructured).Object, "spec", "rules")
			if is := rules[0].(map[string]any)["backendRefs"]; !reflect.DeepEqual(is, want) || got.GetName() != "front" {
				t.Errorf("it holds %v, want %v", is, want)
			}
			if projection.RouteMark(got) != mark || got.GetAnnotations()["note"] != "kept" {
				t.Errorf("annotations %v, want mark %q", got.GetAnnotations(), mark)
			}
			if rules, _, _ := unstructured.NestedSlice(in.Object, "spec", "rules"); !reflect.DeepEqual(rules[0].(map[string]any)["backendRefs"], refs("web")) {
				t.Error("the object above has changed")
			}
		})
	}
}

func TestAServiceLeadsElsewhereInOneCluster(t *testing.T) {
	kind, _ := projection.ForGVK(corev1.SchemeGroupVersion.WithKind("Service"))
	routes := projection.Routes{"east": {"/spec/selector/example.com~1variant": {Is: "canary"}}, "west": {"/spec/selector/app": {Is: int64(3)}}}
	in := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{delivery.AnnotationRoutes: routes.String()}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	for cluster, want := range map[string]map[string]string{
		"east": {"app": "web", "example.com/variant": "canary"}, "west": {"app": "web"}, "north": {"app": "web"},
	} {
		got, err := kind.Project(in, projection.Part{}, projection.Target{LogicalCluster: "one", Cluster: cluster})
		if err != nil {
			t.Fatal(err)
		}
		if is := got.(*corev1.Service).Spec.Selector; !reflect.DeepEqual(is, want) {
			t.Errorf("in %s it selects %v, want %v", cluster, is, want)
		}
		if marked := projection.RouteMark(got) != ""; marked != (cluster == "east") {
			t.Errorf("in %s it is marked: %t", cluster, marked)
		}
	}
}

func TestAnIngressLeadsElsewhereInOneCluster(t *testing.T) {
	kind, _ := projection.ForGVK(networkingv1.SchemeGroupVersion.WithKind("Ingress"))
	leads := func(service string) []any {
		return []any{map[string]any{"path": "/", "pathType": "Prefix", "backend": map[string]any{"service": map[string]any{"name": service, "port": map[string]any{"number": int64(80)}}}}}
	}
	const weight = "/metadata/annotations/nginx.ingress.kubernetes.io~1canary-weight"
	routes := projection.Routes{
		"east":  {"/spec/rules/0/http/paths": {Of: projection.RouteHash(leads("web")), Is: leads("web-canary")}, weight: {Of: projection.RouteHash("0"), Is: "20"}},
		"west":  {weight: {Of: projection.RouteHash("5"), Is: "20"}}, // it has changed since
		"north": {"/metadata/annotations/nginx.ingress.kubernetes.io~1auth-url": {Is: "https://example.com"}},
		"south": {"/spec/rules/0/host": {Is: "else.example.com"}},
	}
	in := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{
			delivery.AnnotationRoutes: routes.String(), "nginx.ingress.kubernetes.io/canary-weight": "0", "note": "kept",
		}},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "web.example.com", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: ptr.To(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}}},
		}}}}},
	}
	for cluster, want := range map[string]string{"east": "web-canary 20 true", "west": "web 0 false", "north": "web 0 false", "south": "web 0 false"} {
		out, err := kind.Project(in, projection.Part{}, projection.Target{LogicalCluster: "one", Cluster: cluster})
		if err != nil {
			t.Fatal(err)
		}
		is := out.(*networkingv1.Ingress)
		rule, annotations := is.Spec.Rules[0], is.Annotations
		got := fmt.Sprintf("%s %s %t", rule.HTTP.Paths[0].Backend.Service.Name, annotations["nginx.ingress.kubernetes.io/canary-weight"], projection.RouteMark(is) != "")
		if got != want || annotations["note"] != "kept" || annotations["nginx.ingress.kubernetes.io/auth-url"] != "" || rule.Host != "web.example.com" {
			t.Errorf("%s holds %s, want %s: %v", cluster, got, want, is)
		}
	}
}

func TestWhatSharesOutNoRequestsIsHeldAsItSays(t *testing.T) {
	kind, _ := projection.ForGVK(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	routes := projection.Routes{"east": {"/spec/template/spec/hostNetwork": {Is: true}, "/spec/selector/app": {Is: "x"}}}
	in := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{delivery.AnnotationRoutes: routes.String()}}}
	got, err := kind.Project(in, projection.Part{}, projection.Target{LogicalCluster: "one", Cluster: "east"})
	if err != nil || got.(*appsv1.Deployment).Spec.Template.Spec.HostNetwork || projection.RouteMark(got) != "" {
		t.Errorf("%+v, %v", got, err)
	}
	service, _ := projection.ForGVK(corev1.SchemeGroupVersion.WithKind("Service"))
	routes = projection.Routes{"east": {"/spec/externalIPs": {Is: []any{"1.2.3.4"}}}}
	of := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{delivery.AnnotationRoutes: routes.String()}}}
	got, err = service.Project(of, projection.Part{}, projection.Target{LogicalCluster: "one", Cluster: "east"})
	if err != nil || len(got.(*corev1.Service).Spec.ExternalIPs) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRoutesAsText(t *testing.T) {
	routes := projection.Routes{"east": {weights: {Of: "1", Is: refs("web")}}, "west": {}}
	text := routes.String()
	if got := projection.RoutesOf(aRoute(text)); got.String() != text || len(got) != 1 || got["east"].Mark() != routes["east"].Mark() || got["west"].Mark() != "" {
		t.Errorf("%s comes back as %s", text, got)
	}
	for _, broken := range []string{"", "{", "[]"} {
		if got := projection.RoutesOf(aRoute(broken)); len(got) != 0 || got.String() != "" {
			t.Errorf("%q is %v", broken, got)
		}
	}
}
