package revision

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

var about = About{Application: &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "x"}}, Number: 7}

func secret(name, word string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "Secret", "apiVersion": "v1", "metadata": map[string]any{"name": name}, "stringData": map[string]any{"word": word},
	}}
}

func many(n, size int) (out []*unstructured.Unstructured) {
	for i := range n {
		out = append(out, object(fmt.Sprint("a", i), strings.Repeat("x", size)))
	}
	return out
}

func TestPartsAreWhatTheAPITakes(t *testing.T) {
	for name, test := range map[string]struct {
		targets         map[string][]*unstructured.Unstructured
		chunks, secrets int
	}{
		"few objects":      {map[string][]*unstructured.Unstructured{"east": many(3, 10), "west": many(2, 10)}, 0, 0},
		"none":             {map[string][]*unstructured.Unstructured{"east": {}}, 0, 0},
		"more than fit":    {map[string][]*unstructured.Unstructured{"east": many(30, 100_000)}, 3, 0},
		"Secrets":          {map[string][]*unstructured.Unstructured{"east": {secret("a", "s3cret-word"), object("b", "blue")}}, 0, 1},
		"Secrets, and big": {map[string][]*unstructured.Unstructured{"east": {secret("a", "s3cret-word"+strings.Repeat("x", 700_000)), secret("b", strings.Repeat("y", 700_000))}}, 0, 2},
		"10,000 objects":   {map[string][]*unstructured.Unstructured{"east": many(10_000, 100)}, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set := split(t, test.targets)
			parts, err := set.Parts(about)
			if err != nil {
				t.Fatal(err)
			}
			if len(parts.Chunks) != test.chunks || len(parts.Secrets) != test.secrets {
				t.Errorf("%d chunks and %d Secrets, want %d and %d", len(parts.Chunks), len(parts.Secrets), test.chunks, test.secrets)
			}
			if parts.Head.Name != "web-v7" || parts.Head.Spec.Hash != set.Hash {
				t.Errorf("head %s with hash %s, want web-v7 with that of the set", parts.Head.Name, parts.Head.Spec.Hash)
			}
			there := map[string]bool{}
			for _, part := range append(slices.Clone(parts.Chunks), parts.Head) {
				if errs := validation.ValidateApplicationRevision(part); len(errs) > 0 {
					t.Errorf("%s is not valid: %v", part.Name, errs.ToAggregate())
				}
				for _, of := range part.Spec.Objects {
					there[of.Hash] = true
					if of.Manifest != nil && strings.Contains(string(of.Manifest.Raw), "s3cret-word") {
						t.Errorf("%s shows a Secret", part.Name)
					}
				}
			}
			for _, content := range set.Contents {
				if !there[content.Hash] {
					t.Errorf("%s is in no part", content.Object)
				}
			}
		})
	}
}

func TestPartsThatNobodyCanStore(t *testing.T) {
	targets := map[string][]*unstructured.Unstructured{}
	for i := range 20 {
		targets[fmt.Sprint("t", i)] = many(1_000, 10+i)
	}
	for name, targets := range map[string]map[string][]*unstructured.Unstructured{
		"an object of more than a megabyte":    {"east": many(1, 1<<20)},
		"a Secret of more than a megabyte":     {"east": {secret("a", strings.Repeat("x", 1<<20))}},
		"targets that name too many objects":   targets,
		"more chunks than a revision can have": {"east": many(65, 1_000_000)},
	} {
		if _, err := split(t, targets).Parts(about); !errors.Is(err, render.ErrTooLarge) {
			t.Errorf("%s: error %v, want %v", name, err, render.ErrTooLarge)
		}
	}
}

func TestTargetsWithTheSameObjectsNameThemOnce(t *testing.T) {
	targets := map[string][]*unstructured.Unstructured{"other": many(3, 20), "none": {}}
	for i := range 100 {
		targets[fmt.Sprintf("t%02d", i)] = many(1_000, 10)
	}
	parts, err := split(t, targets).Parts(about)
	if err != nil {
		t.Fatal(err)
	}
	of := parts.Head.Spec.Targets
	listed := map[string]int{}
	for i := range of {
		if len(of[i].Objects) > 0 {
			listed[of[i].Name] = len(of[i].Objects)
		}
		if got, want := len(v1alpha1.ObjectsOf(of, i)), len(targets[of[i].Name]); got != want {
			t.Errorf("target %s has %d objects, want %d", of[i].Name, got, want)
		}
	}
	if want := map[string]int{"other": 3, "t00": 1_000}; !maps.Equal(listed, want) {
		t.Errorf("listed are %v, want %v", listed, want)
	}
	if errs := validation.ValidateApplicationRevision(parts.Head); len(errs) > 0 {
		t.Errorf("it is not valid: %v", errs.ToAggregate())
	}
}

func TestWhatStrangersSayIsBounded(t *testing.T) {
	said := about
	said.Warnings = []string{"a\x1b[31m", "a\x1b[31m", strings.Repeat("x", 10_000)}
	said.Images = []render.Image{{Name: "b", Tag: "1"}, {Name: "a"}, {Name: "b", Tag: "1"}, {}}
	parts, err := split(t, map[string][]*unstructured.Unstructured{"east": {object("a", "blue")}}).Parts(said)
	if err != nil {
		t.Fatal(err)
	}
	spec := parts.Head.Spec
	if len(spec.Warnings) != 2 || spec.Warnings[0] != "a^[[31m" || len(spec.Warnings[1]) > longestText {
		t.Errorf("warnings %.100q", spec.Warnings)
	}
	if got := fmt.Sprint(spec.Images); got != "[{a  } {b 1 }]" {
		t.Errorf("images %s", got)
	}
}
