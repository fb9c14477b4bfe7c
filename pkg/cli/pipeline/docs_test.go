package pipeline

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

var block = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// manifests are the whole ones of a page, by their groups and kinds.
func manifests(t *testing.T, page string) map[string][]*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile("../../../docs/delivery/" + page)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]*unstructured.Unstructured{}
	for _, match := range block.FindAllStringSubmatch(string(content), -1) {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(match[1]), &object); err != nil {
			t.Errorf("%s: %v:\n%s", page, err, match[1])
			continue
		}
		if object["kind"] != nil {
			read := &unstructured.Unstructured{Object: object}
			kind := read.GroupVersionKind().GroupKind().String()
			out[kind] = append(out[kind], read)
		}
	}
	return out
}

// TestW31TheGuideFromCIHasEveryStepInItsOrder is about the steps that the document asks for, up to what starts the pipeline.
func TestW31TheGuideFromCIHasEveryStepInItsOrder(t *testing.T) {
	found := manifests(t, "pipelines-tekton.md")["Pipeline.tekton.dev"]
	if len(found) != 1 {
		t.Fatalf("it has %d pipelines of Tekton, want one", len(found))
	}
	after := map[string][]string{}
	var order []string
	tasks, _, _ := unstructured.NestedSlice(found[0].Object, "spec", "tasks")
	for _, entry := range tasks {
		task := entry.(map[string]any)
		name := task["name"].(string)
		order = append(order, name)
		before, _, _ := unstructured.NestedStringSlice(task, "runAfter")
		after[name] = before
	}
	if want := []string{"clone", "test", "lint", "build", "scan", "publish", "dev"}; !slices.Equal(order, want) {
		t.Fatalf("its steps are %q, want %q", order, want)
	}
	for name, want := range map[string]string{"test": "clone", "lint": "clone", "build": "test,lint", "scan": "build", "publish": "scan", "dev": "publish"} {
		if got := strings.Join(after[name], ","); got != want {
			t.Errorf("%s comes after %q, want %q", name, got, want)
		}
	}
}

func TestThePipelinesOfTheGuidesAreTaken(t *testing.T) {
	const kind = weave.Kind + "." + weave.Group
	guide, ci := manifests(t, "pipelines-guide.md")[kind], manifests(t, "pipelines-tekton.md")[kind]
	if len(guide) != 2 || len(ci) != 1 {
		t.Fatalf("the pages have %d pipelines and %d, want two and one", len(guide), len(ci))
	}
	for i, found := range append(guide, ci...) {
		p, err := weave.Read(found)
		if err != nil {
			t.Fatal(err)
		}
		if errs := weave.Validate(p); len(errs) > 0 {
			t.Errorf("a server refuses it: %v", errs.ToAggregate())
		}
		byRequest := i == 1
		if len(p.Spec.Environments) != 3 || p.PromotionOf(p.Spec.Environments[2]).Manual == byRequest || p.PromotionOf(p.Spec.Environments[1]).Manual {
			t.Errorf("it is %+v, want three environments, of which a person promotes to the last, by a pull request or by a command", p.Spec)
		}
	}
}

// TestTheCommandsOfTheGuidesAreThere parses each call of manifold in the pages, with the flags that it has.
func TestTheCommandsOfTheGuidesAreThere(t *testing.T) {
	known := map[string]*cobra.Command{}
	for _, cmd := range NewCommand(cmdutil.NewFactory(genericclioptions.NewConfigFlags(true)), genericiooptions.NewTestIOStreamsDiscard()).Commands() {
		known[cmd.Name()] = cmd
	}
	call := regexp.MustCompile("manifold pipeline ([a-z]+)([^`|\n]*)")
	flag := regexp.MustCompile(` (--?[a-zA-Z]+)`)
	for _, page := range []string{"pipelines-guide.md", "pipelines-tekton.md", "from-weave-gitops.md"} {
		content, err := os.ReadFile("../../../docs/delivery/" + page)
		if err != nil {
			t.Fatal(err)
		}
		calls := call.FindAllStringSubmatch(string(content), -1)
		if len(calls) == 0 {
			t.Errorf("%s has no command", page)
		}
		for _, c := range calls {
			cmd, there := known[c[1]]
			if !there {
				t.Errorf("%s: there is no manifold pipeline %s", page, c[1])
				continue
			}
			for _, f := range flag.FindAllStringSubmatch(c[2], -1) {
				name := strings.TrimLeft(f[1], "-")
				if name != "n" && cmd.Flags().Lookup(name) == nil && (len(name) > 1 || cmd.Flags().ShorthandLookup(name) == nil) {
					t.Errorf("%s: manifold pipeline %s has no flag %s", page, c[1], f[1])
				}
			}
		}
	}
}
