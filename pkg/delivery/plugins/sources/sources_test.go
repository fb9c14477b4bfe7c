package sources

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

type checkout struct{ fstest.MapFS }

func (c checkout) FS() fs.FS    { return c.MapFS }
func (c checkout) Close() error { return nil }

const commit = "0123456789012345678901234567890123456789"

func app(change func(*v1alpha1.Application)) *v1alpha1.Application {
	out := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	out.Spec.Source.Git = &v1alpha1.GitSource{URL: "https://git.example/shop.git", Path: "web"}
	out.Spec.Plugins = []v1alpha1.ApplicationPlugin{{Name: "toy"}}
	if change != nil {
		change(out)
	}
	return out
}

func revision(origin *v1alpha1.Origin) *v1alpha1.ApplicationRevision {
	out := &v1alpha1.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v2"}}
	out.Spec.Application, out.Spec.Hash, out.Spec.Origin = "web", strings.Repeat("ab", 32), origin
	out.Spec.Targets = []v1alpha1.RevisionTarget{{Name: "east"}, {Name: "west"}}
	return out
}

// made returns sources over one commit, and the last request for it.
func made(t *testing.T, tree fstest.MapFS) (*Sources, *git.Request) {
	t.Helper()
	last := &git.Request{}
	out, err := New(Options{
		Dir: filepath.Join(t.TempDir(), "sources"),
		Fetch: func(_ context.Context, request git.Request, of git.Revision) (Checkout, error) {
			if *last = request; of.Commit != commit {
				return nil, git.ErrNoRef
			}
			return checkout{tree}, nil
		},
		Request: func(app *v1alpha1.Application) (git.Request, error) {
			return git.Request{URL: app.Spec.Source.Git.URL, Credentials: git.Credentials{Password: "secret"}}, nil
		},
		Objects: func(_, _, target string) ([]*unstructured.Unstructured, error) {
			config := func(name string) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
			}
			secret := config("password")
			secret.SetKind("Secret")
			return []*unstructured.Unstructured{config("../all:of/them"), config(target), secret}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, last
}

func below(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	if err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			out = append(out, strings.TrimPrefix(name, dir+"/"))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func TestAPluginIsToldHowTheApplicationFileIsCalled(t *testing.T) {
	const config = "kind: Application\nspec: {plugins: {toy: {depth: 3}}}\n"
	s, _ := made(t, fstest.MapFS{"web/app.pipecd.yaml": {Data: []byte("kind: Application\n")}, "web/prd.pipecd.yaml": {Data: []byte(config)}})
	named := app(func(app *v1alpha1.Application) {
		app.Spec.Source.Git.Pipecd = &v1alpha1.PipecdConfig{File: "prd.pipecd.yaml"}
	})
	got, clean, err := s.Prepare(t.Context(), named, revision(&v1alpha1.Origin{URL: "https://git.example/shop.git", Path: "web", Commit: commit}), "toy")
	if err != nil {
		t.Fatal(err)
	}
	if string(got.ApplicationConfig) != config || got.ApplicationConfigFilename != "prd.pipecd.yaml" {
		t.Errorf("it is told of %s, which says %s", got.ApplicationConfigFilename, got.ApplicationConfig)
	}
	if err := clean(); err != nil {
		t.Error(err)
	}
}

func TestAPluginGetsACopyOfTheCommitForEachCall(t *testing.T) {
	config := "kind: Application\nspec: {plugins: {toy: {depth: 2}}} # as it is\n"
	s, _ := made(t, fstest.MapFS{
		"web/app.pipecd.yaml": {Data: []byte(config)}, "web/main.tf": {Data: []byte("a")}, "base/b.tf": {}, ".pipe/template.yaml": {},
	})
	origin := &v1alpha1.Origin{URL: "https://git.example/shop.git", Path: "web", Commit: commit}
	first, clean, err := s.Prepare(t.Context(), app(nil), revision(origin), "toy")
	if err != nil {
		t.Fatal(err)
	}
	if string(first.ApplicationConfig) != config || first.ApplicationConfigFilename != "app.pipecd.yaml" || first.CommitHash != commit {
		t.Errorf("source %v", first)
	}
	if got := below(t, first.ApplicationDirectory); got != "app.pipecd.yaml main.tf" {
		t.Errorf("the folder of the application has %s", got)
	}
	if got := below(t, first.SharedConfigDirectory); got != "template.yaml" {
		t.Errorf("what is shared is %s", got)
	}
	if _, err := os.Stat(filepath.Join(first.ApplicationDirectory, "../base/b.tf")); err != nil {
		t.Errorf("what lies beside the application: %v", err)
	}
	if err := os.WriteFile(filepath.Join(first.ApplicationDirectory, "main.tf"), []byte("changed"), 0o600); err != nil {
		t.Fatalf("a plugin cannot write to its files: %v", err)
	}
	second, cleanSecond, err := s.Prepare(t.Context(), app(nil), revision(origin), "toy")
	if err != nil {
		t.Fatal(err)
	}
	if content, _ := os.ReadFile(filepath.Join(second.ApplicationDirectory, "main.tf")); string(content) != "a" {
		t.Errorf("another call gets %q", content)
	}
	// What a plugin does to its folder does not keep it from being removed.
	if err := os.Chmod(second.ApplicationDirectory, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(clean(), cleanSecond()); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) > 0 {
		t.Errorf("after the calls there are %v", left)
	}
}

func TestNobodySeesTheFilesOfOthers(t *testing.T) {
	s, _ := made(t, fstest.MapFS{"web/main.tf": {}})
	found, clean, err := s.Prepare(t.Context(), app(nil), revision(&v1alpha1.Origin{URL: "https://git.example/shop.git", Path: "web", Commit: commit}), "toy")
	if err != nil {
		t.Fatal(err)
	}
	defer clean()
	own := filepath.Dir(filepath.Dir(found.ApplicationDirectory))
	for dir, want := range map[string]fs.FileMode{s.Dir: 0o711, own: 0o700} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v (%v), want %v", dir, info.Mode().Perm(), err, want)
		}
	}
	if name := filepath.Base(own); len(name) < 26 {
		t.Errorf("the folder can be guessed: %s", name)
	}
}

func TestAnApplicationWithoutAFileGetsOne(t *testing.T) {
	s, _ := made(t, nil)
	of := app(func(app *v1alpha1.Application) {
		app.Labels = map[string]string{"team": "shop"}
		app.Spec.Source = v1alpha1.Source{Inline: &v1alpha1.InlineSource{}}
		app.Spec.Plugins[0].Config = &runtime.RawExtension{Raw: []byte(`{"depth":3}`)}
		app.Spec.Pipeline = &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{{Name: "TOY", With: &runtime.RawExtension{Raw: []byte(`{"part":10}`)}}}}
	})
	as := revision(nil)
	as.Spec.Delivery = &v1alpha1.RevisionDelivery{Plugins: []v1alpha1.ApplicationPlugin{{Name: "toy", Config: &runtime.RawExtension{Raw: []byte(`{"depth":2}`)}}}}
	found, clean, err := s.Prepare(t.Context(), of, as, "toy")
	if err != nil {
		t.Fatal(err)
	}
	defer clean()
	if got := below(t, found.ApplicationDirectory); got != "00001-configmap-.._all_of_them.yaml 00002-configmap-east.yaml 00003-configmap-west.yaml app.pipecd.yaml" {
		t.Errorf("there are %s", got)
	}
	want := `apiVersion: pipecd.dev/v1beta1
kind: Application
spec:
  labels:
    team: shop
  name: web
  pipeline:
    stages:
    - name: TOY
      with:
        part: 10
  plugins:
    toy:
      depth: 2
`
	if string(found.ApplicationConfig) != want {
		t.Errorf("the file is\n%s", found.ApplicationConfig)
	}
	if len(found.CommitHash) != 40 {
		t.Errorf("commit %q, which is to be the value of a label", found.CommitHash)
	}
	// A plugin finds what is for it by how it knows itself.
	s.Called = func(plugin string) string { return "the_" + plugin }
	again, cleanAgain, err := s.Prepare(t.Context(), of, as, "toy")
	if err != nil {
		t.Fatal(err)
	}
	defer cleanAgain()
	if want := strings.Replace(want, "    toy:", "    the_toy:", 1); string(again.ApplicationConfig) != want {
		t.Errorf("the file is\n%s", again.ApplicationConfig)
	}
}

