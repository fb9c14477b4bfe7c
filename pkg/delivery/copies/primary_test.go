package copies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

const front = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}\n---\n"

func deployment(selector, labels string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {" + selector + "}}, template: {metadata: {labels: {" + labels + "}}}}}\n"
}

func TestTheLabelOfThePrimaryComesIntoItsSelectors(t *testing.T) {
	o := Options{Label: "v", Values: map[string]string{"primary": "main"}}
	for name, test := range map[string]struct{ in, want, says string }{
		"with the label of the pods":    {in: deployment("app: web", "app: web"), want: deployment("app: web, v: main", "app: web, v: main")},
		"also if it is there already":   {in: deployment("app: web, v: main", "app: web, v: main"), want: deployment("app: web, v: main", "app: web, v: main")},
		"what is not copied stays":      {in: deployment("app: web", "app: web") + "---\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}}", want: deployment("app: web, v: main", "app: web, v: main") + "---\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}}"},
		"another value of it is wrong":  {in: deployment("app: web, v: canary", "app: web"), says: `Deployment/web: spec.selector.matchLabels[v]: Invalid value: "canary": must be that of the primary, main`},
		"what is no selector is refuse": {in: deployment("app: 1", "app: web"), says: "spec.selector.matchLabels: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			got := objects(t, test.in)
			err := Select(got, o)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("error %v, want one that says %q", err, test.says)
				}
				return
			}
			if diff := cmp.Diff(content(objects(t, test.want)), content(got)); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
			if value := Selects(got[0], o); value != "main" {
				t.Errorf("it selects %q", value)
			}
		})
	}
}

// A Service of the primary's own is none in front: copies are made of that one still, and requests are shared out there.
func TestAServiceLeadsToThePrimaryAlone(t *testing.T) {
	in := objects(t, front+deployment("app: web", "app: web"))
	got, err := WithServices(in, []string{"primary", "stable"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range got[2:] {
		selector, _, err := unstructured.NestedStringMap(object.Object, "spec", "selector")
		if err != nil || selector[DefaultLabel] != delivery.Primary || selector["app"] != "web" {
			t.Errorf("%s leads to %v (%v)", Key(object), selector, err)
		}
		names = append(names, Key(object))
	}
	if strings.Join(names, " ") != "Service/web-primary Service/web-stable" || !Labels(got, Options{}) {
		t.Errorf("made %v, and the pods are labelled: %t", names, Labels(got, Options{}))
	}
	copied, err := Copy(got, delivery.Canary, delivery.Variant{Suffix: "canary", Service: true}, "", nil, Options{})
	if err != nil || Key(copied[0]) != "Service/web-canary" {
		t.Errorf("the canary has %v (%v)", copied, err)
	}
	if name, leads, err := (Options{}).Front(got); err != nil || name != "web" || len(leads) != 1 {
		t.Errorf("in front is %q, which leads to %v (%v)", name, leads, err)
	}
	for says, test := range map[string]struct {
		in       string
		suffixes []string
	}{
		"service.name: Required value: there is no Service":                       {deployment("app: web", "app: web"), []string{"primary"}},
		`suffix: Duplicate value: "Service/web-primary is the application's own"`: {front + strings.Replace(front, "name: web", "name: web-primary", 1) + deployment("app: web", "app: web"), []string{"primary"}},
		"spec.selector: Required value: Service/web leads to no pods of its own":  {strings.Replace(front, "app: web", "", 1) + deployment("app: web", "app: web"), []string{"primary"}},
	} {
		options := Options{}
		if strings.Contains(test.in, "web-primary") {
			options.Service = "web"
		}
		if _, err := WithServices(objects(t, test.in), test.suffixes, options); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
	}
}
