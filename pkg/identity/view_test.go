package identity

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestWhatWasMadeThroughAViewIsThatClustersAlone(t *testing.T) {
	for view, want := range map[string]bool{"": false, "east": false, "west": true} {
		above := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationView: view}}
		if got := OfAnotherView(above, "east"); got != want {
			t.Errorf("made through %q, it is of another view than east: %t", view, got)
		}
	}
	if OfAnotherView(&metav1.ObjectMeta{}, "east") {
		t.Error("what was made through no view is of another one")
	}
}
