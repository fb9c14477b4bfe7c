package applications

import (
	"fmt"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/applications/sources"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

type repository struct{ *gittest.Repository }

func newRepository(t *testing.T) *repository {
	t.Helper()
	return &repository{gittest.New(t, "shop")}
}

// application is one whose manifests are in a folder of the repository.
func (r *repository) application(folder string, objects ...runtime.Object) *v1alpha1.Application {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-of-web", Generation: 1}}
	app.Spec.Source.Git = &v1alpha1.GitSource{URL: r.FileURL(), Path: folder}
	v1alpha1.SetObjectDefaults_Application(app)
	return app
}

func repositories(t *testing.T) sources.Repositories {
	t.Helper()
	client, err := git.New(t.TempDir(), git.Policy{Files: []string{"/"}, PlainHTTP: true, Allow: func(net.IP) bool { return true }}, git.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const base = "resources: [web.yaml]\n"

var overlays = map[string]string{
	"web/base/kustomization.yaml": base,
	"web/base/web.yaml":           deployment,
	"web/east/kustomization.yaml": "resources: [../base]\n",
	"web/west/kustomization.yaml": "resources: [../base]\nreplicas: [{name: web, count: 5}]\n",
}

func TestCommitsBecomeRevisions(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first\n\nmore", overlays)
	app := r.application("web")
	app.Spec.Targets = []v1alpha1.Target{{Name: "east", Cluster: "east", Path: "east"}, {Name: "west", Cluster: "west", Path: "./west"}}
	w := newWorld(t, repositories(t), app)
	got := w.turn()
	if w.revisionNames() != "web-v1" || w.released() != "web-v1" {
		t.Fatalf("revisions %q: %s %s", w.revisionNames(), says(got, v1alpha1.ApplicationSourceReady), says(got, v1alpha1.ApplicationRendered))
	}
	spec := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)[0].Spec
	if spec.Origin == nil || spec.Origin.Message != "the first" || spec.Origin.Author != "Ada" || len(spec.Origin.Commit) != 40 || len(spec.Targets) != 2 || spec.Targets[0].Hash == spec.Targets[1].Hash {
		t.Errorf("the revision is of %+v for %+v", spec.Origin, spec.Targets)
	}
	r.Commit("words alone", map[string]string{"README.md": "hello"})
	if got = w.turn(); w.revisionNames() != "web-v1" || got.Status.Source.Origin.Message != "words alone" {
		t.Errorf("a commit that changes no manifest makes revisions %s, and the source is at %+v", w.revisionNames(), got.Status.Source.Origin)
	}
	r.Commit("bigger", map[string]string{"web/west/kustomization.yaml": "resources: [../base]\nreplicas: [{name: web, count: 6}]\n"})
	if w.turn(); w.revisionNames() != "web-v1 web-v2" {
		t.Errorf("a commit that changes one makes revisions %s", w.revisionNames())
	}
}

func TestWhatIsWrongWithASource(t *testing.T) {
	for name, test := range map[string]struct {
		files                     map[string]string
		folder                    string
		change                    func(*v1alpha1.ApplicationSpec)
		source, rendered, unfolds string
	}{
		"a repository that there is not": {
			change: func(spec *v1alpha1.ApplicationSpec) { spec.Source.Git.URL += "-gone" }, source: "NotFound: look up the default branch of file://",
		},
		"a repository that does not answer": {
			change: func(spec *v1alpha1.ApplicationSpec) { spec.Source.Git.URL = "http://127.0.0.1:1/shop.git" }, source: "Unavailable: look up the default branch of http://127.0.0.1:1/shop.git",
		},
		"a branch that is gone": {
			change: func(spec *v1alpha1.ApplicationSpec) { spec.Source.Git.Ref = &v1alpha1.GitRef{Branch: "gone"} }, source: `NotFound: look up branch "gone"`,
		},
		"credentials that are not there": {
			change: func(spec *v1alpha1.ApplicationSpec) {
				spec.Source.Git.SecretRef = &v1alpha1.SecretReference{Name: "login"}
			}, source: "there is no Secret shop/login",
		},
		"a folder that is not there": {folder: "webb", rendered: `Invalid: target "default": invalid: there is no folder "webb"`},
		"a target's folder that is not there": {
			folder: "web", change: func(spec *v1alpha1.ApplicationSpec) {
				spec.Targets = []v1alpha1.Target{{Name: "eu", Cluster: "east", Path: "eu"}}
			},
			rendered: `target "eu": invalid: there is no folder "web/eu"`,
		},
		"a folder outside of the repository": {
			folder: "web", change: func(spec *v1alpha1.ApplicationSpec) {
				spec.Targets = []v1alpha1.Target{{Name: "eu", Cluster: "east", Path: "../../etc"}}
			},
			rendered: `path "../etc" leads out of the repository`,
		},
		"a folder without manifests": {
			files: map[string]string{"a/README.md": "hello"}, folder: "a",
			rendered: `Invalid: target "default": invalid: there are no manifests in folder "a", and nothing is released of it; correct spec.source.git.path`,
		},
		"a target's folder without manifests": {
			files: map[string]string{"web/eu/README.md": "hello"}, folder: "web", change: func(spec *v1alpha1.ApplicationSpec) {
				spec.Targets = []v1alpha1.Target{{Name: "east", Cluster: "east", Path: "east"}, {Name: "eu", Cluster: "west", Path: "eu"}}
			},
			rendered: `target "eu": invalid: there are no manifests in folder "web/eu", and nothing is released of it; correct the path of the target`,
		},
		"a kustomization of nothing": {
			files: map[string]string{"a/kustomization.yaml": "namePrefix: x-\n"}, folder: "a", rendered: "Invalid: ",
		},
		"a chart that is elsewhere": {
			files:  map[string]string{"a/app.pipecd.yaml": "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec: {input: {helmChart: {repository: shop, name: web, version: 1.2.3}}}\n"},
			folder: "a", rendered: `Invalid: target "default": invalid: there are no manifests in folder "a"`,
		},
		"kustomizations that include one another": {
			files: map[string]string{"a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"}, folder: "a", rendered: "Invalid: ",
		},
		"a link out of the repository": {files: map[string]string{"a/web.yaml": "-> /etc/passwd"}, folder: "a", rendered: `file "a/web.yaml" cannot be read`},
		"a chart that does not render": {
			files:  map[string]string{"a/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n", "a/templates/web.yaml": `{{ fail "no host is set" }}`},
			folder: "a", rendered: "no host is set",
		},
		"10,001 objects": {files: map[string]string{"a/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + strings.Repeat("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", 10_000)}, folder: "a", rendered: `"a/web.yaml" makes it too many objects`},
		"a kind that is in no namespace": {
			files: map[string]string{"a/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\n"}, folder: "a",
			rendered: `Refused: target "default": not allowed: in folder "a": ClusterRole.rbac.authorization.k8s.io all: it is in no namespace`,
		},
		"an application file that nobody understands": {
			files: map[string]string{"a/app.pipecd.yaml": "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec: {nonsense: 1}\n"}, folder: "a", rendered: `ApplicationFile: the application file cannot be used: "a/app.pipecd.yaml"`,
		},
		"an application file with stages that there are not": {
			files:  map[string]string{"a/app.pipecd.yaml": "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec: {pipeline: {stages: [{name: FLY}]}}\n"},
			folder: "a", rendered: "FLY",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.Commit("the first", overlays)
			r.Commit("the second", test.files)
			app := r.application(test.folder)
			if test.change != nil {
				test.change(&app.Spec)
			}
			w := newWorld(t, repositories(t), app)
			got := w.turn()
			if message := says(got, v1alpha1.ApplicationSourceReady); !strings.Contains(message, test.source) || test.source == "" && message != "" {
				t.Errorf("condition SourceReady says %q, want %q", message, test.source)
			}
			if message := says(got, v1alpha1.ApplicationRendered); test.rendered != "" && !strings.Contains(message, test.rendered) {
				t.Errorf("condition Rendered says %q, want %q", message, test.rendered)
			}
			if w.revisionNames() != "" || w.released() != "" {
				t.Errorf("there are revisions %s and releases of %s, want nothing", w.revisionNames(), w.released())
			}
		})
	}
}

func TestSecretsOfARepositoryAreReadableByWhoMayReadSecrets(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", map[string]string{"a/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {word: s3cret-word}\n"})
	w := newWorld(t, repositories(t), r.application("a"))
	w.turn()
	revision := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)[0]
	if text := marshalled(revision); strings.Contains(text, "s3cret-word") || !strings.Contains(text, "web-v1-secrets-1") {
		t.Errorf("the revision is %s, want it to refer to a Secret", text)
	}
	secret, err := w.objects.CoreV1().Secrets("shop").Get(t.Context(), "web-v1-secrets-1", metav1.GetOptions{})
	if err != nil || len(secret.Data) != 1 || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("the Secret is %+v (%v), want the manifest in it", secret, err)
	}
}

func TestTheApplicationFileSaysHow(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", overlays)
	r.Commit("the second", map[string]string{"web/app.pipecd.yaml": `
apiVersion: pipecd.dev/v1beta1
kind: KubernetesApp
spec:
  name: web
  timeout: 3h
  quickSync:
    prune: true
    multiTarget:
    - {provider: {name: east}, resourceDir: ./east}
    - {provider: {name: west}, resourceDir: ./west}
  pipeline:
    stages:
    - {name: K8S_PRIMARY_ROLLOUT}
`})
	w := newWorld(t, repositories(t), r.application("web"))
	app := w.turn()
	if w.revisionNames() != "web-v1" {
		t.Fatalf("revisions %q: %s", w.revisionNames(), says(app, v1alpha1.ApplicationRendered))
	}
	spec := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)[0].Spec
	if len(spec.Targets) != 2 || spec.Delivery == nil || len(spec.Delivery.Pipeline.Stages) != 1 || !ptr.Deref(spec.Delivery.Prune, false) {
		t.Errorf("the revision has targets %+v and is delivered by %+v", spec.Targets, spec.Delivery)
	}
	if got := says(app, v1alpha1.ApplicationHonoured); !strings.Contains(got, "spec.timeout is not honoured") {
		t.Errorf("condition Honoured says %q, want the field that nobody acts upon", got)
	}
	if len(app.Status.Targets) != 2 {
		t.Errorf("the status has targets %+v", app.Status.Targets)
	}
}

