package grants

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// TestTheDryRunPrintsExactlyWhatIsMade reads what is printed back.
func TestTheDryRunPrintsExactlyWhatIsMade(t *testing.T) {
	all, err := All(testLogical, Allowances{Kinds: []schema.GroupResource{{Group: "example.com", Resource: "widgets"}}})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := WriteYAML(&text, all); err != nil {
		t.Fatal(err)
	}
	for _, right := range rights.Syncer() {
		if !strings.Contains(text.String(), "# "+right.Why+"\n- ") {
			t.Errorf("no rule is said to be for: %s", right.Why)
		}
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(&text, 4096)
	for _, p := range all {
		got := &unstructured.Unstructured{}
		if err := decoder.Decode(got); err != nil {
			t.Fatalf("where %s should be: %v", p, err)
		}
		if differs := fieldDifferences("", p.Object.Object, got.Object); len(differs) > 0 {
			t.Errorf("%s: %q", p, differs)
		}
		if p.why == "" {
			t.Errorf("%s has no reason", p)
		}
	}
}

func TestALongCommentIsBrokenBetweenWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "#\n",
		"short":                              "# short\n",
		"two\nlines":                         "# two lines\n",
		strings.Repeat("word ", 26) + "more": "# " + strings.TrimSpace(strings.Repeat("word ", 25)) + "\n# word more\n",
	} {
		if got := comment(text); got != want {
			t.Errorf("%q becomes\n%s, want\n%s", text, got, want)
		}
	}
}
