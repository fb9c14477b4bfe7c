package copies

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/pkg/delivery"
)

// objects reads manifests that are separated by "---", as a client reads them.
func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, document := range strings.Split(text, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

const application = `
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.1
  loadBalancerIP: 1.2.3.4
  externalTrafficPolicy: Local
  selector: {app: web}
  ports: [{port: 80, nodePort: 30080}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: init, env: [{name: A, valueFrom: {secretKeyRef: {name: keys, key: a}}}]}]
      containers:
      - name: web
        image: web:1
        env: [{name: B, valueFrom: {configMapKeyRef: {name: settings, key: b}}}, {name: C, value: settings}]
        envFrom: [{configMapRef: {name: more}}, {secretRef: {name: elsewhere}}]
      volumes:
      - {name: a, configMap: {name: files}}
      - {name: b, secret: {secretName: certs}}
      - {name: c, projected: {sources: [{configMap: {name: settings}}, {secret: {name: keys}}, {serviceAccountToken: {path: t}}]}}
      imagePullSecrets: [{name: keys}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {b: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: more}, data: {c: c}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: files}, data: {d: d}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: unused}, data: {e: e}}
---
{apiVersion: v1, kind: Secret, metadata: {name: keys}, stringData: {a: a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: certs}, stringData: {f: f}}
`

const canary = `
apiVersion: v1
kind: Service
metadata: {name: web-canary, labels: {app: web, delivery.manifold.dev/variant: canary}}
spec:
  type: ClusterIP
  selector: {app: web, delivery.manifold.dev/variant: canary}
  ports: [{port: 80}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: files-canary, labels: {delivery.manifold.dev/variant: canary}}, data: {d: d}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: more-canary, labels: {delivery.manifold.dev/variant: canary}}, data: {c: c}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings-canary, labels: {delivery.manifold.dev/variant: canary}}, data: {b: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: certs-canary, labels: {delivery.manifold.dev/variant: canary}}, stringData: {f: f}}
---
{apiVersion: v1, kind: Secret, metadata: {name: keys-canary, labels: {delivery.manifold.dev/variant: canary}}, stringData: {a: a}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-canary, labels: {delivery.manifold.dev/variant: canary}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web, delivery.manifold.dev/variant: canary}}
  template:
    metadata: {labels: {app: web, delivery.manifold.dev/variant: canary}}
    spec:
      initContainers: [{name: init, env: [{name: A, valueFrom: {secretKeyRef: {name: keys-canary, key: a}}}]}]
      containers:
      - name: web
        image: web:1
        env: [{name: B, valueFrom: {configMapKeyRef: {name: settings-canary, key: b}}}, {name: C, value: settings}]
        envFrom: [{configMapRef: {name: more-canary}}, {secretRef: {name: elsewhere}}]
      volumes:
      - {name: a, configMap: {name: files-canary}}
      - {name: b, secret: {secretName: certs-canary}}
      - {name: c, projected: {sources: [{configMap: {name: settings-canary}}, {secret: {name: keys-canary}}, {serviceAccountToken: {path: t}}]}}
      imagePullSecrets: [{name: keys}]
`

func content(list []*unstructured.Unstructured) []map[string]any {
	var out []map[string]any
	for _, object := range list {
		out = append(out, object.Object)
	}
	return out
}

func TestACopyHasNamesPodsAndConfigsOfItsOwn(t *testing.T) {
	in := objects(t, application)
	got, err := Copy(in, delivery.Canary, delivery.Variant{Suffix: "canary", Service: true}, "", map[string]int32{"Deployment/web": 2}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(content(objects(t, canary)), content(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(content(objects(t, application)), content(in)); diff != "" {
		t.Errorf("the rendered objects have changed\n%s", diff)
	}
}

// Routes know the Service of a variant by one name in all clusters.
func TestACopyOfOneTargetIsCalledAfterIt(t *testing.T) {
	variant := delivery.Variant{Suffix: "canary", Service: true}
	made := func(own string) []*unstructured.Unstructured {
		got, err := Copy(objects(t, application), delivery.Canary, variant, own, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got, shared := made("west"), made("")
	for i, object := range got {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if called, want := strings.Contains(string(text), "-canary-west"), object.GetKind() != "Service"; called != want {
			t.Errorf("called after the target: %t, want %t: %s", called, want, text)
		}
		plain := &unstructured.Unstructured{}
		if err := plain.UnmarshalJSON([]byte(strings.ReplaceAll(string(text), "-canary-west", "-canary"))); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(content(shared[i:i+1]), content([]*unstructured.Unstructured{plain})); diff != "" {
			t.Errorf("it differs in more than names (-shared +own)\n%s", diff)
		}
	}
}

func TestCopies(t *testing.T) {
	plain := func(kind, name string) string {
		return "{apiVersion: apps/v1, kind: " + kind + ", metadata: {name: " + name + "}, spec: {selector: {matchLabels: {app: " + name + "}}, template: {metadata: {labels: {app: " + name + "}}, spec: {containers: [{name: a}]}}}}\n---\n"
	}
	service := func(name string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: " + name + "}, spec: {clusterIP: None, selector: {app: a}}}\n---\n"
	}
	for name, test := range map[string]struct {
		in      string
		variant delivery.Variant
		options Options
		want    string // the keys of what is made
		err     string
	}{
		"all Deployments are copied":         {in: plain("Deployment", "web") + plain("Deployment", "api") + plain("StatefulSet", "db"), variant: delivery.Variant{Suffix: "canary"}, want: "Deployment/web-canary Deployment/api-canary"},
		"or those that are named":            {in: plain("Deployment", "web") + plain("StatefulSet", "db"), variant: delivery.Variant{Suffix: "new"}, options: Options{Workloads: []string{"StatefulSet/db"}}, want: "StatefulSet/db-new"},
		"one that is named is not there":     {in: plain("Deployment", "web"), variant: delivery.Variant{Suffix: "new"}, options: Options{Workloads: []string{"Deployment/web", "Deployment/x"}}, err: `workloads[1]: Not found: "Deployment/x"`},
		"there is nothing to copy":           {in: service("web"), variant: delivery.Variant{Suffix: "new"}, err: "no workload to copy"},
		"a Service is copied":                {in: plain("Deployment", "web") + service("web"), variant: delivery.Variant{Suffix: "new", Service: true}, want: "Service/web-new Deployment/web-new"},
		"one of several has to be named":     {in: plain("Deployment", "web") + service("web") + service("api"), variant: delivery.Variant{Suffix: "new", Service: true}, err: "service.name: Required value: there are 2 Services"},
		"and is":                             {in: plain("Deployment", "web") + service("web") + service("api"), variant: delivery.Variant{Suffix: "new", Service: true}, options: Options{Service: "api"}, want: "Service/api-new Deployment/web-new"},
		"the one that is named is not there": {in: plain("Deployment", "web") + service("web"), variant: delivery.Variant{Suffix: "new", Service: true}, options: Options{Service: "x"}, err: `service.name: Not found: "x"`},
		"a Service without a selector":       {in: plain("Deployment", "web") + "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {}}", variant: delivery.Variant{Suffix: "new", Service: true}, err: "spec.selector: Required value"},
		"a suffix is needed":                 {in: plain("Deployment", "web"), err: "suffix: Required value"},
		"a suffix that makes no name":        {in: plain("Deployment", "web"), variant: delivery.Variant{Suffix: "No_Name"}, err: "suffix: Invalid value"},
		"a Service's name that is too long":  {in: plain("Deployment", "web") + service(strings.Repeat("a", 60)), variant: delivery.Variant{Suffix: "canary", Service: true}, err: "at most 63 characters"},
		"a name that the application has":    {in: plain("Deployment", "web") + plain("Deployment", "web-new"), variant: delivery.Variant{Suffix: "new"}, err: `suffix: Duplicate value: "Deployment/web-new is the application's own"`},
		"labels that are none":               {in: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: [a]}}}", variant: delivery.Variant{Suffix: "new"}, err: "spec.selector.matchLabels: Invalid value"},
		"a namesake of another group":        {in: plain("Deployment", "web") + "{apiVersion: x.example/v1, kind: Deployment, metadata: {name: other}}", variant: delivery.Variant{Suffix: "new"}, want: "Deployment/web-new"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Copy(objects(t, test.in), delivery.Canary, test.variant, "", nil, test.options)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			var keys []string
			for _, object := range got {
				keys = append(keys, Key(object))
			}
			if err != nil || strings.Join(keys, " ") != test.want {
				t.Errorf("%v, %v, want %s", keys, err, test.want)
			}
		})
	}
}

func TestAHeadlessServiceStaysHeadless(t *testing.T) {
	in := objects(t, "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: None, clusterIPs: [None], selector: {app: web}}}")
	got, err := WithServices(in, []string{"primary"}, Options{Label: "v", Values: map[string]string{"primary": "main"}})
	if err != nil {
		t.Fatal(err)
	}
	want := objects(t, "{apiVersion: v1, kind: Service, metadata: {name: web-primary, labels: {v: main}, annotations: {delivery.manifold.dev/service-of: web}}, spec: {type: ClusterIP, clusterIP: None, selector: {app: web, v: main}}}")
	if diff := cmp.Diff(content(want), content(got[1:])); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Rule 7.
func TestAnAutoscalersReplicasAreItsOwn(t *testing.T) {
	scaler := "---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}"
	for name, test := range map[string]struct {
		in       string
		labelled bool
		replicas *int64
		label    string
	}{
		"without one they are what was rendered": {in: application, replicas: ptr.To(int64(5))},
		"with one they are left out":             {in: application + scaler},
		"with one of another they are not":       {in: application + strings.Replace(scaler, "name: web}}}", "name: api}}}", 1), replicas: ptr.To(int64(5))},
		"the primary's pods may have the label":  {in: application, labelled: true, replicas: ptr.To(int64(5)), label: "primary"},
	} {
		t.Run(name, func(t *testing.T) {
			in := objects(t, test.in)
			got, err := Primary(in, Options{Labelled: test.labelled})
			if err != nil || len(got) != len(in) {
				t.Fatalf("%d objects, %v", len(got), err)
			}
			replicas, has, _ := unstructured.NestedInt64(got[1].Object, "spec", "replicas")
			if has != (test.replicas != nil) || has && replicas != *test.replicas {
				t.Errorf("replicas %d, %t", replicas, has)
			}
			label, _, _ := unstructured.NestedString(got[1].Object, "spec", "template", "metadata", "labels", DefaultLabel)
			if _, selected, _ := unstructured.NestedString(got[1].Object, "spec", "selector", "matchLabels", DefaultLabel); label != test.label || selected {
				t.Errorf("label %q, selected by it: %t: a selector cannot be changed", label, selected)
			}
			scaled := Autoscaled(in)
			if owned := Owned(delivery.Primary, got[1], scaled); (len(owned) == 1) != (test.replicas == nil) {
				t.Errorf("no drift: %v", owned)
			}
			if owned := Owned(delivery.Canary, got[1], nil); len(owned) != 1 || owned[0] != "/spec/replicas" {
				t.Errorf("no drift of a copy: %v", owned)
			}
		})
	}
}

func TestProject(t *testing.T) {
	rendered := func(image string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: '" + image + "'}]}}}}"
	}
	contents := func(part delivery.Part) []*unstructured.Unstructured {
		switch revision := part.Revision.Name; {
		case revision == "web-v1":
			return objects(t, rendered("one"))
		case revision == "web-v2" && part.Target == "west":
			return objects(t, rendered("two-of-west")+"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: west}}")
		case revision == "web-v2" && part.Target == "none":
			return []*unstructured.Unstructured{}
		case revision == "web-v2" && part.Target == "south":
			return objects(t, strings.Replace(rendered("two"), "replicas: 3", "replicas: 9", 1)+"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}")
		case revision == "web-v2":
			return objects(t, rendered("two"))
		}
		return nil
	}
	targets := func(delivery.Revision) []string { return []string{"none", "east", "south", "west"} }
	part := func(revision string, replicas int32) delivery.Part {
		out := delivery.Part{Revision: delivery.Revision{Name: revision}}
		if replicas >= 0 {
			out.Replicas = map[string]int32{"Deployment/web": replicas}
		}
		return out
	}
	of := func(target string, part delivery.Part) delivery.Part {
		part.Target = target
		return part
	}
	show := func(t *testing.T, projected []Projected) string {
		var lines []string
		for _, p := range projected {
			image, _, _ := unstructured.NestedSlice(p.Object.Object, "spec", "template", "spec", "containers")
			clusters, err := json.Marshal(p.Clusters)
			if err != nil {
				t.Fatal(err)
			}
			line := p.Variant + " " + Key(p.Object) + " " + strings.NewReplacer(`"Revision":`, "", `"Target":"",`, "", `"Target":`, "of ", `"Replicas":`, "", `"`, "").Replace(string(clusters))
			if len(image) > 0 {
				replicas, _, _ := unstructured.NestedInt64(p.Object.Object, "spec", "replicas")
				line += " " + image[0].(map[string]any)["image"].(string) + " " + string(rune('0'+replicas))
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	for name, test := range map[string]struct {
		set     delivery.Set
		options Options
		want    string
		err     string
	}{
		"nothing": {},
		"one revision everywhere": {
			set:  delivery.Set{"primary": {Clusters: map[string]delivery.Part{"east": part("web-v1", -1), "west": part("web-v1", -1)}}},
			want: "primary Deployment/web {east:{web-v1,null},west:{web-v1,null}} one 3",
		},
		"half way, the object is the newest, and each cluster has its own": {
			set:  delivery.Set{"primary": {Clusters: map[string]delivery.Part{"east": part("web-v1", -1), "west": of("west", part("web-v2", -1))}}},
			want: "primary Deployment/web {east:{web-v1,null},west:{web-v2,of west,null}} two-of-west 3\nprimary ConfigMap/west {west:{web-v2,of west,null}}",
		},
		"a canary is one object of so many pods as all clusters have": {
			set: delivery.Set{
				"primary": {Clusters: map[string]delivery.Part{"east": part("web-v1", -1), "west": part("web-v1", -1)}},
				"canary":  {Suffix: "canary", Clusters: map[string]delivery.Part{"east": part("web-v2", 2), "west": part("web-v2", 1)}},
			},
			want: "primary Deployment/web {east:{web-v1,null},west:{web-v1,null}} one 3\ncanary Deployment/web-canary {east:{web-v2,2},west:{web-v2,1}} two 3",
		},
		"a canary of a target that makes it otherwise is another object": {
			set: delivery.Set{"canary": {Suffix: "canary", Clusters: map[string]delivery.Part{
				"a": of("west", part("web-v2", 1)), "b": of("east", part("web-v2", 2)), "c": of("south", part("web-v2", 3)), "d": of("west", part("web-v2", 4)),
			}}},
			want: "canary Deployment/web-canary-west {a:{web-v2,of west,1},d:{web-v2,of west,4}} two-of-west 5\n" +
				"canary Deployment/web-canary {b:{web-v2,of east,2},c:{web-v2,of south,3}} two 5",
		},
		"it is called so also where it is the only one": {
			set:  delivery.Set{"canary": {Suffix: "canary", Clusters: map[string]delivery.Part{"a": of("west", part("web-v2", 1))}}},
			want: "canary Deployment/web-canary-west {a:{web-v2,of west,1}} two-of-west 1",
		},
		"a revision that is not there": {
			set: delivery.Set{"primary": {Clusters: map[string]delivery.Part{"east": part("web-v9", -1)}}}, err: `primary of web-v9 in cluster "east": there is no revision web-v9`,
		},
		"two copies of one name": {
			set: delivery.Set{
				"baseline": {Suffix: "x", Clusters: map[string]delivery.Part{"east": part("web-v1", 1)}},
				"canary":   {Suffix: "x", Clusters: map[string]delivery.Part{"west": part("web-v2", 1)}},
			}, err: `canary of web-v2 in cluster "west": Deployment/web-x is an object of the baseline as well`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Project(test.set, Revisions{Contents: contents, Targets: targets, Newest: "web-v2"}, test.options)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || show(t, got) != test.want {
				t.Errorf("%v\n%s\nwant\n%s", err, show(t, got), test.want)
			}
		})
	}
}

// Manifests are users': whatever is in them, copying neither panics nor touches what it was given, and what it makes never has the name of what is
// there.
func FuzzCopy(f *testing.F) {
	for _, object := range objects(f, application) {
		data, err := object.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "canary")
	}
	f.Fuzz(func(t *testing.T, data []byte, suffix string) {
		in := objects(t, application)
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(data) != nil {
			return
		}
		in = append(in, object)
		before := object.DeepCopy()
		got, err := Copy(in, delivery.Canary, delivery.Variant{Suffix: suffix, Service: true}, "", map[string]int32{"Deployment/web": 1}, Options{Service: "web"})
		if !cmp.Equal(before.Object, object.Object) {
			t.Fatal("an object that was given has changed")
		}
		if err != nil {
			return
		}
		taken := map[string]bool{}
		for _, object := range in {
			taken[Key(object)] = true
		}
		for _, object := range got {
			if taken[Key(object)] {
				t.Fatalf("%s is there already", Key(object))
			}
		}
	})
}