// What the file says is a part of the revision: a change of it is released as one of the manifests is.
func TestAChangeOfTheApplicationFileIsARevision(t *testing.T) {
	file := func(spec string) map[string]string {
		return map[string]string{"web/app.pipecd.yaml": "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec:\n  name: web\n" + spec}
	}
	pipeline := "  pipeline: {stages: [{name: K8S_CANARY_ROLLOUT, with: {replicas: 10%}}, {name: K8S_PRIMARY_ROLLOUT}]}\n"
	r := newRepository(t)
	r.Commit("the first", map[string]string{"web/web.yaml": deployment})
	r.Commit("with a pipeline", file(pipeline))
	w := newWorld(t, repositories(t), r.application("web"))
	w.turn()
	for _, step := range []struct {
		what, spec, want string
	}{
		{"nothing is another one", pipeline, "web-v1"},
		{"words that nobody acts upon", "  description: the shop\n" + pipeline, "web-v1"},
		{"a comment", "  # as agreed\n" + pipeline, "web-v1"},
		{"what is so anyway", "  pipeline:\n    stages:\n    - {name: K8S_CANARY_ROLLOUT, with: {replicas: 10%}}\n    - name: K8S_PRIMARY_ROLLOUT\n", "web-v1"},
		{"another number", strings.Replace(pipeline, "10%", "20%", 1), "web-v1 web-v2"},
		{"no pipeline", "", "web-v1 web-v2 web-v3"},
		{"another thing that it says", "  quickSync: {prune: true}\n", "web-v1 web-v2 web-v3 web-v4"},
	} {
		r.Commit(step.what, file(step.spec))
		app := w.turn()
		if w.revisionNames() != step.want || w.released() != step.want {
			t.Fatalf("%s: revisions %s and releases of %s, want %s: %s", step.what, w.revisionNames(), w.released(), step.want, says(app, v1alpha1.ApplicationRendered))
		}
	}
	w.restart(repositories(t))
	if w.turn(); w.revisionNames() != "web-v1 web-v2 web-v3 web-v4" {
		t.Errorf("after a restart there are %s", w.revisionNames())
	}
}

