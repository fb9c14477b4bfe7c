package app

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/output"
)

// revision is a revision of an application, made so long ago as its number says in hours.
func revision(application string, number int64) *v1alpha1.ApplicationRevision {
	return &v1alpha1.ApplicationRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: v1alpha1.RevisionName(application, number), CreationTimestamp: ago(100*time.Hour - time.Duration(number)*time.Hour),
			Labels: map[string]string{v1alpha1.LabelApplication: application},
		},
		Spec: v1alpha1.ApplicationRevisionSpec{Application: application, Number: number},
	}
}

func TestHistory(t *testing.T) {
	v7, v8, v10 := revision("web", 7), revision("web", 8), revision("web", 10)
	v8.Spec.Origin = origin('b', "Fix the cart\nand more")
	v8.Spec.Images = []v1alpha1.RevisionImage{{Name: "example.com/web", Tag: "1.8"}, {Name: "sidecar", Digest: "sha256:1"}, {Name: "plain"}}
	v10.Spec.Origin = &v1alpha1.Origin{Commit: "c\x1b[2J", Author: hostile, Message: hostile}
	chunk := revision("web", 10)
	chunk.Name, chunk.Spec.ChunkOf = "web-v10-1", "web-v10"
	client := fake.NewSimpleClientset(busy(), v7, v8, v10, chunk, revision("other", 9))
	o := &HistoryOptions{subject: subject{Namespace: "shop", Name: "web", client: client}}
	all, err := o.history(t.Context(), busy())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printHistory(&out, all, now); err != nil {
		t.Fatal(err)
	}
	golden(t, "history", out.String())
	streams, _, printed, _ := genericiooptions.NewTestIOStreams()
	o.IOStreams, o.Output = streams, output.YAML
	if err := o.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	golden(t, "history-yaml", printed.String())
}

func TestAnApplicationWithoutRevisionsHasNoHistory(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	o := &HistoryOptions{IOStreams: streams, subject: subject{Namespace: "shop", Name: "web", client: fake.NewSimpleClientset(busy())}}
	if err := o.Run(t.Context()); err != nil || out.String() != "There is no revision yet.\n" {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}
