package weave

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// object is what a server hands on of a manifest.
func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, manifest string) *Pipeline {
	t.Helper()
	out, err := Read(object(t, manifest))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// of makes a pipeline of the newer group with so much of its spec.
func of(spec string) string {
	return "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {namespace: ops, name: web}\nspec: {" + spec + "}"
}

// older makes one of the older group.
func older(spec string) string {
	return "apiVersion: pipelines.wego.weave.works/v1alpha1\nkind: Pipeline\nmetadata: {namespace: ops, name: web}\nspec: {" + spec + "}"
}

const (
	app = "appRef: {apiVersion: apps/v1, kind: Deployment, name: web}"
	dev = "environments: [{name: dev, targets: [{namespace: web}]}]"
)

func TestPipelinesOfBothGroupsAreReadAsOneType(t *testing.T) {
	got := read(t, older("environments: [{name: dev, targets: [{namespace: podinfo, clusterRef: {kind: GitopsCluster, name: dev}}]}, {name: prod, targets: [{namespace: podinfo}]}]"))
	want := Spec{Environments: []Environment{
		{Name: "dev", Targets: []Target{{Namespace: "podinfo", ClusterRef: &ClusterReference{Kind: "GitopsCluster", Name: "dev"}}}},
		{Name: "prod", Targets: []Target{{Namespace: "podinfo"}}},
	}}
	if diff := cmp.Diff(want, got.Spec); diff != "" || !got.Older() || got.Name != "web" || got.Namespace != "ops" {
		t.Errorf("%s/%s, older %t: %s", got.Namespace, got.Name, got.Older(), diff)
	}
	if got := read(t, of(app+", "+dev)); got.Older() || got.Spec.AppRef == nil || *got.Spec.AppRef != (AppReference{"apps/v1", "Deployment", "web"}) {
		t.Errorf("older %t, app %+v", got.Older(), got.Spec.AppRef)
	}
}

func TestWhatIsNoPipelineIsNotRead(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"another kind":          {strings.Replace(of(app), "kind: Pipeline", "kind: Task", 1), "is no Pipeline"},
		"that of another group": {"apiVersion: tekton.dev/v1\nkind: Pipeline\nmetadata: {name: a}", "is no Pipeline"},
		"another version":       {"apiVersion: pipelines.weave.works/v2\nkind: Pipeline\nmetadata: {name: a}", "is no Pipeline"},
		"a spec of other types": {of("environments: dev"), "read Pipeline ops/web"},
	} {
		if _, err := Read(object(t, test.in)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// A server with Weave's own definitions, which have no bounds and no rules, refuses the same.
func TestASpecIsRefusedByPath(t *testing.T) {
	targets := func(text string) string { return of(app + ", environments: [{name: dev, targets: [" + text + "]}]") }
	promotion := func(text string) string { return of(app + ", " + dev + ", promotion: {strategy: {" + text + "}}") }
	pull := func(change string) string {
		fields := map[string]string{"type": "github", "url": "https://github.com/a/b.git", "baseBranch": "main", "secretRef": "{name: token}"}
		key, value, _ := strings.Cut(change, "=")
		fields[key] = value
		var out []string
		for key, value := range fields {
			if !strings.HasPrefix(value, "{") {
				value = fmt.Sprintf("%q", value)
			}
			out = append(out, key+": "+value)
		}
		return promotion("pull-request: {" + strings.Join(out, ", ") + "}")
	}
	many := func(count int, entry string) string {
		var out []string
		for i := range count {
			out = append(out, fmt.Sprintf(entry, i))
		}
		return strings.Join(out, ", ")
	}
	forty := many(40, "{namespace: n%d}")
	for name, test := range map[string]struct{ in, want string }{
		"nothing of the older group":                  {older(""), "spec.environments: Required value"},
		"a good one":                                  {of(app + ", " + dev), ""},
		"a good one of the older group":               {older(dev), ""},
		"no app":                                      {of(dev), "spec.appRef: Required value"},
		"an app in the older group":                   {older(app + ", " + dev), "spec.appRef: Forbidden"},
		"an app without a name":                       {of("appRef: {apiVersion: apps/v1, kind: Deployment}, " + dev), "spec.appRef.name: Required value"},
		"an app without a kind":                       {of("appRef: {apiVersion: apps/v1, name: web}, " + dev), "spec.appRef.kind: Required value"},
		"an app without a version":                    {of("appRef: {kind: Deployment, name: web}, " + dev), "spec.appRef.apiVersion: Required value"},
		"an app that nobody reads":                    {of("appRef: {apiVersion: v1, kind: Secret, name: web}, " + dev), `spec.appRef.kind: Unsupported value: "Secret"`},
		"a kind of that name in another group":        {of("appRef: {apiVersion: example.com/v1, kind: Deployment, name: web}, " + dev), `spec.appRef.kind: Unsupported value: "Deployment.example.com"`},
		"a group that is none":                        {of("appRef: {apiVersion: a/b/c, kind: Deployment, name: web}, " + dev), "spec.appRef.kind: Unsupported value"},
		"an app of any version":                       {of("appRef: {apiVersion: helm.toolkit.fluxcd.io/v2beta1, kind: HelmRelease, name: web}, " + dev), ""},
		"no environments":                             {of(app), "spec.environments: Required value"},
		"too many environments":                       {of(app + ", environments: [" + many(33, "{name: e%d, targets: [{namespace: a}]}") + "]"), "spec.environments: Too many: 33: must have at most 32 items"},
		"an environment without a name":               {of(app + ", environments: [{targets: [{namespace: a}]}]"), "spec.environments[0].name: Required value"},
		"one with a name for no marker":               {of(app + ", environments: [{name: 'a:b', targets: [{namespace: a}]}]"), `spec.environments[0].name: Invalid value: "a:b"`},
		"one with a name that is too long":            {of(app + ", environments: [{name: " + strings.Repeat("e", 64) + ", targets: [{namespace: a}]}]"), "spec.environments[0].name: Invalid value"},
		"environments twice":                          {of(app + ", environments: [{name: dev, targets: [{namespace: a}]}, {name: dev, targets: [{namespace: b}]}]"), `spec.environments[1].name: Duplicate value: "dev"`},
		"an environment without targets":              {of(app + ", environments: [{name: dev}]"), "spec.environments[0].targets: Required value"},
		"too many targets":                            {targets(many(65, "{namespace: n%d}")), "spec.environments[0].targets: Too many"},
		"too many in all":                             {of(app + ", environments: [" + many(7, "{name: e%d, targets: ["+strings.ReplaceAll(forty, "%", "%%")+"]}") + "]"), "spec.environments: Invalid value: 280: must have at most 256 targets in all"},
		"a target without a namespace":                {targets("{clusterRef: {kind: GitopsCluster, name: dev}}"), "spec.environments[0].targets[0].namespace: Required value"},
		"a namespace that is a path":                  {targets("{namespace: ../secrets}"), "spec.environments[0].targets[0].namespace: Invalid value"},
		"a target twice":                              {targets("{namespace: a}, {namespace: b}, {namespace: a}"), `spec.environments[0].targets[2]: Duplicate value: "namespace \"a\""`},
		"twice by two names of a cluster":             {targets("{namespace: a, clusterRef: {kind: GitopsCluster, name: dev}}, {namespace: a, clusterRef: {kind: Cluster, name: dev}}"), `spec.environments[0].targets[1]: Duplicate value: "namespace \"a\" of cluster \"dev\""`},
		"W8 two namespaces of a cluster":              {targets("{namespace: a, clusterRef: {kind: GitopsCluster, name: dev}}, {namespace: b, clusterRef: {kind: GitopsCluster, name: dev}}"), ""},
		"a namespace of two clusters":                 {targets("{namespace: a, clusterRef: {kind: GitopsCluster, name: dev}}, {namespace: a}"), ""},
		"a target in two environments":                {of(app + ", environments: [{name: dev, targets: [{namespace: a}]}, {name: prod, targets: [{namespace: a}]}]"), ""},
		"a cluster of no kind":                        {targets("{namespace: a, clusterRef: {name: dev}}"), "spec.environments[0].targets[0].clusterRef.kind: Required value"},
		"one of another kind":                         {targets("{namespace: a, clusterRef: {kind: Secret, name: dev}}"), `spec.environments[0].targets[0].clusterRef.kind: Unsupported value: "Secret"`},
		"one of Cluster API":                          {targets("{namespace: a, clusterRef: {apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, name: dev}}"), "spec.environments[0].targets[0].clusterRef.apiVersion: Invalid value"},
		"one with its version":                        {targets("{namespace: a, clusterRef: {apiVersion: manifold.dev/v1alpha1, kind: Cluster, name: dev}}"), ""},
		"one without a name":                          {targets("{namespace: a, clusterRef: {kind: Cluster}}"), "spec.environments[0].targets[0].clusterRef.name: Required value"},
		"one whose name is a path":                    {targets("{namespace: a, clusterRef: {kind: Cluster, name: ../dev}}"), "spec.environments[0].targets[0].clusterRef.name: Invalid value"},
		"one in a namespace that is none":             {targets("{namespace: a, clusterRef: {kind: Cluster, name: dev, namespace: A/B}}"), "spec.environments[0].targets[0].clusterRef.namespace: Invalid value"},
		"no strategy":                                 {promotion(""), "spec.promotion.strategy: Required value"},
		"two strategies":                              {promotion("notification: {}, direct: {serviceAccountName: a}"), "spec.promotion.strategy: Forbidden"},
		"of an environment":                           {of(app + ", environments: [{name: dev, targets: [{namespace: a}], promotion: {strategy: {}}}]"), "spec.environments[0].promotion.strategy: Required value"},
		"direct as nobody":                            {promotion("direct: {}"), "spec.promotion.strategy.direct.serviceAccountName: Required value"},
		"direct as a group of them":                   {promotion("direct: {serviceAccountName: 'a:b'}"), "spec.promotion.strategy.direct.serviceAccountName: Invalid value"},
		"a key without a name":                        {promotion("notification: {}, secretRef: {}"), "spec.promotion.strategy.secretRef.name: Required value"},
		"a good pull request":                         {pull("type=github"), ""},
		"over SSH":                                    {pull("url=ssh://git@github.com/a/b"), ""},
		"of a forge of nobody":                        {pull("type=sourceforge"), "pull-request.type: Unsupported value"},
		"of no forge":                                 {pull("type="), "pull-request.type: Required value"},
		"without a url":                               {pull("url="), "pull-request.url: Required value"},
		"a file":                                      {pull("url=file:///etc/passwd"), "pull-request.url: Invalid value"},
		"a url without a repository":                  {pull("url=https://github.com"), "pull-request.url: Invalid value"},
		"a token in the url":                          {pull("url=https://token@github.com/a/b"), "pull-request.url: Invalid value"},
		"a password in the url of SSH":                {pull("url=ssh://git:secret@github.com/a/b"), "pull-request.url: Invalid value"},
		"a url that is too long":                      {pull("url=https://a.b/" + strings.Repeat("c", 2048)), "pull-request.url: Too long"},
		"no branch":                                   {pull("baseBranch="), "pull-request.baseBranch: Required value"},
		"a branch that is an option":                  {pull("baseBranch=--upload-pack=sh"), "pull-request.baseBranch: Invalid value"},
		"a branch that leads out":                     {pull("baseBranch=a/../b"), "pull-request.baseBranch: Invalid value"},
		"a path that leads out":                       {pull("path=a/../../etc"), "pull-request.path: Invalid value"},
		"a path from the root":                        {pull("path=/etc"), "pull-request.path: Invalid value"},
		"a folder of the repository":                  {pull("path=apps/web"), ""},
		"a Secret without a name":                     {pull("secretRef={}"), "pull-request.secretRef.name: Required value"},
		"a Secret of another namespace":               {pull("secretRef={name: kube-system/admin}"), "pull-request.secretRef.name: Invalid value"},
		"a name of the older group as a label":        {strings.Replace(older(dev), "name: web}", "name: "+strings.Repeat("a", 64)+"}", 1), "metadata.name: Invalid value"},
		"a long name of the newer, which need not be": {strings.Replace(of(app+", "+dev), "name: web}", "name: "+strings.Repeat("a", 64)+"}", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			if errs := Validate(read(t, test.in)); len(errs) > 0 {
				said = errs.ToAggregate().Error()
			}
			if (test.want == "") != (said == "") || !strings.Contains(said, test.want) {
				t.Errorf("says %q, want %q", said, test.want)
			}
			if strings.Contains(said, "token@") || strings.Contains(said, "git:secret") {
				t.Errorf("it repeats a credential: %s", said)
			}
		})
	}
}

func TestAnEnvironmentIsPromotedToAsItSaysItselfOrElseAsItsPipelineDoes(t *testing.T) {
	p := read(t, of(app+", environments: [{name: dev, targets: [{namespace: a}]}, {name: prod, targets: [{namespace: a}], promotion: {manual: true, strategy: {notification: {}}}}], "+
		"promotion: {strategy: {direct: {serviceAccountName: promoter}}}"))
	if got := p.PromotionOf(p.Spec.Environments[0]); got == nil || got.Strategy.Direct == nil {
		t.Errorf("dev: %+v", got)
	}
	if got := p.PromotionOf(p.Spec.Environments[1]); got == nil || !got.Manual || got.Strategy.Direct != nil || got.Strategy.Notification == nil {
		t.Errorf("prod: %+v", got)
	}
	none := read(t, of(app+", "+dev))
	if got := none.PromotionOf(none.Spec.Environments[0]); got != nil {
		t.Errorf("one that says nothing: %+v", got)
	}
}

// What is read comes from strangers: nothing of it may end the process, and a spec that is taken keeps to the bounds.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		of(app + ", " + dev), older(dev), of("environments: [{targets: [{clusterRef: {}}]}], promotion: {strategy: {pull-request: {}, direct: {}}}"), older("environments: {}"),
		of(app + ", environments: [null, {name: a, targets: [null]}]"), "apiVersion: pipelines.weave.works/v1alpha1\nkind: Pipeline\nstatus: {environments: {dev: null}, paused: 7}",
	} {
		text, err := yaml.YAMLToJSON([]byte(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		content := map[string]any{}
		if err := utiljson.Unmarshal([]byte(text), &content); err != nil {
			return
		}
		before, err := json.Marshal(content)
		if err != nil {
			return
		}
		p, err := Read(&unstructured.Unstructured{Object: content})
		if after, _ := json.Marshal(content); string(after) != string(before) {
			t.Fatalf("reading changes %s into %s", before, after)
		}
		if err != nil {
			return
		}
		errs := Validate(p)
		Needs(nil, p)
		Needs(p, p)
		Missing(nil, p, func(string) bool { return false }, func(string) bool { return false })
		if len(errs) > 0 {
			return
		}
		targets, names := 0, map[string]bool{}
		for _, e := range p.Spec.Environments {
			targets += len(e.Targets)
			if names[e.Name] || strings.ContainsAny(e.Name, ":/ ") || e.Name == "" || len(e.Targets) == 0 {
				t.Fatalf("environment %q is taken", e.Name)
			}
			names[e.Name] = true
			for _, target := range e.Targets {
				if target.Namespace == "" {
					t.Fatal("a target without a namespace is taken")
				}
			}
		}
		if len(p.Spec.Environments) == 0 || len(p.Spec.Environments) > MostEnvironments || targets > MostTargets || p.Older() != (p.Spec.AppRef == nil) {
			t.Fatalf("taken is %+v", p.Spec)
		}
	})
}