// What the file leaves to the configuration of piped, and what the Application says otherwise than the file, is told.
func TestTheApplicationSaysWhatItsFileDoesNot(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", overlays)
	r.Commit("the second", map[string]string{"web/app.pipecd.yaml": `
apiVersion: pipecd.dev/v1beta1
kind: KubernetesApp
spec:
  name: web
  labels: {env: prd}
  quickSync: {multiTarget: [{provider: {name: east}, resourceDir: ./east}]}
  pipeline:
    stages:
    - {name: ANALYSIS, with: {duration: 1m, metrics: [{provider: prom, query: up, interval: 1m, expected: {max: 1}}]}}
    - {name: K8S_PRIMARY_ROLLOUT}
`})
	w := newWorld(t, repositories(t), r.application("web"))
	if got := says(w.turn(), v1alpha1.ApplicationRendered); !strings.Contains(got, "set spec.source.git.pipecd.analysisProviders[prom] of the Application") {
		t.Errorf("without an address of the provider it says %q", got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Source.Git.Pipecd = &v1alpha1.PipecdConfig{AnalysisProviders: map[string]string{"prom": "https://prometheus.example"}}
		spec.Targets = []v1alpha1.Target{{Name: "eu", Cluster: "east", Path: "west"}, {Name: "west", Cluster: "west", Path: "west"}}
	})
	got := w.turn()
	if w.revisionNames() != "web-v1" {
		t.Fatalf("revisions %q: %s", w.revisionNames(), says(got, v1alpha1.ApplicationRendered))
	}
	made := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)[0].Spec.Delivery
	if with := string(made.Pipeline.Stages[0].With.Raw); made.Labels["env"] != "prd" || !strings.Contains(with, `"provider":"https://prometheus.example"`) {
		t.Errorf("the revision is delivered with labels %v and %s", made.Labels, with)
	}
	want := "multiTarget of app.pipecd.yaml, which leaves out target west, is not honoured: spec.targets[1] of the Application has it, and comes first"
	if told := says(got, v1alpha1.ApplicationHonoured); !strings.Contains(told, "resourceDir of target east of app.pipecd.yaml is not honoured: spec.targets[0].path of the Application says otherwise") ||
		!strings.Contains(told, want) || strings.Contains(told, "pipeline of") {
		t.Errorf("condition Honoured says %q", told)
	}
}

