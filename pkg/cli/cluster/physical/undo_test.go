package physical

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestUndo(t *testing.T) {
	broken := errors.New("connection refused")
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "token")
	for name, test := range map[string]struct {
		results map[string]error
		want    []string
	}{
		"the newest goes first":             {want: nil},
		"what is gone already is no worry":  {results: map[string]error{"second": gone}},
		"the rest goes although one cannot": {results: map[string]error{"second": broken}, want: []string{"second is left"}},
		"all that is left is named":         {results: map[string]error{"first": broken, "third": broken}, want: []string{"first is left", "third is left"}},
	} {
		t.Run(name, func(t *testing.T) {
			var undo Undo
			var order []string
			for _, step := range []string{"first", "second", "third"} {
				undo.Push(step, func(ctx context.Context) error {
					order = append(order, step)
					return cmp.Or(ctx.Err(), test.results[step])
				})
			}
			cancelled, cancel := context.WithCancel(t.Context())
			cancel() // Being interrupted is a reason to take things back, not to leave them.
			err := undo.Run(cancelled)
			if !slices.Equal(order, []string{"third", "second", "first"}) {
				t.Errorf("undone in the order %v", order)
			}
			if (err != nil) != (len(test.want) > 0) {
				t.Fatalf("undo: %v, want %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("undo: %v, want %q", err, want)
				}
			}
		})
	}
}
