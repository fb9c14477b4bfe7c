package revision

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/pkg/delivery/render"
)

func object(name, colour string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": name}, "data": map[string]any{"colour": colour},
	}}
}

func split(t *testing.T, targets map[string][]*unstructured.Unstructured) *Set {
	t.Helper()
	builder := NewBuilder()
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		if err := builder.Add(target, targets[target]); err != nil {
			t.Fatal(err)
		}
	}
	return builder.Set()
}

func TestContentsOfSeveralTargetsAreThereOnce(t *testing.T) {
	set := split(t, map[string][]*unstructured.Unstructured{
		"west": {object("a", "blue"), object("b", "red")},
		"east": {object("a", "blue"), object("b", "green")},
		"none": {},
	})
	want := map[string][]int{"east": {0, 1}, "none": {}, "west": {0, 2}}
	if !reflect.DeepEqual(set.Targets, want) || len(set.Contents) != 3 {
		t.Errorf("targets %v of %d contents, want %v of 3", set.Targets, len(set.Contents), want)
	}
	if got, want := string(set.Contents[1].JSON), `{"apiVersion":"v1","data":{"colour":"green"},"kind":"ConfigMap","metadata":{"name":"b"}}`; got != want {
		t.Errorf("content %s, want %s", got, want)
	}
}

func TestATargetLikeAnotherHasTheSame(t *testing.T) {
	builder := NewBuilder()
	if err := builder.Add("east", []*unstructured.Unstructured{object("a", "blue")}); err != nil {
		t.Fatal(err)
	}
	builder.AddLike("west", "east")
	want := split(t, map[string][]*unstructured.Unstructured{"east": {object("a", "blue")}, "west": {object("a", "blue")}})
	if got := builder.Set(); !reflect.DeepEqual(got, want) {
		t.Errorf("set %+v, want %+v", got, want)
	}
}

func TestNoMoreIsKeptThanARevisionMayHold(t *testing.T) {
	big := func(name string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{object(name, strings.Repeat("x", mostHeld/8))}
	}
	builder := NewBuilder()
	for i := range 7 {
		if err := builder.Add(fmt.Sprint("t", i), big(fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if err := builder.Add(fmt.Sprint("like", i), big("a3")); err != nil {
			t.Fatalf("a target that shares all it has: %v", err)
		}
	}
	err := builder.Add("last", big("a7"))
	if !errors.Is(err, render.ErrTooLarge) || !strings.Contains(err.Error(), `target "last"`) || !strings.Contains(err.Error(), "divide the application") {
		t.Errorf("error %v, want %v that names the target and what to do", err, render.ErrTooLarge)
	}
}

func TestAHashIsThatOfWhatTargetsHave(t *testing.T) {
	first := split(t, map[string][]*unstructured.Unstructured{"a": {object("x", "blue")}, "b": {}})
	for name, test := range map[string]struct {
		targets map[string][]*unstructured.Unstructured
		same    bool
	}{
		"the same":                   {map[string][]*unstructured.Unstructured{"b": {}, "a": {object("x", "blue")}}, true},
		"another content":            {map[string][]*unstructured.Unstructured{"a": {object("x", "red")}, "b": {}}, false},
		"at another target":          {map[string][]*unstructured.Unstructured{"a": {}, "b": {object("x", "blue")}}, false},
		"a target less":              {map[string][]*unstructured.Unstructured{"a": {object("x", "blue")}}, false},
		"a target with another name": {map[string][]*unstructured.Unstructured{"a": {object("x", "blue")}, "c": {}}, false},
		"an object more":             {map[string][]*unstructured.Unstructured{"a": {object("x", "blue"), object("y", "blue")}, "b": {}}, false},
	} {
		if got := split(t, test.targets).Hash == first.Hash; got != test.same {
			t.Errorf("%s: the same hash is %v, want %v", name, got, test.same)
		}
	}
}

func TestChunksHoldAllContentsInOrder(t *testing.T) {
	var contents []Content
	for i := range 40 {
		contents = append(contents, Content{JSON: bytes.Repeat([]byte{'x'}, 1+i*7%90), Hash: string(rune('a' + i))})
	}
	for most := 100; most < 400; most += 7 {
		chunks, err := Chunks(contents, most, 3)
		if err != nil {
			t.Fatal(err)
		}
		var all []Content
		before := 0
		for _, chunk := range chunks {
			size := 0
			for _, content := range chunk {
				size += len(content.JSON) + 3
			}
			if size > most || size == 0 {
				t.Errorf("a chunk of %d bytes, and %d are allowed", size, most)
			}
			if before > 0 && before+len(chunk[0].JSON)+3 <= most {
				t.Errorf("a chunk begins although the one before has %d of %d bytes", before, most)
			}
			before = size
			all = append(all, chunk...)
		}
		if !reflect.DeepEqual(all, contents) {
			t.Errorf("chunks of %d bytes hold other contents, or in another order", most)
		}
	}
	large := []Content{{Object: render.ObjectName{Kind: "ConfigMap", Namespace: "shop", Name: "big"}, JSON: []byte(strings.Repeat("x", 100))}}
	if _, err := Chunks(large, 100, 1); !errors.Is(err, render.ErrTooLarge) || !strings.Contains(err.Error(), "ConfigMap shop/big") {
		t.Errorf("error %v, want one that names the object", err)
	}
	if chunks, err := Chunks(nil, 100, 1); err != nil || len(chunks) != 0 {
		t.Errorf("%d chunks of nothing (%v)", len(chunks), err)
	}
}