// Whoever may push to a repository has no Secret sent anywhere by that: a file names one for what the Application has it used for itself.
func TestAFileHasNoSecretSentWhereItsApplicationDoesNotSay(t *testing.T) {
	const refused = `spec.pipeline.stages[0].with.metrics[0].secretRef.name: Forbidden: the Application does not say itself that Secret "crown" is for queries to "https://evil.example"`
	file := func(metric string) map[string]string {
		return map[string]string{"web/web.yaml": deployment, "web/app.pipecd.yaml": "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec:\n  name: web\n" +
			"  pipeline: {stages: [{name: ANALYSIS, with: {duration: 1m, metrics: [{query: up, interval: 1m, expected: {max: 1}, " + metric + "}]}}, {name: K8S_SYNC}]}\n"}
	}
	r := newRepository(t)
	r.Commit("the first", file("provider: 'https://evil.example', secretRef: {name: crown}"))
	w := newWorld(t, repositories(t), r.application("web"))
	if got := says(w.turn(), v1alpha1.ApplicationRendered); !strings.Contains(got, refused) || !strings.Contains(got, "analysisSecrets") || w.revisionNames() != "" {
		t.Fatalf("it says %q, want %q; revisions are %q", got, refused, w.revisionNames())
	}
	// That another server has it is no reason.
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Source.Git.Pipecd = &v1alpha1.PipecdConfig{
			AnalysisProviders: map[string]string{"prom": "https://prom.example"}, AnalysisSecrets: map[string]string{"prom": "crown"},
		}
	})
	if got := says(w.turn(), v1alpha1.ApplicationRendered); !strings.Contains(got, refused) {
		t.Errorf("it says %q, want %q", got, refused)
	}
	with := func() string { return string(w.latestSpec().Delivery.Pipeline.Stages[0].With.Raw) }
	for _, metric := range []string{"provider: 'https://prom.example', secretRef: {name: crown}", "provider: prom"} {
		r.Commit(metric, file(metric))
		if got := w.turn(); w.revisionNames() != "web-v1" || !strings.Contains(with(), `"provider":"https://prom.example"`) || !strings.Contains(with(), `"secretRef":{"name":"crown"}`) {
			t.Fatalf("%s: revisions are %q: %s", metric, w.revisionNames(), says(got, v1alpha1.ApplicationRendered))
		}
	}
	// It counts from then on that the Application says otherwise, and not with the next commit.
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Git.Pipecd.AnalysisSecrets = nil })
	if w.turn(); w.revisionNames() != "web-v1 web-v2" || strings.Contains(with(), "secretRef") {
		t.Errorf("revisions are %q, the last one with %s", w.revisionNames(), with())
	}
}

