package drift

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func read(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return out
}

const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}, annotations: {team/owner: us}}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - {name: web, image: "web:1", ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}
      - {name: log, image: "log:1", args: [a, b]}
`

// stored is the manifest as it is stored: with defaults, the marks of others, and a container that a webhook has put in front.
const stored = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, uid: "1", generation: 4, labels: {app: web, theirs: x}, annotations: {team/owner: us, other: y}}
spec:
  replicas: 2
  strategy: {type: RollingUpdate}
  template:
    spec:
      restartPolicy: Always
      containers:
      - {name: sidecar, image: "proxy:1"}
      - {name: web, image: "web:1", imagePullPolicy: Always, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}
      - {name: log, image: "log:1", args: [a, b]}
status: {replicas: 2}
`

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		// changes are old and new words of what is found, and webhook those of what there would be and is.
		changes, webhook []string
		ignored          []string
		want             []Difference
	}{
		"what others have added is nobody's drift": {},
		"a field":                                {changes: []string{"replicas: 2\n  strategy", "replicas: 5\n  strategy"}, want: []Difference{{"/spec/replicas", int64(2), int64(5)}}},
		"a field that does not count":            {changes: []string{"replicas: 2\n  strategy", "replicas: 5\n  strategy"}, ignored: []string{"/spec/replicas"}},
		"a field of an item, wherever it stands": {changes: []string{"web:1", "web:2"}, want: []Difference{{"/spec/template/spec/containers/0/image", "web:1", "web:2"}}},
		"an item of which a field does not count": {changes: []string{"web:1", "web:2", "log:1", "log:2"}, ignored: []string{"/spec/template/spec/containers/0/image"},
			want: []Difference{{"/spec/template/spec/containers/1/image", "log:1", "log:2"}}},
		"an item that is gone": {changes: []string{"- {name: log, image: \"log:1\", args: [a, b]}", ""},
			want: []Difference{{"/spec/template/spec/containers/1", map[string]any{"name": "log", "image": "log:1", "args": []any{"a", "b"}}, nil}}},
		"one of two items with the same number": {changes: []string{", {containerPort: 53, protocol: UDP}", ""},
			want: []Difference{{"/spec/template/spec/containers/0/ports/1", map[string]any{"containerPort": int64(53), "protocol": "UDP"}, nil}}},
		"an item of a plain list":      {changes: []string{"args: [a, b]", "args: [a, c]"}, want: []Difference{{"/spec/template/spec/containers/1/args/1", "b", "c"}}},
		"a plain list of other length": {changes: []string{"args: [a, b]", "args: [a]"}, want: []Difference{{"/spec/template/spec/containers/1/args", []any{"a", "b"}, []any{"a"}}}},
		"a label that is gone":         {changes: []string{"labels: {app: web, ", "labels: {"}, want: []Difference{{"/metadata/labels/app", "web", nil}}},
		"an annotation with a slash":   {changes: []string{"owner: us", "owner: them"}, want: []Difference{{"/metadata/annotations/team~1owner", "us", "them"}}},
		"that annotation, left out":    {changes: []string{"owner: us", "owner: them"}, ignored: []string{"/metadata/annotations/team~1owner"}},
		"all annotations, left out":    {changes: []string{", annotations: {team/owner: us, other: y}", ""}, ignored: []string{"/metadata/annotations/team~1owner"}},
		"what a webhook makes of it":   {webhook: []string{"web:1", "mirror/web:1"}},
		"a change of what a webhook makes": {webhook: []string{"web:1", "mirror/web:1"}, changes: []string{"mirror/web:1", "web:9"},
			want: []Difference{{"/spec/template/spec/containers/0/image", "mirror/web:1", "web:9"}}},
	} {
		t.Run(name, func(t *testing.T) {
			would := strings.NewReplacer(test.webhook...).Replace(stored)
			found := strings.NewReplacer(test.changes...).Replace(would)
			if len(test.changes) > 0 && found == would {
				t.Fatal("nothing is changed")
			}
			compared := Without(read(t, manifest), test.ignored)
			got := Compare(compared, read(t, would), read(t, found))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

// What is written otherwise and means the same is told apart by what the server makes of it.
func TestWhatIsWrittenOtherwiseIsNoDrift(t *testing.T) {
	ours := read(t, "apiVersion: v1\nkind: Pod\nspec: {cpu: 1000m, nodeSelector: {}}")
	would, found := read(t, "apiVersion: v1\nkind: Pod\nspec: {cpu: '1'}"), read(t, "apiVersion: v1\nkind: Pod\nspec: {cpu: '1'}")
	if written := Compare(ours, ours, found); len(written) != 2 {
		t.Errorf("written otherwise are %v, want both fields", written)
	}
	if got := Compare(ours, would, found); len(got) > 0 {
		t.Errorf("differences are %v", got)
	}
}

func TestWhatIsPutBackLeavesAloneWhatIsIgnored(t *testing.T) {
	found := read(t, strings.NewReplacer("web:1", "web:2", "replicas: 2\n  strategy", "replicas: 5\n  strategy", "app: web, ", "").Replace(stored))
	got := Keeping(read(t, manifest), found, []string{"/spec/replicas", "/metadata/labels/app", "/spec/paused", "/spec/template/spec/containers/1"})
	replicas, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas")
	containers, _, _ := unstructured.NestedSlice(got.Object, "spec", "template", "spec", "containers")
	if _, has := got.GetLabels()["app"]; replicas != 5 || has || len(containers) != 2 {
		t.Errorf("put back is %v, want the replicas that are found, no label, and both containers", got.Object)
	}
	if image := containers[0].(map[string]any)["image"]; image != "web:1" {
		t.Errorf("the image is %v, want the one that was released", image)
	}
	without := Keeping(read(t, manifest), read(t, strings.Replace(stored, "name: log", "name: other", 1)), []string{"/spec/template/spec/containers/1"})
	if containers, _, _ = unstructured.NestedSlice(without.Object, "spec", "template", "spec", "containers"); len(containers) != 1 {
		t.Errorf("containers are %v, want the one that is not ignored", containers)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	ours := Stored(read(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {a: hunter1}}\ntype: Opaque\ndata: {b: aHVudGVyMg==}\nstringData: {a: hunter2}"))
	found := read(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {a: hunter4}}\ntype: Other\ndata: {a: aHVudGVyMw==}")
	fields := Fields(schema.GroupKind{Kind: "Secret"}, Compare(ours, ours, found), nil)
	want := []Field{{"/data/a", "***", "***", nil}, {"/data/b", "***", "", nil}, {"/metadata/annotations/a", "***", "***", nil}, {"/type", `"Opaque"`, `"Other"`, nil}}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestWhatIsToldIsBounded(t *testing.T) {
	var differences []Difference
	var clusters []string
	for i := range 100 {
		clusters = append(clusters, fmt.Sprintf("c%02d", i))
		differences = append(differences, Difference{"/" + strings.Repeat("x", 1000), strings.Repeat("y", 1000), "a\x1b[2J"})
	}
	fields := Fields(schema.GroupKind{Kind: "ConfigMap"}, differences, Reach{differences[0].Path: clusters})
	object := Object{Kind: "ConfigMap", Name: "c", Clusters: clusters, Fields: fields, Count: len(differences)}
	status, count := Status([]Object{object, object, {Kind: "Pod", Name: "p", Missing: true}, {Kind: "Pod", Name: "q", Unclear: "no"}})
	if count != 201 || len(status) != mostFields {
		t.Errorf("%d fields of %d are told", len(status), count)
	}
	for _, f := range status {
		if len(f.Path) > mostPath+3 || len(f.Wanted) > mostValue+3 || strings.Contains(f.Found, "\x1b") || len(f.Clusters) > mostClusters {
			t.Fatalf("told is %+v", f)
		}
	}
	if said := object.String(); len(said) > 260 || !strings.Contains(said, "100 fields differ") {
		t.Errorf("said is %q", said)
	}
}

// A difference is told of the clusters that it reaches. What is in the logical cluster alone is told as that.
func TestDriftIsToldOfTheClustersThatItReaches(t *testing.T) {
	differences := []Difference{{"/a", 1, 2}, {"/b", 1, 3}}
	for name, test := range map[string]struct {
		reach              Reach
		want, east, status string
	}{
		"none":         {want: "ConfigMap/c: 2 fields differ, such as /a, which is to be 1, and 2 was found in the logical cluster alone", status: "/a /b"},
		"one field":    {reach: Reach{"/b": {"east"}}, want: "ConfigMap/c: 2 fields differ, such as /a, which is to be 1, and 2 was found", east: "ConfigMap/c: /b is to be 1, and 3 was found", status: "/a /b east"},
		"other fields": {reach: Reach{"/a": {"west"}, "/b": {"east", "west"}}, want: "ConfigMap/c: 2 fields differ, such as /a, which is to be 1, and 2 was found", east: "ConfigMap/c: /b is to be 1, and 3 was found", status: "/a west /b east west"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Object{Kind: "ConfigMap", Name: "c", Clusters: test.reach.Clusters(), Fields: Fields(schema.GroupKind{Kind: "ConfigMap"}, differences, test.reach), Count: len(differences)}
			if got := o.String(); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
			if got := o.In("east"); test.east != "" && got != test.east {
				t.Errorf("of east it says %q, want %q", got, test.east)
			}
			var status []string
			told, _ := Status([]Object{o})
			for _, f := range told {
				status = append(append(status, f.Path), f.Clusters...)
			}
			if got := strings.Join(status, " "); got != test.status {
				t.Errorf("told is %q, want %q", got, test.status)
			}
		})
	}
}

func TestWhatIsIgnored(t *testing.T) {
	rules := &v1alpha1.Drift{Ignore: []v1alpha1.DriftIgnore{
		{Group: "apps", Kind: "Deployment", Name: "web", JSONPointers: []string{"/a"}}, {Kind: "Deployment", JSONPointers: []string{"/b"}}, {JSONPointers: []string{"/c"}},
	}}
	for name, test := range map[string]struct {
		drift *v1alpha1.Drift
		kind  schema.GroupKind
		name  string
		want  string
	}{
		"nothing is said":      {kind: schema.GroupKind{Kind: "Pod"}},
		"all that is set fits": {drift: rules, kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, name: "web", want: "/a /b /c"},
		"of another name":      {drift: rules, kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, name: "other", want: "/b /c"},
		"of another group":     {drift: rules, kind: schema.GroupKind{Group: "example.com", Kind: "Deployment"}, name: "web", want: "/b /c"},
		"of another kind":      {drift: rules, kind: schema.GroupKind{Kind: "ConfigMap"}, name: "web", want: "/c"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(Ignored(test.drift, test.kind, test.name), " "); got != test.want {
				t.Errorf("ignored are %q, want %q", got, test.want)
			}
		})
	}
}

// Somebody who changes a field back each time is not fought more often than every five minutes in the end.
func TestAFightSlowsDown(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := Patience{}
	if due := p.Due(); due.After(now) {
		t.Errorf("the first time is due at %s", due)
	}
	start, times := now, 0
	for ; now.Sub(start) < time.Hour; times++ {
		p = p.Next(now)
		if p.Due().Sub(now) < firstDelay || p.Due().Sub(now) > lastDelay {
			t.Fatalf("after %d times it is due in %s", p.Times, p.Due().Sub(now))
		}
		now = p.Due()
	}
	if times > 22 {
		t.Errorf("put back %d times in an hour", times)
	}
	if p = p.Next(p.Last.Add(time.Hour)); p.Times != 1 {
		t.Errorf("after an hour of peace it counts %d times", p.Times)
	}
}

// What was put back a moment ago may not be seen yet, so that nobody says that it is gone again.
func TestWhatWasPutBackIsFresh(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := Patience{}.Next(now)
	if (Patience{}).Fresh(now) || !p.Fresh(now.Add(firstDelay/2)) || p.Fresh(now.Add(firstDelay)) {
		t.Errorf("fresh is never: %t, at once: %t, after %s: %t", Patience{}.Fresh(now), p.Fresh(now.Add(firstDelay/2)), firstDelay, p.Fresh(now.Add(firstDelay)))
	}
}