func TestCredentialsGoToTheirOwnRepositoryAlone(t *testing.T) {
	s, last := made(t, fstest.MapFS{"web/main.tf": {}})
	for url, want := range map[string]string{"https://git.example/shop.git": "secret", "https://git.example/before.git": ""} {
		_, clean, err := s.Prepare(t.Context(), app(nil), revision(&v1alpha1.Origin{URL: url, Path: "web", Commit: commit}), "toy")
		if err != nil {
			t.Fatal(err)
		}
		_ = clean()
		if last.URL != url || last.Credentials.Password != want {
			t.Errorf("%s gets %q, want %q", last.URL, last.Credentials.Password, want)
		}
	}
}

func TestWhatCannotBeGivenToAPluginLeavesNothingBehind(t *testing.T) {
	for name, test := range map[string]struct {
		tree   fstest.MapFS
		origin v1alpha1.Origin
		want   error
	}{
		"a folder that is not there":     {fstest.MapFS{"web/main.tf": {}}, v1alpha1.Origin{Path: "api", Commit: commit}, ErrSource},
		"a folder that is a file":        {fstest.MapFS{"web": {}}, v1alpha1.Origin{Path: "web", Commit: commit}, ErrSource},
		"a commit that is not there":     {nil, v1alpha1.Origin{Commit: strings.Repeat("f", 40)}, git.ErrNoRef},
		"a large application file":       {fstest.MapFS{"web/app.pipecd.yaml": {Data: make([]byte, mostFile+1)}}, v1alpha1.Origin{Path: "web", Commit: commit}, ErrSource},
		"a folder outside of the commit": {fstest.MapFS{"web/main.tf": {}}, v1alpha1.Origin{Path: "../..", Commit: commit}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := made(t, test.tree)
			_, _, err := s.Prepare(t.Context(), app(nil), revision(&test.origin), "toy")
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if left, _ := os.ReadDir(s.Dir); len(left) > 0 {
				t.Errorf("there are %v", left)
			}
		})
	}
}

func TestWhatTheProcessBeforeHasLeftIsRemoved(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "old", "repository"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); slices.ContainsFunc(left, func(fs.DirEntry) bool { return true }) {
		t.Errorf("there are %v", left)
	}
}

// What a plugin has started may exchange folders for links while they are removed.
func TestNoFolderIsOpenedByALinkThatLeadsElsewhere(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Mkdir(elsewhere, 0o500); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, "folder")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := openBelow(root, "folder"); err == nil {
		t.Error("the link was followed")
	}
	if info, err := os.Stat(elsewhere); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("the folder that it leads to has become %v (%v)", info.Mode(), err)
	}
}

func TestFoldersThatAPluginHasClosedAreOpened(t *testing.T) {
	dir := t.TempDir()
	closed := []string{"a/b/c", "a/b", "a", "."}
	if err := os.MkdirAll(filepath.Join(dir, closed[0]), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range closed {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range closed {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