// Who may write the Application says where it may go; the file chooses among these places.
func TestTheFileNamesNoTargetsButThoseOfTheApplication(t *testing.T) {
	file := func(stages string) map[string]string {
		return map[string]string{"web/app.pipecd.yaml": `
apiVersion: pipecd.dev/v1beta1
kind: KubernetesApp
spec:
  name: web
  quickSync:
    multiTarget:
    - {provider: {name: east}, resourceDir: ./east}
    - {provider: {name: west}, resourceDir: ./west}
  pipeline: {stages: [` + stages + `]}
`}
	}
	r := newRepository(t)
	r.Commit("the first", overlays)
	r.Commit("the second", file("{name: K8S_SYNC, with: {multiTarget: [{provider: {name: east}}]}}, {name: K8S_PRIMARY_ROLLOUT}"))
	app := r.application("web")
	app.Spec.Targets = []v1alpha1.Target{{Name: "first", Cluster: "east"}}
	w := newWorld(t, repositories(t), app)
	got := w.turn()
	want := `spec.quickSync.multiTarget[1]: Invalid value: "west": is none of spec.targets of the Application, which has first: add it there, or take it out of the file`
	if told := says(got, v1alpha1.ApplicationRendered); !strings.Contains(told, want) || w.revisionNames() != "" || w.released() != "" {
		t.Errorf("condition Rendered says %q, with revisions %q and releases of %q; want %q, and nothing", told, w.revisionNames(), w.released(), want)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Targets = append(spec.Targets, v1alpha1.Target{Name: "west", Cluster: "west"})
	})
	got = w.turn()
	if w.revisionNames() != "web-v1" || says(got, v1alpha1.ApplicationHonoured) != "" {
		t.Fatalf("revisions %q: %s; condition Honoured says %q", w.revisionNames(), says(got, v1alpha1.ApplicationRendered), says(got, v1alpha1.ApplicationHonoured))
	}
	spec := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)[0].Spec
	if len(spec.Targets) != 2 || spec.Targets[0].Name != "first" || spec.Targets[0].Hash == spec.Targets[1].Hash {
		t.Errorf("the revision has targets %+v, want each with the folder that the file names", spec.Targets)
	}
	// A target of the file is another one's cluster by now, and nothing of the same commit is different: the file is read anew all the same.
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Targets = spec.Targets[1:] })
	if told := says(w.turn(), v1alpha1.ApplicationRendered); !strings.Contains(told, `spec.quickSync.multiTarget[0]: Invalid value: "east"`) || w.revisionNames() != "web-v1" {
		t.Errorf("condition Rendered says %q, with revisions %q", told, w.revisionNames())
	}
}

