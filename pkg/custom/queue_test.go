package custom

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/syncer/copies"
)

func TestAClusterThatChangesWhatItSaysOfManyObjectsHoldsUpItsOwnAlone(t *testing.T) {
	c := &Controller{queue: work.NewFairQueue[copies.Key]("", time.Millisecond, time.Second)}
	defer c.queue.ShutDown()
	add := func(name, cluster string) {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if cluster != "" {
			o.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"` + cluster + `":{}}`}
		}
		c.queue.AddFor(copies.Turn(o), copies.Key{Resource: schema.GroupResource{Resource: "gizmos"}, Name: name}, 0)
	}
	for _, name := range []string{"e1", "e2", "e3", "e4"} {
		add(name, "east")
	}
	add("w1", "west")
	add("new", "")
	add("w2", "west")
	var got []string
	for c.queue.Len() > 0 {
		key, _ := c.queue.Get()
		got = append(got, key.Name)
		c.queue.Done(key)
	}
	if got, want := strings.Join(got, " "), "e1 w1 new e2 w2 e3 e4"; got != want {
		t.Errorf("looked at %s, want %s", got, want)
	}
}
