//go:build !race

// The race detector keeps a shadow of all memory, which the kernel's bound on this process would count too.

package confined

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

// TestMain is also the main of the processes that the tests start.
func TestMain(m *testing.M) {
	if Asked() {
		Main()
	}
	os.Exit(m.Run())
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: blue}\n"

func files(content map[string]string) fs.FS {
	out := fstest.MapFS{}
	for name, text := range content {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func chart(template string) fs.FS {
	return files(map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n", "templates/web.yaml": template})
}

var inShop = render.Options{Namespace: "shop", Chart: render.Chart{Release: "web", KubeVersion: "v1.37.1"}}

func TestAProcessRendersTheSame(t *testing.T) {
	for name, tree := range map[string]fs.FS{
		"manifests":       files(map[string]string{"a.yaml": configMap + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 9007199254740993, ratio: 0.5}\n"}),
		"a kustomization": files(map[string]string{"kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n", "a.yaml": configMap}),
		"a chart":         chart(configMap + "---\n{{/* nothing */}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {helm.sh/hook: test}}\n"),
	} {
		bundle, err := render.Gather(tree, ".", inShop)
		if err != nil {
			t.Fatal(err)
		}
		want, err := render.Render(t.Context(), bundle, inShop)
		if err != nil {
			t.Fatal(err)
		}
		got, err := New(Bounds{}, 1).Render(t.Context(), tree, ".", inShop)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: a process renders %+v, want %+v", name, got, want)
		}
	}
}

// laughs is a document of few bytes in which each alias stands for nine of the one before.
var laughs = func() string {
	var out strings.Builder
	out.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na0: &a0 [lol]\n")
	for i := '1'; i <= '9'; i++ {
		out.WriteString("a" + string(i) + ": &a" + string(i) + " [" + strings.Repeat("*a"+string(i-1)+",", 9) + "]\n")
	}
	return out.String()
}()

func TestWhatTakesTooMuchEndsAlone(t *testing.T) {
	for name, tree := range map[string]fs.FS{
		"text that is repeated":         chart(`{{ repeat 2000000000 "aaaaaaaa" }}`),
		"text that doubles":             chart(`{{ $x := "aaaaaaaa" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}{{ $x }}`),
		"a list of numbers":             chart(`{{ range until 2000000000 }}{{ end }}`),
		"a loop":                        chart(`{{ range untilStep 0 3000 1 }}{{ range untilStep 0 3000000 1 }}{{ range untilStep 0 3000000 1 }}{{ end }}{{ end }}{{ end }}`),
		"keys that are made again":      chart(`{{ range until 1000000 }}{{ genPrivateKey "rsa" }}{{ end }}`),
		"a template deep in itself":     chart(`{{ define "x" }}{{ tpl "{{ template \"x\" . }}" . }}{{ end }}{{ template "x" . }}`),
		"aliases in what kustomize has": files(map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": laughs}),
		"aliases in a patch of its own": files(map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]\n", "a.yaml": configMap, "p.yaml": laughs}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Bounds{Time: 2 * time.Second, Memory: 256 << 20}, 1).Render(t.Context(), tree, ".", inShop)
			if !errors.Is(err, render.ErrTooLarge) {
				t.Errorf("error %v, want %v", err, render.ErrTooLarge)
			}
		})
	}
}

func TestAProcessHasNothingOfThisOne(t *testing.T) {
	t.Setenv("MANIFOLD_SECRET", "s3cret-word")
	called := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer server.Close()
	tree := files(map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]\n",
		"a.yaml":             configMap,
		"t.yaml":             "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: " + server.URL + "/p.yaml\ntarget: {kind: ConfigMap}\n",
	})
	_, err := New(Bounds{}, 1).Render(t.Context(), tree, ".", inShop)
	if !errors.Is(err, render.ErrInvalid) || called != 0 {
		t.Errorf("error %v and %d calls, want an error and no call", err, called)
	}
}

func TestAnErrorIsThatOfTheFiles(t *testing.T) {
	_, err := New(Bounds{}, 1).Render(t.Context(), chart(`{{ fail "no host is set" }}`), ".", inShop)
	if !errors.Is(err, render.ErrInvalid) || !strings.Contains(err.Error(), "no host is set") {
		t.Errorf("error %v, want what the template says", err)
	}
	options := inShop
	options.Limits.Output = 100
	_, err = New(Bounds{}, 1).Render(t.Context(), chart(configMap+"\n# "+strings.Repeat("x", 100)), ".", options)
	if !errors.Is(err, render.ErrTooLarge) {
		t.Errorf("error %v, want %v", err, render.ErrTooLarge)
	}
}

func TestWhoStopsWaitingStopsTheProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(Bounds{}, 1).Render(ctx, chart(configMap), ".", inShop); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestHowAProcessEnds(t *testing.T) {
	ended := func(command string) error { return exec.Command("sh", "-c", command).Run() }
	for name, test := range map[string]struct {
		err   error
		words string
		want  bool
	}{
		"no memory for the heap":      {ended("exit 2"), "fatal error: runtime: out of memory\n", true},
		"none for a thread":           {ended("exit 2"), "runtime/cgo: pthread_create failed: Resource temporarily unavailable\n", true},
		"none for a shadow of memory": {ended("exit 66"), "==9==ERROR: ThreadSanitizer failed to allocate 0x23000 bytes\n", true},
		"ended by the kernel":         {ended("kill -KILL $$"), "", true},
		"an error that it tells":      {ended("exit 1"), "bound the process: operation not permitted\n", false},
		"a panic":                     {ended("exit 2"), "panic: index out of range\n\ngoroutine 1", false},
		"a panic behind other words":  {ended("exit 2"), "a warning\npanic: index out of range\n", false},
		"it could not be started":     {errors.New("no such file"), "", false},
	} {
		if got := exhausted(test.err, test.words); got != test.want {
			t.Errorf("%s: exhausted %t, want %t", name, got, test.want)
		}
	}
}