// Which targets there are is known when the file has been read.
func TestStagesOfTheApplicationNameTargetsOfTheFile(t *testing.T) {
	const file = "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec: {name: web, quickSync: {multiTarget: [{provider: {name: east}}, {provider: {name: west}}]}}\n"
	for name, test := range map[string]struct {
		files map[string]string
		stage string
		want  string
	}{
		"targets that the file has":         {files: map[string]string{"web/app.pipecd.yaml": file}, stage: "west"},
		"one that it does not have":         {files: map[string]string{"web/app.pipecd.yaml": file}, stage: "mars", want: `spec.pipeline.stages[0].targets[0]: Invalid value: "mars": is not a target of the application`},
		"a file that there is not":          {stage: "west", want: `spec.targets names none, and there is no app.pipecd.yaml in folder "web": spec.pipeline.stages[0].targets[0]: Invalid value: "west"`},
		"the one of an application without": {stage: v1alpha1.DefaultTarget},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.Commit("the first", map[string]string{"web/web.yaml": deployment})
			if test.files != nil {
				r.Commit("the second", test.files)
			}
			app := r.application("web")
			app.Spec.Pipeline = &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{{Name: v1alpha1.StageSync, Targets: []string{test.stage}}}}
			w := newWorld(t, repositories(t), app)
			told := says(w.turn(), v1alpha1.ApplicationRendered)
			if !strings.Contains(told, test.want) || (w.revisionNames() == "") != (test.want != "") {
				t.Errorf("condition Rendered says %q, with revisions %q; want %q", told, w.revisionNames(), test.want)
			}
		})
	}
}

func TestTheApplicationNamesItsFile(t *testing.T) {
	file := func(name, cluster string) string {
		return fmt.Sprintf("apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec: {name: %s, quickSync: {multiTarget: [{provider: {name: %s}}]}}\n", name, cluster)
	}
	r := newRepository(t)
	r.Commit("the first", map[string]string{"web/web.yaml": deployment, "web/prd.pipecd.yaml": file("web", "east"), "web/dev.pipecd.yaml": file("web", "west")})
	w := newWorld(t, repositories(t), r.application("web"))
	got := w.turn()
	for _, name := range []string{"prd.pipecd.yaml", "dev.pipecd.yaml"} {
		want := name + " is not honoured: the application file is app.pipecd.yaml, unless spec.source.git.pipecd.file names another one"
		if told := says(got, v1alpha1.ApplicationHonoured); !strings.Contains(told, want) {
			t.Errorf("condition Honoured says %q, want %q", told, want)
		}
	}
	// The same commit, and another file: what it says is a part of the next revision.
	for i, name := range []string{"prd.pipecd.yaml", "dev.pipecd.yaml"} {
		w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Git.Pipecd = &v1alpha1.PipecdConfig{File: name} })
		got = w.turn()
		made := caches.Named[*v1alpha1.ApplicationRevision](w.view.revisions, fmt.Sprintf("shop/web-v%d", i+2))
		if made == nil || made.Spec.Delivery == nil || made.Spec.Delivery.Targets[0].Name != []string{"east", "west"}[i] {
			t.Fatalf("%s: there are %s: %s", name, w.revisionNames(), says(got, v1alpha1.ApplicationRendered))
		}
		if told := says(got, v1alpha1.ApplicationHonoured); told != "" {
			t.Errorf("%s: condition Honoured says %q", name, told)
		}
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Source.Git.Pipecd = &v1alpha1.PipecdConfig{File: "uat.pipecd.yaml"}
	})
	if told, want := says(w.turn(), v1alpha1.ApplicationRendered), `there is no "web/uat.pipecd.yaml", which spec.source.git.pipecd.file names`; !strings.Contains(told, want) {
		t.Errorf("condition Rendered says %q, want %q", told, want)
	}
}