func TestThePodsOfThePrimaryAreToldApart(t *testing.T) {
	found, o := objects(t, application), Options{Label: "variant", Values: map[string]string{"primary": "main"}}
	if Labels(found, o) {
		t.Error("they are said to be, and nobody has labelled them")
	}
	before := objects(t, application)
	if err := Label(found, o); err != nil || !Labels(found, o) {
		t.Errorf("labelled: %t, %v", Labels(found, o), err)
	}
	if Labels(found, Options{Label: "variant"}) {
		t.Error("another value of the label is none")
	}
	Unlabel(found, o)
	if diff := cmp.Diff(before, found); diff != "" {
		t.Errorf("without the label they are not what they were: %s", diff)
	}
	if err := Label(found, Options{Workloads: []string{"Deployment/none"}}); err == nil {
		t.Error("a workload that is not there is labelled")
	}
}

func TestTheServiceInFront(t *testing.T) {
	const (
		service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"}}}`
		web     = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"metadata":{"labels":{"app":"web","tier":"front"}}}}}`
		worker  = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"worker"},"spec":{"template":{"metadata":{"labels":{"app":"worker"}}}}}`
		other   = `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"other"},"spec":{"template":{"metadata":{"labels":{"app":"web"}}}}}`
	)
	for name, test := range map[string]struct {
		objects   []string
		options   Options
		wantLeads string
		wantErr   string
	}{
		"leads to one of the workloads":               {objects: []string{service, web, worker}, wantLeads: "Deployment/web"},
		"leads to all that it says":                   {objects: []string{service, web, strings.Replace(web, `"web"},"spec"`, `"api"},"spec"`, 1)}, wantLeads: "Deployment/web Deployment/api"},
		"says already which variant":                  {objects: []string{strings.Replace(service, `"app":"web"}`, `"app":"web","delivery.manifold.dev/variant":"primary"}`, 1), web}, wantLeads: "Deployment/web"},
		"stays headless":                              {objects: []string{strings.Replace(service, `"spec":{`, `"spec":{"clusterIP":"None",`, 1), web}, wantLeads: "Deployment/web"},
		"may not lead to what is not copied":          {objects: []string{service, web, other}, wantErr: `workloads: Invalid value: "StatefulSet/other": Service web leads to its pods as well`},
		"may if that is copied too":                   {objects: []string{service, web, other}, options: Options{Workloads: []string{"Deployment/web", "StatefulSet/other"}}, wantLeads: "Deployment/web StatefulSet/other"},
		"has to lead to something":                    {objects: []string{service, worker}, wantErr: `service.name: Invalid value: "web": the Service leads to none of the workloads`},
		"has to have a selector":                      {objects: []string{strings.Replace(service, `{"app":"web"}`, `{}`, 1), web}, wantErr: `service.name: Invalid value: "web": the Service leads to no pods by a selector`},
		"has to be in the cluster":                    {objects: []string{strings.Replace(service, `"spec":{`, `"spec":{"type":"ExternalName",`, 1), web}, wantErr: "the Service leads to no pods by a selector"},
		"has to be there":                             {objects: []string{web}, wantErr: "service.name: Required value: there is no Service among the objects"},
		"has to be named if there are two":            {objects: []string{service, strings.Replace(service, `"name":"web"`, `"name":"api"`, 1), web}, wantErr: "service.name: Required value: there are 2 Services among the objects"},
		"is the one that is named":                    {objects: []string{service, strings.Replace(service, `"name":"web"`, `"name":"api"`, 1), web}, options: Options{Service: "web"}, wantLeads: "Deployment/web"},
		"has to be there by the name that was named":  {objects: []string{service, web}, options: Options{Service: "front"}, wantErr: `service.name: Not found: "front"`},
		"has a selector that can be read, or is none": {objects: []string{strings.Replace(service, `{"app":"web"}`, `{"app":1}`, 1), web}, wantErr: "the Service leads to no pods by a selector"},
	} {
		t.Run(name, func(t *testing.T) {
			_, leads, err := test.options.Front(objects(t, strings.Join(test.objects, "\n---\n")))
			if strings.Join(leads, " ") != test.wantLeads || (err == nil) != (test.wantErr == "") || err != nil && !strings.HasPrefix(strings.TrimPrefix(err.Error(), "service.name: Invalid value: \"web\": "), test.wantErr) && !strings.HasPrefix(err.Error(), test.wantErr) {
				t.Errorf("%v, %v, want %s%s", leads, err, test.wantLeads, test.wantErr)
			}
		})
	}
}
