package records

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/typed"
)

// patches keeps the last patch, and answers that there is nothing to change.
type patches struct {
	typed.Client
	by   types.PatchType
	last string
}

func (p *patches) Patch(_ context.Context, _ string, by types.PatchType, patch []byte, _ metav1.PatchOptions) (typed.Object, error) {
	p.by, p.last = by, string(patch)
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "web")
}

func TestWrite(t *testing.T) {
	const held = v1alpha1.FinalizerProjection
	for name, test := range map[string]struct {
		finalizers []string
		change     Change
		want       string
	}{
		"an annotation is set, of the version that was looked at": {
			change: Change{Annotations: map[string]string{"a": "1", "b": ""}},
			want:   `{"metadata":{"annotations":{"a":"1","b":null},"resourceVersion":"7","uid":"u"}}`,
		},
		"or whatever the version": {
			change: Change{Annotations: map[string]string{"a": "1"}, Anyhow: true}, want: `{"metadata":{"annotations":{"a":"1"},"uid":"u"}}`,
		},
		"it is held beside what others hold it by": {
			finalizers: []string{"other"}, change: Change{Hold: true},
			want: `{"metadata":{"finalizers":["other","` + held + `"],"resourceVersion":"7","uid":"u"}}`,
		},
		"it is held once": {finalizers: []string{held}, change: Change{Hold: true}, want: `{"metadata":{"resourceVersion":"7","uid":"u"}}`},
		"we let go of it, and others do not": {
			finalizers: []string{held, "other"}, change: Change{Release: true}, want: `{"metadata":{"finalizers":["other"],"resourceVersion":"7","uid":"u"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := &patches{}
			of := &metav1.ObjectMeta{Name: "web", UID: "u", ResourceVersion: "7", Finalizers: test.finalizers}
			if stored, err := Write(t.Context(), client, of, test.change); stored != nil || err != nil {
				t.Errorf("what is gone is %v (%v)", stored, err)
			}
			if client.last != test.want || client.by != types.MergePatchType {
				t.Errorf("%s %s, want %s", client.by, client.last, test.want)
			}
		})
	}
}

func TestToldOnce(t *testing.T) {
	var told Told
	for i, step := range []struct {
		about, message string
		want           bool
	}{
		{"decision", "", false},
		{"decision", "placed", true},
		{"decision", "placed", false},
		{"status", "placed", true},
		{"decision", "moved", true},
		{"status", "placed", false},
		{"decision", "placed", true},
		{"decision", "", true},
		{"decision", "placed", true},
	} {
		if got := told.News("u", step.about, step.message); got != step.want {
			t.Errorf("step %d: %q about the %s is news: %t, want %t", i, step.message, step.about, got, step.want)
		}
	}
	if told.Forget("u"); told.Len() > 0 {
		t.Error("what is gone is remembered")
	}
}

func TestATextIsToldOnceAndAgainWhenItComesBack(t *testing.T) {
	texts := &Texts[string]{}
	for i, step := range []struct {
		text string
		want bool
	}{{"", false}, {"a", true}, {"a", false}, {"b", true}, {"", false}, {"b", true}} {
		if got := texts.News("web", step.text); got != step.want {
			t.Errorf("step %d: told %t, want %t", i, got, step.want)
		}
	}
}