func TestWhatTheFileCallsTheApplicationIsTold(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", map[string]string{"web/web.yaml": deployment, "web/app.pipecd.yaml": "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec: {name: My Shop, description: All of it., input: {namespace: prd}}\n"})
	w := newWorld(t, repositories(t), r.application("web"))
	want := "NotHonoured: spec.description is not honoured: annotation kubernetes.io/description of the Application says what it is for; " +
		"spec.input.namespace is not honoured: objects go to the namespace of the Application, shop; spec.name is not honoured: the Application is called web"
	if told := says(w.turn(), v1alpha1.ApplicationHonoured); told != want || w.revisionNames() != "web-v1" {
		t.Errorf("condition Honoured says %q, want %q; revisions %q", told, want, w.revisionNames())
	}
}

// changesOf are the files that a revision is said to change, and whether that is known.
func (w *world) changesOf(revision string) (string, bool) {
	w.Helper()
	found := caches.Named[*v1alpha1.ApplicationRevision](w.view.revisions, "shop/"+revision)
	if found == nil {
		w.Fatalf("there is no revision %s", revision)
	}
	if found.Spec.Changes == nil {
		return "", false
	}
	return found.Spec.Changes.Since + ": " + strings.Join(found.Spec.Changes.Files, " "), true
}

func settings(colour string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: " + colour + "}\n"
}

func TestACommitOfFilesThatDoNotCountIsNotReleasedByItself(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", map[string]string{"web/kustomization.yaml": "resources: [../lib]\n", "lib/kustomization.yaml": "resources: [settings.yaml]\n", "lib/settings.yaml": settings("blue"), "lib/README.md": "hello"})
	app := r.application("web")
	app.Spec.Trigger.Paths = []string{"shared/**"}
	w := newWorld(t, repositories(t), app)
	w.turn()
	w.ends(v1alpha1.ReleaseSucceeded)
	if files, known := w.changesOf("web-v1"); known {
		t.Errorf("the first revision changes %s", files)
	}
	r.Commit("words", map[string]string{"lib/README.md": "hello, world"})
	w.turn()
	r.Commit("red", map[string]string{"lib/settings.yaml": settings("red")})
	got := w.turn()
	if files, _ := w.changesOf("web-v2"); files != "web-v1: lib/README.md lib/settings.yaml" {
		t.Errorf("web-v2 changes %s", files)
	}
	released := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ApplicationReleased)
	if w.released() != "web-v1" || got.Status.WantedRevision != "web-v1" || got.Status.LatestRevision != "web-v2" ||
		released == nil || released.Status != metav1.ConditionTrue || !strings.Contains(released.Message, "web-v2 is not released by itself") {
		t.Errorf("releases of %s, wanted is %s, and condition Released is %+v", w.released(), got.Status.WantedRevision, released)
	}
	if got := says(got, v1alpha1.ApplicationHonoured); got != "" {
		t.Errorf("condition Honoured says %q", got)
	}
	if events := w.events(); !strings.Contains(events, "NotTriggered web-v2 is not released by itself") || strings.Contains(events, "NotTriggered web-v1") {
		t.Errorf("the events are %s", events)
	}

	w.restart(repositories(t)) // the commit before has to be fetched again
	r.Commit("and what is shared", map[string]string{"lib/settings.yaml": settings("green"), "shared/words.txt": "hello"})
	w.turn()
	if files, _ := w.changesOf("web-v3"); files != "web-v2: lib/settings.yaml shared/words.txt" || w.released() != "web-v1 web-v3" {
		t.Errorf("web-v3 changes %s, and there are releases of %s", files, w.released())
	}
}

func TestWhatIsNotKnownToChangeIsReleased(t *testing.T) {
	for name, change := range map[string]func(w *world, r *repository){
		"the application itself has changed, and a commit as well": func(w *world, r *repository) {
			r.Commit("words", map[string]string{"lib/README.md": "hello"})
			w.change(func(spec *v1alpha1.ApplicationSpec) {
				spec.Targets = []v1alpha1.Target{{Name: "eu", Cluster: "east", Patches: []v1alpha1.Patch{{Patch: "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {size: big}}"}}}}
			})
		},
		"the repository is another one": func(w *world, r *repository) {
			other := newRepository(w.T)
			other.Commit("elsewhere", map[string]string{"web/kustomization.yaml": "resources: [../lib]\n", "lib/kustomization.yaml": "resources: [settings.yaml]\n", "lib/settings.yaml": settings("red")})
			w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source.Git.URL = other.FileURL() })
		},
		"the history is gone": func(w *world, r *repository) {
			r.Git("checkout", "--quiet", "--orphan", "anew")
			r.Commit("anew", map[string]string{"lib/settings.yaml": settings("red")})
			r.Git("branch", "--delete", "--force", "main")
			r.Git("branch", "--move", "main")
			r.Git("reflog", "expire", "--expire=now", "--all")
			r.Git("gc", "--quiet", "--prune=now")
			w.restart(repositories(w.T))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.Commit("the first", map[string]string{"web/kustomization.yaml": "resources: [../lib]\n", "lib/kustomization.yaml": "resources: [settings.yaml]\n", "lib/settings.yaml": settings("blue")})
			app := r.application("web")
			app.Spec.Trigger.Paths = []string{"shared/**"}
			w := newWorld(t, repositories(t), app)
			w.turn()
			w.ends(v1alpha1.ReleaseSucceeded)
			change(w, r)
			w.turn()
			if files, known := w.changesOf("web-v2"); known || w.released() != "web-v1 web-v2" {
				t.Errorf("web-v2 changes %q, and there are releases of %s", files, w.released())
			}
		})
	}
}

func TestTheApplicationFileSaysWhichFilesCount(t *testing.T) {
	r := newRepository(t)
	file := "apiVersion: pipecd.dev/v1beta1\nkind: KubernetesApp\nspec: {name: web, trigger: {onCommit: {paths: [shared/**], ignores: [web/words.txt]}}}\n"
	r.Commit("the first", map[string]string{"web/app.pipecd.yaml": file, "web/kustomization.yaml": "resources: [../lib]\n", "lib/kustomization.yaml": "resources: [settings.yaml]\n", "lib/settings.yaml": settings("blue")})
	w := newWorld(t, repositories(t), r.application("web"))
	w.turn()
	w.ends(v1alpha1.ReleaseSucceeded)
	r.Commit("red", map[string]string{"lib/settings.yaml": settings("red"), "web/words.txt": "hello"})
	got := w.turn()
	if w.revisionNames() != "web-v1 web-v2" || w.released() != "web-v1" || says(got, v1alpha1.ApplicationHonoured) != "" {
		t.Errorf("revisions %s, releases of %s, condition Honoured says %q", w.revisionNames(), w.released(), says(got, v1alpha1.ApplicationHonoured))
	}
}

func TestAWebhookWithoutASecretIsTold(t *testing.T) {
	r := newRepository(t)
	r.Commit("the first", map[string]string{"web/settings.yaml": settings("blue")})
	app := r.application("web")
	app.Spec.Source.Git.Webhook = &v1alpha1.GitWebhook{SecretRef: v1alpha1.SecretReference{Name: "hook"}}
	w := newWorld(t, repositories(t), app)
	if got := says(w.turn(), v1alpha1.ApplicationHonoured); !strings.Contains(got, "spec.source.git.webhook is not honoured: there is no Secret shop/hook") {
		t.Errorf("without the Secret condition Honoured says %q", got)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook"}, Data: map[string][]byte{"secret": []byte("word")}}
	secret, err := w.objects.CoreV1().Secrets("shop").Create(t.Context(), secret, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := says(w.turn(), v1alpha1.ApplicationHonoured); !strings.Contains(got, "Secret shop/hook has no key token") {
		t.Errorf("without the key it says %q", got)
	}
	secret.Data = map[string][]byte{v1alpha1.WebhookSecretToken: []byte("word")}
	if _, err := w.objects.CoreV1().Secrets("shop").Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the caches show the key", func() bool {
		found, err := w.view.secrets.Secrets("shop").Get("hook")
		return err == nil && len(found.Data[v1alpha1.WebhookSecretToken]) > 0
	})
	if got := says(w.turn(), v1alpha1.ApplicationHonoured); got != "" {
		t.Errorf("with it it says %q", got)
	}
}
